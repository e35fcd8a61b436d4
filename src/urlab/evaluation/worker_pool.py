"""The workers of a server and the run they work on. All methods are called on the server's event loop."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TypeVar

from urlab.errors import known
from urlab.evaluation.actions import Action, ActionError, parse_action
from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.numbers import describe
from urlab.evaluation.problems import BadBody, Problem, TooManyWorkers, UnknownWorker
from urlab.evaluation.run import Run
from urlab.evaluation.settings import ServerSettings
from urlab.evaluation.worker_messages import WorkerSettings
from urlab.evaluation.worker_slot import Moved, Orders, Reply, Wanted, WorkerSlot

Replies = dict[str, Reply]
T = TypeVar("T")


class BadAction(Problem):
    """An action that cannot be carried out; nothing has moved."""


class WorkerPool:
    """Starts workers when they are reset, steps them side by side, ends them. A bad request moves nobody."""

    def __init__(self, settings: ServerSettings, run: Run) -> None:
        self.run = run
        self._settings = settings
        self._slots: dict[str, WorkerSlot] = {}
        self._ending: dict[str, asyncio.Event] = {}
        self._companions: dict[str, tuple[str, ...]] = {}

    @property
    def worker_ids(self) -> list[str]:
        """The workers that exist."""
        return list(self._slots)

    def pid(self, worker_id: str) -> int | None:
        """The process of a worker, if it has one."""
        return self._slot(worker_id).pid

    async def reset(self, worker_ids: Sequence[str], wanted: Wanted, hold_steps: Mapping[str, int]) -> None:
        """Begin an episode with each worker; those that do not exist are made. `look` has the replies."""
        ids = list(dict.fromkeys(worker_ids))
        for ending in [self._ending[one] for one in ids if one in self._ending]:
            await ending.wait()
        self._make(ids)
        await _all(self._slot(one).reset(wanted, hold_steps[one]) for one in ids)
        self._companions |= dict.fromkeys(ids, tuple(ids))

    async def look(self, worker_ids: Sequence[str], wanted: Wanted) -> Replies:
        """The replies as of now; what is told once is told by this."""
        slots = {one: self._slot(one) for one in worker_ids}
        return {one: await slot.look(wanted) for one, slot in slots.items()}

    def glance(self, worker_ids: Sequence[str], wanted: Wanted) -> Replies:
        """As `look`, but without what is told once, and waiting for nobody: these workers may be another request's."""
        return {one: self._slot(one).glance(wanted) for one in worker_ids}

    def companions(self, worker_ids: Sequence[str]) -> list[str]:
        """The others that were reset together with one of these, and by nobody since: workers of the same client."""
        groups = {self._companions[one] for one in worker_ids if one in self._companions}
        others = (one for group in groups for one in group if self._companions.get(one) == group)
        return [one for one in others if one in self._slots and one not in worker_ids]

    async def step(self, actions: Mapping[str, object], wanted: Wanted) -> None:
        """One action for each of some workers, at the same time. `look` has the replies."""
        orders = [(self._slot(one), self._orders(one, [raw])) for one, raw in actions.items()]
        await _all(slot.step(order, wanted) for slot, order in orders)

    async def step_chunk(self, chunks: Mapping[str, Sequence[object]], wanted: Wanted) -> dict[str, Moved]:
        """Actions for each of some workers, at the same time; each stops at the end of its own episode.

        So what a worker does never depends on who else is in the request.
        """
        orders = [(self._slot(one), self._orders(one, raws)) for one, raws in chunks.items()]
        moved = await _all(slot.step(order, wanted) for slot, order in orders)
        return dict(zip(chunks, moved, strict=True))

    async def kill(self, worker_ids: Sequence[str]) -> None:
        """End workers; those that do not exist are ended already."""
        for one in worker_ids:
            self._companions.pop(one, None)
        await _all([self._end(self._slots.pop(one)) for one in dict.fromkeys(worker_ids) if one in self._slots])

    async def close(self) -> None:
        """End all workers, and see those off that are ending already."""
        await self.kill(self.worker_ids)
        for ending in list(self._ending.values()):
            await ending.wait()

    async def start(self, run: Run) -> None:
        """End all workers and go on with another run."""
        while self._slots:
            await self.close()
        self.run = run

    async def _end(self, slot: WorkerSlot) -> None:
        """Whoever resets a worker of the same id waits for it: both would have the same episode."""
        self._ending[slot.worker_id] = ended = asyncio.Event()
        try:
            await slot.end()
        finally:
            self._ending.pop(slot.worker_id, None)
            ended.set()

    def _orders(self, worker_id: str, raws: Sequence[object]) -> Orders:
        slot = self._slot(worker_id)
        if slot.unit is None:
            return Orders(None)
        embodiment = self.run.embodiment(slot.unit)
        return Orders(slot.unit, tuple(self._action(raw, embodiment, f"worker {worker_id}") for raw in raws))

    def _action(self, raw: object, embodiment: Embodiment, who: str) -> Action:
        try:
            return parse_action(raw, embodiment, default_is_rel=not self._settings.absolute)
        except ActionError as problem:
            raise BadAction(f"{who}: {problem.message}") from problem

    def _slot(self, worker_id: str) -> WorkerSlot:
        slot = self._slots.get(worker_id)
        if slot is None:
            raise UnknownWorker(
                f"there is no worker {worker_id[:40]!r}: reset it first; workers that exist: {known(self._slots)}"
            )
        return slot

    def _make(self, worker_ids: Sequence[str]) -> None:
        missing = [one for one in worker_ids if one not in self._slots]
        count, limit = len(self._slots) + len(missing), self._settings.workers
        if count > limit:
            raise TooManyWorkers(
                f"that would be {count} workers and {limit} are allowed: start the server with --workers {count}, "
                f"or kill some; workers that exist: {known(self._slots)}"
            )
        cameras = self._settings.cameras
        settings = WorkerSettings(cameras, self._settings.privileged, self._settings.videos and cameras)
        for one in missing:
            self._slots[one] = WorkerSlot(one, self.run, settings, self._settings.limits)


async def _all(works: Iterable[Awaitable[T]]) -> list[T]:
    """Everything at once; when something fails the rest is finished first."""
    waiting = list(works)
    if not waiting:
        return []
    others = [asyncio.ensure_future(one) for one in waiting[1:]]
    try:
        first = await waiting[0]
    finally:
        for one in others:
            await _settled(one)
    return [first, *(one.result() for one in others)]


async def _settled(task: "asyncio.Future[T]") -> None:
    """Until it has ended, in whatever way; what it raised counts as seen."""
    if not task.done():
        await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()


def check_worker_ids(value: object) -> list[str]:
    """A list of worker ids from a body; BadBody says what is wrong with it."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and 0 < len(one) <= 64 for one in value):
        raise BadBody(f"worker_ids must be a list of short text, such as ['0', '1'], but {_sent(value)} was sent")
    return list(value)


def _sent(value: object) -> str:
    strange = [one for one in value if not isinstance(one, str)] if isinstance(value, list | tuple) else []
    return f"a list with {describe(strange[0])} in it" if strange else describe(value)
