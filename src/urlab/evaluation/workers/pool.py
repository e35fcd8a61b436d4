"""The workers of a server and the run they work on. Everything here is called on the server's event loop.

A `WorkerSlot` is a worker id: its process, its episode, its last reply. The `WorkerPool` has the slots, steps them side
by side and ends them. A slot's `reset`, `step` and `look` return the reply. What is delivered once (an episode's
result, a warning) stays until the pool has the replies of all workers of the request: a request that fails for one
worker loses nothing of the others.
"""

import asyncio
import contextlib
import logging
import pickle
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from urlab.errors import known
from urlab.evaluation.camera_config import CameraChoice
from urlab.evaluation.encoding import BodyFormat, EncodedObservation
from urlab.evaluation.episode_result import POLICY_FAILED, EpisodeResult
from urlab.evaluation.errors import RefusedRequest, UnknownWorker, WorkerTimeLimit
from urlab.evaluation.runs.job import ActiveRun, AttemptEnd, EpisodeKey
from urlab.evaluation.settings import FIRST_CLIENTS, ClientGeneration, MetricShape, ServerSettings, TimeLimits
from urlab.evaluation.simulation.actions import Action, ActionError, parse_action
from urlab.evaluation.workers.messages import (
    Begin,
    Body,
    Failed,
    Flush,
    GiveUp,
    PipeBroken,
    Step,
    WorkerAnswer,
    WorkerFrame,
    WorkerSettings,
)
from urlab.evaluation.workers.process import NoAnswer, WorkerProcess
from urlab.evaluation.workers.ray_worker import RayWorker

log = logging.getLogger("urlab.evaluation")

T = TypeVar("T")

_LONGEST_DETAIL = 1000
_TIMED_OUT = "the episode begins again: its worker was ended by a time limit"


class EpisodeLost(Exception):
    """The process died or its episode failed; the text says how."""


class ReplyFormat(NamedTuple):
    """How a reply is wanted: in which format, with the last observation of an episode or not."""

    body_format: BodyFormat
    terminal: bool = False


class EpisodeActions(NamedTuple):
    """Actions for the episode that was running when they were read; ``key`` is None if nothing is left to run."""

    key: EpisodeKey | None
    actions: tuple[Action, ...] = ()


class EndedEpisode(NamedTuple):
    """An episode's result and, if it was asked for, its last observation."""

    result: EpisodeResult
    terminal: EncodedObservation | None = None


@dataclass(frozen=True)
class WorkerReply:
    """Where a worker stands. ``observation`` is None when nothing is left to run; then ``is_done``.

    ``ended`` and ``warnings`` are delivered once. ``executed`` actions of the request were carried out; ``is_over`` if
    the episode that they were for has ended or begun again.
    """

    observation: EncodedObservation | None = None
    ended: EndedEpisode | None = None
    warnings: tuple[str, ...] = ()
    is_done: bool = False
    executed: int = 0
    is_over: bool = False

    def as_body(self, run: ActiveRun, body_format: BodyFormat, shape: MetricShape) -> dict[str, Any]:
        """The worker's part of a reply in ``body_format``, as of now; ``shape`` is that of the ``metric``.

        ``metric`` is None until nothing is left for the worker: the oldest clients stop as soon as there is one.
        """
        observation = None if self.observation is None else self.observation.embedded_in(body_format)
        body = {"obs": observation, "episode_result": self._result(run, body_format)}
        if self.warnings:
            body["warning"] = "; ".join(self.warnings)
        return body | {"metric": run.job.metric(shape) if self.is_done else None}

    def _result(self, run: ActiveRun, body_format: BodyFormat) -> dict[str, Any] | None:
        if self.ended is None:
            return None
        result, terminal = self.ended.result.as_reply(run.name), self.ended.terminal
        return result if terminal is None else result | {"terminal_obs": terminal.embedded_in(body_format)}


class WorkerSlot:
    """A worker id. Messages to its process go one at a time; a slot that was ended stays so.

    A process that dies is replaced: the same episode begins again, and the reply says so in ``warnings``.
    """

    def __init__(
        self,
        worker_id: str,
        run: ActiveRun,
        settings: WorkerSettings,
        limits: TimeLimits,
        kind: type[WorkerProcess] | type[RayWorker] = WorkerProcess,
    ) -> None:
        """``kind`` is where it works: a process of this machine, or an actor of a cluster."""
        self.worker_id = worker_id
        self._run, self._settings, self._limits, self._kind = run, settings, limits, kind
        self.generation = FIRST_CLIENTS
        self._steps = 0
        """Carried out in the attempt that is running."""
        self._lock = asyncio.Lock()
        self._process: WorkerProcess | RayWorker | None = None
        self._is_running = self._is_ended = False
        self._is_delivered = True
        """False from the begin of an episode until its first observation has been delivered."""
        self._reply = WorkerReply()
        self._warned: EpisodeKey | None = None

    @property
    def key(self) -> EpisodeKey | None:
        """The episode it is running."""
        return self._run.job.current(self.worker_id)

    async def reset(self, wanted: ReplyFormat, generation: ClientGeneration) -> WorkerReply:
        """Begin its episode, or begin it again; the job's next one if it has none."""
        async with self._lock:
            self.generation = generation
            await self._abandon(AttemptEnd.RESET)
            return await self._begin(wanted)

    async def step(self, request: EpisodeActions, wanted: ReplyFormat) -> WorkerReply:
        """Carry out ``request``. When the episode ends, the next one has begun: the reply has its first observation.

        A request for an episode that is no longer running is ignored: the reply shows what is.
        """
        async with self._lock:
            if not self._is_delivered:
                return self._not_moved(is_over=True)
            if not self._is_running and not self._reply.is_done:
                return await self._begin(wanted, warning=_TIMED_OUT)
            if request.key is None or request.key != self.key:
                return self._not_moved(is_over=request.key is not None)
            return await self._step(request, wanted)

    async def give_up(self, detail: str, wanted: ReplyFormat) -> WorkerReply:
        """End the episode that is running as failed, because its policy has; then as after a step."""
        async with self._lock:
            if not self._is_running:
                return self._not_moved(is_over=True)
            give_up = GiveUp(POLICY_FAILED, detail[:_LONGEST_DETAIL], wanted.body_format, terminal=wanted.terminal)
            return await self._carry_out(WorkerFrame(give_up), self._limits.step_s, wanted)

    async def look(self) -> WorkerReply:
        """Where it stands, once what is under way is done."""
        async with self._lock:
            return self._reply

    def peek(self) -> WorkerReply:
        """Where it stands whatever is under way, without what is delivered once."""
        return replace(self._reply, ended=None, warnings=())

    def delivered(self, reply: WorkerReply) -> None:
        """The client gets ``reply``: what is delivered once is dropped."""
        if self._reply is not reply:
            return
        self._is_delivered = True
        if reply.ended is not None or reply.warnings:
            self._reply = self.peek()

    async def end(self) -> None:
        """Give its episode back and end its process, once it has finished its files.

        A process that is busy gets a moment to answer; a request that waits for it longer fails with UnknownWorker.
        """
        self._is_ended = True
        patience = asyncio.get_running_loop().call_later(self._limits.busy_s, self._kill)
        async with self._lock:
            patience.cancel()
            await self._abandon(AttemptEnd.KILL)
            self._run.job.give_back(self.worker_id)
            self._is_running = False
            process, self._process = self._process, None
            if process is not None:
                await process.end(self._limits.end_s)

    async def _abandon(self, how: AttemptEnd) -> None:
        """The attempt that is running comes to no result; one without a step is none."""
        steps, self._steps = self._steps, 0
        if steps and self.key is not None:
            await self._run.abandon(self.worker_id, how, steps)

    def _not_moved(self, *, is_over: bool) -> WorkerReply:
        self._reply = replace(self._reply, executed=0, is_over=is_over)
        return self._reply

    async def _begin(
        self, wanted: ReplyFormat, ended: EndedEpisode | None = None, warning: str | None = None, executed: int = 0
    ) -> WorkerReply:
        """Episodes that are lost while they begin are tried again until the run gives them up."""
        self._is_running, self._steps = False, 0
        ended = ended or self._reply.ended
        self._reply = replace(self._reply, ended=ended, is_done=False)
        while (begin := self._begin_frame(wanted)) is not None:
            try:
                answer, body = await self._request(begin, self._limits.reset_s)
            except EpisodeLost as lost:
                given_up = await self._lose(lost)
                warning, ended = _lost_in_words(lost, given_up), ended or given_up
                continue
            self._is_running, self._is_delivered = True, False
            warnings = self._warnings(answer, warning)
            self._reply = WorkerReply(self._encoded(body, wanted), ended, warnings, executed=executed, is_over=True)
            return self._reply
        await self._flush()
        warnings = () if warning is None else (warning,)
        self._reply = WorkerReply(None, ended, warnings, is_done=True, executed=executed, is_over=True)
        return self._reply

    def _begin_frame(self, wanted: ReplyFormat) -> WorkerFrame | None:
        """The worker's episode from its start; None when nothing is left for it."""
        if self._is_ended:
            raise self._ended()
        run = self._run
        key = run.job.take(self.worker_id)
        if key is None:
            return None
        log.debug("worker %s begins %s/%s", self.worker_id, key.task, key.seed_text)
        folder = str(run.episode_folder(key))
        hold_steps, retries = self.generation.hold_steps, run.retries(key)
        begin = Begin(key.seed, hold_steps, run.episode_id(key), folder, wanted.body_format, retries)
        return WorkerFrame(begin, pickle.dumps(run.tasks[key.task]))

    async def _step(self, request: EpisodeActions, wanted: ReplyFormat) -> WorkerReply:
        log.debug("worker %s carries out %d actions", self.worker_id, len(request.actions))
        hold_steps = self.generation.hold_steps
        step = WorkerFrame(Step(request.actions, wanted.body_format, hold_steps, terminal=wanted.terminal))
        return await self._carry_out(step, self._limits.step_s * max(1, len(request.actions)), wanted)

    async def _carry_out(self, frame: WorkerFrame, limit_s: float, wanted: ReplyFormat) -> WorkerReply:
        try:
            answer, body = await self._request(frame, limit_s)
        except EpisodeLost as lost:
            given_up = await self._lose(lost)
            return await self._begin(wanted, given_up, _lost_in_words(lost, given_up))
        self._steps += answer.executed
        warnings = self._warnings(answer)
        if answer.result is not None:
            await self._run.finish(self.worker_id, answer.result)
            ended = EndedEpisode(answer.result, self._encoded(body, wanted) if wanted.terminal else None)
            about = "; ".join(answer.warnings) or None
            return await self._begin(wanted, ended, about, executed=answer.executed)
        self._reply = WorkerReply(self._encoded(body, wanted), None, warnings, executed=answer.executed)
        return self._reply

    async def _flush(self) -> None:
        """Nothing is left to run: when a client gets to know, the files are there."""
        if self._process is None:
            return
        with contextlib.suppress(EpisodeLost, WorkerTimeLimit):
            answer, _ = await self._request(WorkerFrame(Flush()), self._limits.flush_s)
            self._warnings(answer)

    def _encoded(self, body: Body, wanted: ReplyFormat) -> EncodedObservation:
        return EncodedObservation(body, wanted.body_format, has_pictures=self._settings.cameras)

    def _warnings(self, answer: WorkerAnswer, warning: str | None = None) -> tuple[str, ...]:
        """For the reply; the run notes the problems too, and once per episode that there were warnings."""
        for problem in answer.problems:
            self._run.note(f"worker {self.worker_id}: {problem}")
        if answer.warnings and self.key is not None and self._warned != self.key:
            self._warned = self.key
            self._run.note(f"worker {self.worker_id}, {self.key}: {answer.warnings[0]}")
        about = answer.warnings + answer.problems
        return about if warning is None else (warning, *about)

    async def _request(self, frame: WorkerFrame, limit_s: float) -> tuple[WorkerAnswer, Body]:
        """The answer and its body; EpisodeLost when there is none to be had, WorkerTimeLimit when it takes too long."""
        process = await self._living()
        try:
            answer, body = await process.request(frame, limit_s)
        except PipeBroken as broken:
            how = await process.how_it_died()
            self._kill()
            raise EpisodeLost(f"its worker died ({how})") from broken
        except NoAnswer as late:
            self._kill()
            given_up = await self._run.lose(self.worker_id, f"no answer within {limit_s:g} s", self._steps)
            self._steps = 0
            if given_up is not None and self._reply.ended is None:
                self._reply = replace(self._reply, ended=EndedEpisode(given_up))
            raise WorkerTimeLimit(
                f"worker {self.worker_id} timed out after {limit_s:g}s; its episode begins again with the next request"
            ) from late
        except asyncio.CancelledError:
            self._kill()
            raise
        if isinstance(answer, Failed):
            self._is_running = False
            raise EpisodeLost(f"its worker failed ({answer.reason})")
        return answer, body

    async def _lose(self, lost: EpisodeLost) -> EndedEpisode | None:
        """The result if the episode is given up; one whose worker was ended on purpose is not lost."""
        if self._is_ended:
            raise self._ended()
        given_up = await self._run.lose(self.worker_id, str(lost), self._steps)
        self._steps = 0
        return None if given_up is None else EndedEpisode(given_up)

    def _ended(self) -> UnknownWorker:
        return UnknownWorker(f"worker {self.worker_id} was ended; reset it to go on")

    async def _living(self) -> WorkerProcess | RayWorker:
        """Its process, which is started if there is none."""
        if self._process is None:
            self._process = await self._kind.start(self._settings)
            if self._is_ended:
                raise EpisodeLost("its worker was ended")
        return self._process

    def _kill(self) -> None:
        """A request that waits for its answer fails as if the process had died."""
        process, self._process = self._process, None
        self._is_running = False
        if process is not None:
            process.kill()


def _lost_in_words(lost: EpisodeLost, given_up: EndedEpisode | None) -> str:
    return f"the episode {'begins again' if given_up is None else 'is given up'}: {lost}"


class WorkerPool:
    """Starts workers when they are reset, steps them side by side, ends them. A bad request moves no worker."""

    def __init__(self, settings: ServerSettings, run: ActiveRun) -> None:
        self.run = run
        self._settings = settings
        self._slots: dict[str, WorkerSlot] = {}
        self._ending: dict[str, asyncio.Event] = {}

    @property
    def worker_ids(self) -> list[str]:
        """The workers that exist."""
        return list(self._slots)

    async def reset(self, generations: Mapping[str, ClientGeneration], wanted: ReplyFormat) -> dict[str, WorkerReply]:
        """Begin an episode with each worker, for a client of that generation; those that do not exist are made."""
        for ending in [self._ending[one] for one in generations if one in self._ending]:
            await ending.wait()
        self._make(generations)
        slots = [self._slot(one) for one in generations]
        return await _replies(slots, [slot.reset(wanted, generations[slot.worker_id]) for slot in slots])

    def generation(self, worker_id: str) -> ClientGeneration:
        """Of the client that the worker works for."""
        return self._slot(worker_id).generation

    def set_generation(self, worker_id: str, generation: ClientGeneration) -> ClientGeneration | None:
        """What is known of the worker's client by now; what was before, or None if there is no such worker."""
        slot = self._slots.get(worker_id)
        if slot is None:
            return None
        before, slot.generation = slot.generation, generation
        return before

    def metric_shape(self, worker_id: str) -> MetricShape:
        """As the worker's client knows it."""
        return self._slot(worker_id).generation.metric

    async def step(self, chunks: Mapping[str, Sequence[object]], wanted: ReplyFormat) -> dict[str, WorkerReply]:
        """Actions for each of some workers, at the same time; each stops at the end of its own episode.

        So what a worker does never depends on which others are in the request.
        """
        slots = [self._slot(one) for one in chunks]
        requests = [self._request(slot, chunks[slot.worker_id]) for slot in slots]
        steps = [slot.step(request, wanted) for slot, request in zip(slots, requests, strict=True)]
        return await _replies(slots, steps)

    async def give_up(self, worker_ids: Sequence[str], detail: str, wanted: ReplyFormat) -> dict[str, WorkerReply]:
        """End the episodes of some workers as failed by their policies, and begin the next ones."""
        slots = [self._slot(one) for one in dict.fromkeys(worker_ids)]
        return await _replies(slots, [slot.give_up(detail, wanted) for slot in slots])

    async def look(self, worker_ids: Sequence[str]) -> dict[str, WorkerReply]:
        """Where the workers stand."""
        slots = [self._slot(one) for one in dict.fromkeys(worker_ids)]
        return await _replies(slots, [slot.look() for slot in slots])

    def peek(self, worker_ids: Sequence[str]) -> dict[str, WorkerReply]:
        """As `look`, but without what is delivered once, and immediately: these workers may be another request's."""
        return {one: self._slot(one).peek() for one in worker_ids}

    async def kill(self, worker_ids: Sequence[str]) -> None:
        """End workers; those that do not exist are ended already."""
        await _all([self._end(self._slots.pop(one)) for one in dict.fromkeys(worker_ids) if one in self._slots])

    async def close(self) -> None:
        """End all workers, and wait for those that are ending already."""
        await self.kill(self.worker_ids)
        for ending in list(self._ending.values()):
            await ending.wait()

    async def start(self, run: ActiveRun) -> None:
        """End all workers and go on with another run."""
        while self._slots:
            await self.close()
        self.run = run

    async def _end(self, slot: WorkerSlot) -> None:
        """A reset of a worker of the same id waits for it: both would have the same episode."""
        self._ending[slot.worker_id] = ended = asyncio.Event()
        try:
            await slot.end()
        finally:
            self._ending.pop(slot.worker_id, None)
            ended.set()

    def _request(self, slot: WorkerSlot, raws: Sequence[object]) -> EpisodeActions:
        if slot.key is None:
            return EpisodeActions(None)
        embodiment, is_rel = self.run.embodiment(slot.key), self._settings.is_rel
        is_rel = slot.generation.is_rel if is_rel is None else is_rel
        try:
            return EpisodeActions(
                slot.key, tuple([parse_action(raw, embodiment, default_is_rel=is_rel) for raw in raws])
            )
        except ActionError as problem:
            raise RefusedRequest(f"worker {slot.worker_id}: {problem.message}") from problem

    def _slot(self, worker_id: str) -> WorkerSlot:
        slot = self._slots.get(worker_id)
        if slot is None:
            raise UnknownWorker(
                f"there is no worker {worker_id[:40]!r}: reset it first; workers that exist: {known(self._slots)}"
            )
        return slot

    def _make(self, worker_ids: Iterable[str]) -> None:
        missing = [one for one in worker_ids if one not in self._slots]
        count, limit = len(self._slots) + len(missing), self._settings.workers
        if count > limit:
            raise RefusedRequest(
                f"that would be {count} workers and {limit} are allowed: start the server with --workers {count}, "
                f"or kill some; workers that exist: {known(self._slots)}"
            )
        cameras = self._settings.cameras
        videos = self._settings.videos and cameras
        choice = self._settings.camera_choice or CameraChoice()
        folder = self._settings.live_folder
        live_folder = None if folder is None else str(folder)
        settings = WorkerSettings(cameras, self._settings.privileged, videos, choice, live_folder)
        kind = WorkerProcess if self._settings.ray is None else RayWorker
        for one in missing:
            self._slots[one] = WorkerSlot(one, self.run, settings, self._settings.limits, kind)


async def _replies(slots: Sequence[WorkerSlot], works: Sequence[Awaitable[WorkerReply]]) -> dict[str, WorkerReply]:
    """The replies of all slots, once all have one; if one fails, the others keep theirs for the next request."""
    replies = await _all(works)
    for slot, reply in zip(slots, replies, strict=True):
        slot.delivered(reply)
    return {slot.worker_id: reply for slot, reply in zip(slots, replies, strict=True)}


async def _all(works: Sequence[Awaitable[T]]) -> list[T]:
    """Everything at once; when something fails the rest is finished first."""
    if not works:
        return []
    others = [asyncio.ensure_future(one) for one in works[1:]]
    try:
        first = await works[0]
    finally:
        for one in others:
            await _settled(one)
    return [first, *(one.result() for one in others)]


async def _settled(task: "asyncio.Future[T]") -> None:
    """Until it has ended, in whatever way; what it raised counts as handled."""
    if not task.done():
        await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()
