"""A worker id: its process, its episode and its last reply. All methods are called on the server's event loop."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar, TypeVarTuple

from urlab.evaluation.actions import Action
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.http.encoding import as_text
from urlab.evaluation.problems import TimeLimit, UnknownWorker
from urlab.evaluation.run import Run
from urlab.evaluation.settings import TimeLimits
from urlab.evaluation.unit import Unit
from urlab.evaluation.worker_messages import Begin, Failed, Flush, Message, Seen, Step, WorkerSettings
from urlab.evaluation.worker_process import WorkerDied, WorkerProcess

Reply = dict[str, Any]
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class EpisodeLost(Exception):
    """The process died or its episode failed; the text says how."""


@dataclass(frozen=True)
class Wanted:
    """How a reply is wanted: array data as text or bytes, with the last observation of an episode or not."""

    text: bool
    terminal: bool = False


@dataclass(frozen=True)
class Orders:
    """Actions for the episode that was running when they were read; None: nothing is left to run."""

    unit: Unit | None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True)
class Moved:
    """``executed`` actions were carried out; ``is_over`` if the episode ended or began again."""

    executed: int
    is_over: bool


class WorkerSlot:
    """Messages to its process go one at a time, through a thread of its own; a slot that was ended stays so.

    A process that dies is replaced: the same episode begins again, and the reply says so in ``warning``.
    """

    def __init__(self, worker_id: str, run: Run, settings: WorkerSettings, limits: TimeLimits) -> None:
        self.worker_id = worker_id
        self.hold_steps = 0
        self._run, self._settings, self._limits = run, settings, limits
        self._lock = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"urlab-worker-{worker_id[:16]}")
        self._process: WorkerProcess | None = None
        self._answering: asyncio.Future[Any] | None = None
        self._is_running = self._is_ended = False
        self._reply: Reply = {"obs": None, "metric": None, "episode_result": None}
        self._has_text = True

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
            if orders.unit is None or orders.unit != self.unit:
                return Moved(0, is_over=orders.unit is not None)
            if not self._is_running:
                await self._begin(wanted, warning="the episode begins again: its worker was ended by a time limit")
                return Moved(0, is_over=True)
            return await self._step(orders, wanted)

    async def look(self, wanted: Wanted) -> Reply:
        """Its reply as of now; the result of an episode and a warning are told once.

        ``metric`` is None until nothing is left for the worker: the oldest clients stop as soon as there is one.
        """
        async with self._lock:
            if wanted.text and not self._has_text:
                self._reply, self._has_text = as_text(self._reply), True
            reply = self._reply
            self._reply = {"obs": reply["obs"], "metric": None, "episode_result": None}
            return {**reply, "metric": self._run.job.scores() if reply["obs"] is None else None}

    async def end(self) -> None:
        """Give its episode back and end its process, once it has finished its files.

        A process that is busy gets a moment to answer: whoever waits for it hears that the worker was ended.
        """
        self._is_ended = True
        await self._interrupt()
        async with self._lock:
            self._run.job.give_back(self.worker_id)
            self._is_running = False
            process, self._process = self._process, None
            if process is not None:
                await self._in_thread(process.end, self._limits.end_s)
            self._thread.shutdown(wait=False)

    async def _interrupt(self) -> None:
        answering, process = self._answering, self._process
        if answering is None or process is None or answering.done():
            return
        await asyncio.wait((answering,), timeout=self._limits.busy_s)
        if not answering.done():
            process.kill()
            await asyncio.wait((answering,))

    async def _begin(self, wanted: Wanted, result: Reply | None = None, warning: str | None = None) -> None:
        """Episodes that are lost while they begin are tried again until the run gives them up."""
        self._is_running = False
        while (begin := self._begin_message(wanted)) is not None:
            try:
                seen = await self._ask(begin, self._limits.reset_s)
            except EpisodeLost as lost:
                warning = f"the episode begins again: {lost}"
                await self._run.lose(self.worker_id, str(lost))
                continue
            self._is_running = True
            self._keep(seen, wanted, result, warning)
            return
        await self._flush()
        self._keep(Seen(), wanted, result, warning)

    def _begin_message(self, wanted: Wanted) -> Begin | None:
        if self._is_ended:
            raise UnknownWorker(f"worker {self.worker_id} was ended; reset it to go on")
        return self._run.begin(self.worker_id, hold_steps=self.hold_steps, text=wanted.text)

    async def _step(self, orders: Orders, wanted: Wanted) -> Moved:
        message = Step(orders.actions, wanted.text, terminal=wanted.terminal)
        try:
            seen = await self._ask(message, self._limits.step_s * max(1, len(orders.actions)))
        except EpisodeLost as lost:
            await self._run.lose(self.worker_id, str(lost))
            await self._begin(wanted, warning=f"the episode begins again: {lost}")
            return Moved(0, is_over=True)
        if seen.result is not None:
            await self._finish(seen, seen.result, orders.unit, wanted)
            return Moved(seen.executed, is_over=True)
        self._keep(seen, wanted)
        return Moved(seen.executed, is_over=False)

    async def _finish(self, seen: Seen, result: EpisodeResult, unit: Unit | None, wanted: Wanted) -> None:
        self._note(seen.problems)
        await self._run.finish(self.worker_id, result)
        told = {} if unit is None else self._run.episode_result(unit, result)
        if wanted.terminal:
            told["terminal_obs"] = seen.observation
        await self._begin(wanted, told)

    async def _flush(self) -> None:
        """Nothing is left to run: when a client hears so, the files are there."""
        if self._process is None:
            return
        with contextlib.suppress(EpisodeLost, TimeLimit):
            self._note((await self._ask(Flush(), self._limits.flush_s)).problems)

    def _keep(self, seen: Seen, wanted: Wanted, result: Reply | None = None, warning: str | None = None) -> None:
        self._note(seen.problems)
        self._reply = {"obs": seen.observation, "metric": None, "episode_result": result}
        warnings = [*([warning] if warning else []), *seen.problems]
        if warnings:
            self._reply["warning"] = "; ".join(warnings)
        self._has_text = wanted.text

    def _note(self, problems: tuple[str, ...]) -> None:
        for problem in problems:
            self._run.note(f"worker {self.worker_id}: {problem}")

    async def _ask(self, message: Message, limit_s: float) -> Seen:
        """The answer; EpisodeLost when there is none to be had, TimeLimit when it takes too long."""
        if self._process is None:
            self._process = await self._in_thread(WorkerProcess, self._settings)
        answering = asyncio.get_running_loop().run_in_executor(self._thread, self._process.ask, message)
        self._answering = answering
        await asyncio.wait((answering,), timeout=limit_s)
        if not answering.done():
            await self._drop(answering)
            await self._run.lose(self.worker_id, f"no answer within {limit_s:g} s")
            raise TimeLimit(
                f"worker {self.worker_id} timed out after {limit_s:g}s; its episode begins again with the next request"
            )
        try:
            answer = answering.result()
        except WorkerDied as died:
            await self._drop(None)
            raise EpisodeLost(f"its worker died ({died})") from died
        if isinstance(answer, Failed):
            self._is_running = False
            raise EpisodeLost(f"its worker failed ({answer.reason})")
        return answer

    async def _drop(self, answering: "asyncio.Future[Any] | None") -> None:
        process, self._process = self._process, None
        self._is_running = False
        if process is None:
            return
        process.kill()
        if answering is not None:
            with contextlib.suppress(WorkerDied):
                await answering
        process.end(0.0)

    async def _in_thread(self, function: Callable[[*Ts], T], *arguments: *Ts) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
