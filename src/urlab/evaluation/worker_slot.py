"""A worker id: its process, its episode and its last reply. All methods are called on the server's event loop."""

import asyncio
import contextlib
import logging
from typing import Any, NamedTuple

from urlab.evaluation.actions import Action
from urlab.evaluation.http.told import Told
from urlab.evaluation.http.wire import Wire
from urlab.evaluation.problems import TimeLimit, UnknownWorker
from urlab.evaluation.run import Run
from urlab.evaluation.settings import TimeLimits
from urlab.evaluation.unit import Unit
from urlab.evaluation.worker_messages import Body, Failed, Flush, Letter, Seen, Step, WorkerSettings
from urlab.evaluation.worker_pipe import NoAnswer, PipeBroken
from urlab.evaluation.worker_process import WorkerProcess

log = logging.getLogger("urlab.evaluation")

Reply = dict[str, Any]


class EpisodeLost(Exception):
    """The process died or its episode failed; the text says how."""


class Wanted(NamedTuple):
    """How a reply is wanted: in which language, with the last observation of an episode or not."""

    wire: Wire
    terminal: bool = False


class Orders(NamedTuple):
    """Actions for the episode that was running when they were read; None: nothing is left to run."""

    unit: Unit | None
    actions: tuple[Action, ...] = ()


class Moved(NamedTuple):
    """``executed`` actions were carried out; ``is_over`` if the episode ended or began again."""

    executed: int
    is_over: bool


class _Kept(NamedTuple):
    """What the next reply says. ``observation`` is None when nothing is left to run."""

    observation: Told | None = None
    result: Reply | None = None
    warnings: tuple[str, ...] = ()

    def told(self, wire: Wire) -> Reply:
        reply = {"obs": _part(self.observation, wire), "episode_result": self._result(wire)}
        return reply | {"warning": "; ".join(self.warnings)} if self.warnings else reply

    def _result(self, wire: Wire) -> Reply | None:
        return None if self.result is None else {key: _part(one, wire) for key, one in self.result.items()}


class WorkerSlot:
    """Messages to its process go one at a time; a slot that was ended stays so.

    A process that dies is replaced: the same episode begins again, and the reply says so in ``warning``.
    """

    def __init__(self, worker_id: str, run: Run, settings: WorkerSettings, limits: TimeLimits) -> None:
        self.worker_id = worker_id
        self.hold_steps = 0
        self._run, self._settings, self._limits = run, settings, limits
        self._lock = asyncio.Lock()
        self._process: WorkerProcess | None = None
        self._is_running = self._is_ended = self._is_done = False
        self._is_told = True
        self._kept = _Kept()

    @property
    def pid(self) -> int | None:
        """Its process, if it has one."""
        return None if self._process is None else self._process.pid

    @property
    def unit(self) -> Unit | None:
        """The episode it is running."""
        return self._run.job.current(self.worker_id)

    async def reset(self, wanted: Wanted, hold_steps: int) -> None:
        """Begin its episode, or begin it again; the job's next one if it has none."""
        async with self._lock:
            self.hold_steps = hold_steps
            await self._begin(wanted)

    async def step(self, orders: Orders, wanted: Wanted) -> Moved:
        """Carry out ``orders``. When the episode ends, the next one has begun already: the reply has its first look.

        Orders for an episode that is no longer running are ignored: the reply shows what is.
        """
        async with self._lock:
            if not self._is_told:
                return Moved(0, is_over=True)
            if not self._is_running and not self._is_done:
                await self._begin(wanted, warning="the episode begins again: its worker was ended by a time limit")
                return Moved(0, is_over=True)
            if orders.unit is None or orders.unit != self.unit:
                return Moved(0, is_over=orders.unit is not None)
            return await self._step(orders, wanted)

    async def look(self, wanted: Wanted) -> Reply:
        """Its reply as of now; the result of an episode and a warning are told once.

        ``metric`` is None until nothing is left for the worker: the oldest clients stop as soon as there is one.
        """
        async with self._lock:
            told = self._kept.told(wanted.wire) | {"metric": self._metric()}
            self._kept, self._is_told = _Kept(self._kept.observation), True
            return told

    def glance(self, wanted: Wanted) -> Reply:
        """As `look`, whatever goes on, without what is told once."""
        return _Kept(self._kept.observation).told(wanted.wire) | {"metric": self._metric()}

    async def end(self) -> None:
        """Give its episode back and end its process, once it has finished its files.

        A process that is busy gets a moment to answer: whoever waits for it hears that the worker was ended.
        """
        self._is_ended = True
        patience = asyncio.get_running_loop().call_later(self._limits.busy_s, self._kill)
        async with self._lock:
            patience.cancel()
            self._run.job.give_back(self.worker_id)
            self._is_running = False
            process, self._process = self._process, None
            if process is not None:
                await process.end(self._limits.end_s)

    def _metric(self) -> Reply | None:
        return self._run.job.scores() if self._is_done else None

    async def _begin(self, wanted: Wanted, result: Reply | None = None, warning: str | None = None) -> None:
        """Episodes that are lost while they begin are tried again until the run gives them up."""
        self._is_running = self._is_done = False
        result = result or self._kept.result
        self._kept = self._kept._replace(result=result)
        while (begin := self._begin_message(wanted)) is not None:
            try:
                seen, body = await self._ask(begin, self._limits.reset_s)
            except EpisodeLost as lost:
                given_up = await self._lose(lost)
                warning, result = _after(lost, given_up), result or given_up
                continue
            self._is_running, self._is_told = True, False
            self._keep(seen, self._told(body, wanted), result, warning)
            return
        await self._flush()
        self._is_done = True
        self._keep(Seen(), None, result, warning)

    def _begin_message(self, wanted: Wanted) -> Letter | None:
        if self._is_ended:
            raise self._ended()
        return self._run.begin(self.worker_id, hold_steps=self.hold_steps, wire=wanted.wire)

    async def _step(self, orders: Orders, wanted: Wanted) -> Moved:
        log.debug("worker %s carries out %d actions", self.worker_id, len(orders.actions))
        step = Letter(Step(orders.actions, wanted.wire, terminal=wanted.terminal))
        try:
            seen, body = await self._ask(step, self._limits.step_s * max(1, len(orders.actions)))
        except EpisodeLost as lost:
            given_up = await self._lose(lost)
            await self._begin(wanted, given_up, _after(lost, given_up))
            return Moved(0, is_over=True)
        if seen.result is not None:
            await self._finish(seen, body, orders.unit, wanted)
            return Moved(seen.executed, is_over=True)
        self._keep(seen, self._told(body, wanted))
        return Moved(seen.executed, is_over=False)

    async def _finish(self, seen: Seen, body: Body, unit: Unit | None, wanted: Wanted) -> None:
        assert seen.result is not None
        self._note(seen.problems)
        await self._run.finish(self.worker_id, seen.result)
        told = {} if unit is None else self._run.episode_result(unit, seen.result)
        if wanted.terminal:
            told["terminal_obs"] = self._told(body, wanted)
        await self._begin(wanted, told)

    async def _flush(self) -> None:
        """Nothing is left to run: when a client hears so, the files are there."""
        if self._process is None:
            return
        with contextlib.suppress(EpisodeLost, TimeLimit):
            seen, _ = await self._ask(Letter(Flush()), self._limits.flush_s)
            self._note(seen.problems)

    def _told(self, body: Body, wanted: Wanted) -> Told:
        return Told(body, wanted.wire, has_pictures=self._settings.cameras)

    def _keep(
        self, seen: Seen, observation: Told | None, result: Reply | None = None, warning: str | None = None
    ) -> None:
        self._note(seen.problems)
        self._kept = _Kept(observation, result, (*((warning,) if warning else ()), *seen.problems))

    def _note(self, problems: tuple[str, ...]) -> None:
        for problem in problems:
            self._run.note(f"worker {self.worker_id}: {problem}")

    async def _ask(self, letter: Letter, limit_s: float) -> tuple[Seen, Body]:
        """The answer and its body; EpisodeLost when there is none to be had, TimeLimit when it takes too long."""
        process = await self._living()
        try:
            answer, body = await process.ask(letter, limit_s)
        except PipeBroken as broken:
            how = await process.how_it_died()
            self._kill()
            raise EpisodeLost(f"its worker died ({how})") from broken
        except NoAnswer as late:
            self._kill()
            given_up = await self._run.lose(self.worker_id, f"no answer within {limit_s:g} s")
            self._kept = self._kept._replace(result=self._kept.result or given_up)
            raise TimeLimit(
                f"worker {self.worker_id} timed out after {limit_s:g}s; its episode begins again with the next request"
            ) from late
        except asyncio.CancelledError:
            self._kill()
            raise
        if isinstance(answer, Failed):
            self._is_running = False
            raise EpisodeLost(f"its worker failed ({answer.reason})")
        return answer, body

    async def _lose(self, lost: EpisodeLost) -> Reply | None:
        """The result if the episode is given up; one whose worker was ended on purpose is not lost."""
        if self._is_ended:
            raise self._ended()
        return await self._run.lose(self.worker_id, str(lost))

    def _ended(self) -> UnknownWorker:
        return UnknownWorker(f"worker {self.worker_id} was ended; reset it to go on")

    async def _living(self) -> WorkerProcess:
        """Its process, which is started if there is none."""
        if self._process is None:
            self._process = await WorkerProcess.start(self._settings)
            if self._is_ended:
                raise EpisodeLost("its worker was ended")
        return self._process

    def _kill(self) -> None:
        """Whoever waits for its answer hears that it died."""
        process, self._process = self._process, None
        self._is_running = False
        if process is not None:
            process.kill()


def _after(lost: EpisodeLost, given_up: Reply | None) -> str:
    return f"the episode {'begins again' if given_up is None else 'is given up'}: {lost}"


def _part(value: Any, wire: Wire) -> Any:
    return value.part(wire) if isinstance(value, Told) else value
