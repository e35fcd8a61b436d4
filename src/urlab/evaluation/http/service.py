"""What the endpoints do, without HTTP: one service per server, on its event loop."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from urlab.evaluation.encoding import BodyFormat
from urlab.evaluation.runs.job import JobFactory
from urlab.evaluation.settings import HOLD_STEPS_FIRST_CLIENTS, HOLD_STEPS_LATER_CLIENTS, ServerSettings
from urlab.evaluation.workers.pool import ReplyFormat, WorkerPool, WorkerReply

log = logging.getLogger("urlab.evaluation")

DEFAULT_WORKER = "0"
_MOST_CREATED = 1000

Bodies = dict[str, dict[str, Any]]
"""The replies of some workers, by worker id."""


class EvaluationService:
    """The default job begins with the service, so that a first /reset works."""

    def __init__(self, settings: ServerSettings) -> None:
        self._jobs = JobFactory(settings)
        self._announced: set[str] | None = set()
        """The workers that /create_workers named; None after /load_config, when an announcement says nothing.

        Clients of the first generation call /create_workers before they reset; those of the next do so too, but after
        /load_config; later ones do neither. How long a subgoal must hold depends on it.
        """
        self._stock_clients = StockClients()
        self._switching = asyncio.Lock()
        self.pool = WorkerPool(settings, self._jobs.run(self._jobs.default))
        log.info("run %s: %s", self.pool.run.job.run_id, self.pool.run.job.in_a_line)

    def create(self, worker_ids: Sequence[str]) -> None:
        """Clients of the first generation announce their workers; of names without end only so many are kept."""
        if self._announced is not None:
            self._announced.update(worker_ids)
            while len(self._announced) > _MOST_CREATED:
                self._announced.pop()

    async def reset(self, worker_ids: Sequence[str] | None, wanted: ReplyFormat) -> Bodies:
        """Begin episodes; without ids, with all workers that exist, or with a first one."""
        ids = worker_ids if worker_ids is not None else self.pool.worker_ids or [DEFAULT_WORKER]
        async with self._switching:
            run = self.pool.run
        if run.job.is_complete:
            await run.write_summary()
        announced = self._announced or ()
        hold_steps = {one: HOLD_STEPS_FIRST_CLIENTS if one in announced else HOLD_STEPS_LATER_CLIENTS for one in ids}
        replies = await self.pool.reset(hold_steps, wanted)
        self._stock_clients.reset_together(list(replies))
        return self._bodies(replies, wanted, is_first=True)

    async def look(self, worker_ids: Sequence[str] | None, wanted: ReplyFormat) -> Bodies:
        """Where the workers stand; without ids, all of them."""
        return self._bodies(await self.pool.look(self.pool.worker_ids if worker_ids is None else worker_ids), wanted)

    async def step(self, actions: Mapping[str, object], wanted: ReplyFormat) -> Bodies:
        """One action for each of some workers."""
        return self._bodies(await self.pool.step({one: [raw] for one, raw in actions.items()}, wanted), wanted)

    async def step_chunk(self, chunk: Sequence[Mapping[str, object]], wanted: ReplyFormat) -> dict[str, Any]:
        """A chunk, each worker up to the end of its own episode; the replies are of every worker in it.

        ``executed_steps`` is of the worker that got farthest, ``stopped_early`` says whether some actions were left.
        """
        chunks = _by_worker(chunk)
        replies = await self.pool.step(chunks, wanted)
        executed = {one: reply.executed for one, reply in replies.items()}
        farthest = max(executed.values())
        left = any(reply.is_over and reply.executed < len(chunks[one]) for one, reply in replies.items())
        return {
            "obs": self._bodies(replies, wanted),
            "executed_steps": farthest,
            "stopped_early": left or farthest < max(map(len, chunks.values())),
            "executed_by_worker": executed,
        }

    async def kill(self, worker_ids: Sequence[str]) -> None:
        """End workers and forget which client's they were."""
        if self._announced is not None:
            self._announced.difference_update(worker_ids)
        self._stock_clients.forget(worker_ids)
        await self.pool.kill(worker_ids)

    async def load_config(self, config_path: object) -> None:
        """A job of one task, for the generation that came between: it announces workers as well."""
        await self.start_job({"config_path": [config_path]})
        self._announced = None

    async def start_job(self, data: Mapping[str, object]) -> None:
        """Another job in place of the present one."""
        async with self._switching:
            run = await asyncio.to_thread(self._jobs.run, self._jobs.read(data))
            self._announced = set()
            self._stock_clients.forget(self.pool.worker_ids)
            await self.pool.start(run)
            await run.find_finished()
            log.info("run %s: %s", run.job.run_id, run.job.in_a_line)

    async def status(self, *, refresh: bool) -> dict[str, Any]:
        """How far the job is."""
        run = self.pool.run
        if refresh:
            await run.find_finished()
        return run.status(self.pool.worker_ids)

    async def close(self) -> None:
        """End all workers; finished episodes keep their files."""
        await self.pool.close()

    def _bodies(self, replies: Mapping[str, WorkerReply], wanted: ReplyFormat, *, is_first: bool = False) -> Bodies:
        """Stock clients, which speak pickle, look for all their workers in every reply, whichever they moved."""
        run, body_format = self.pool.run, wanted.body_format
        bodies = {one: reply.as_body(run, body_format) for one, reply in replies.items()}
        if body_format is not BodyFormat.PICKLE:
            return bodies
        others = self._stock_clients.others(list(replies), self.pool.worker_ids)
        bodies |= {one: reply.as_body(run, body_format) for one, reply in self.pool.peek(others).items()}
        return self._stock_clients.fill_idle(bodies, run.name, is_first=is_first)


def _by_worker(chunk: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    """The actions of each worker, in order; a worker may be missing in some entries."""
    chunks: dict[str, list[object]] = {}
    for entry in chunk:
        for one, action in entry.items():
            chunks.setdefault(one, []).append(action)
    return chunks


class StockClients:
    """What GenManip's own clients need of a reply: all their workers, and an observation for each until all are done.

    Workers that were reset together belong to one client. Such a client stops as soon as its first worker has no
    observation, and leaves the episodes of the others unfinished. So a worker that has run out of episodes is shown
    what another one of its client sees, under an episode id of its own; the actions for it are ignored.
    """

    def __init__(self) -> None:
        self._together: dict[str, tuple[str, ...]] = {}
        self._shown: dict[str, str] = {}
        """Which worker's observations an idle worker is shown: a policy should not see now this robot, now that."""

    def reset_together(self, worker_ids: Sequence[str]) -> None:
        """These workers are one client's."""
        self._together |= dict.fromkeys(worker_ids, tuple(worker_ids))

    def forget(self, worker_ids: Iterable[str]) -> None:
        """These workers were killed."""
        for one in worker_ids:
            self._together.pop(one, None)

    def others(self, worker_ids: Sequence[str], existing: Sequence[str]) -> list[str]:
        """The other workers of the same client, as far as no other client has reset them since."""
        groups = {self._together[one] for one in worker_ids if one in self._together}
        others = (one for group in groups for one in group if self._together.get(one) == group)
        return [one for one in others if one in existing and one not in worker_ids]

    def fill_idle(self, bodies: Bodies, run_name: str, *, is_first: bool = False) -> Bodies:
        """The replies with observations for idle workers, unless all are idle; ``is_first`` after a reset."""
        busy = [one for one, body in bodies.items() if body["obs"] is not None]
        for one in busy or bodies:
            self._shown.pop(one, None)
        if not busy:
            return bodies
        return {
            one: body if one in busy else self._idle(one, bodies, busy, run_name, is_first)
            for one, body in bodies.items()
        }

    def _idle(self, worker: str, bodies: Bodies, busy: list[str], run_name: str, is_first: bool) -> dict[str, Any]:
        """With ``reset`` when what is shown changes, and once at the start: clients end the episode that was."""
        before = self._shown.get(worker)
        shown = self._shown[worker] = before if before in busy else busy[0]
        observation: dict[str, Any] = bodies[shown]["obs"]
        is_new = is_first or shown != before or observation["reset"]
        own = {"episode_id": f"{run_name}/waiting/{worker}", "reset": is_new}
        return {**bodies[worker], "obs": {**observation, **own}, "metric": None}
