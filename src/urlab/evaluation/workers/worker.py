"""A worker process: one simulation at a time, driven through a pipe.

Run as ``python -m urlab.evaluation.workers.worker FD``. It ends on the message `Stop`, and when its server is gone in
whatever way: the pipe breaks, and a thread watches it even while physics or drawing is busy.
"""

import contextlib
import gc
import logging
import os
import pickle
import select
import signal
import socket
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from urlab.evaluation.embodiments import EMBODIMENTS
from urlab.evaluation.encoding import BodyFormat, EncodedObservation
from urlab.evaluation.episode_result import Retries
from urlab.evaluation.simulation.actions import Action
from urlab.evaluation.simulation.episode import Episode, Observation
from urlab.evaluation.simulation.simulation import Simulation
from urlab.evaluation.tasks.task import Task
from urlab.evaluation.workers.evidence import Evidence, EvidenceWriter
from urlab.evaluation.workers.live import LiveFile
from urlab.evaluation.workers.messages import (
    Begin,
    Failed,
    Flush,
    GiveUp,
    PipeBroken,
    Step,
    Stop,
    WorkerAnswer,
    WorkerFrame,
    WorkerPipe,
    WorkerSettings,
)

log = logging.getLogger("urlab.evaluation.worker")

_LAST_MOMENT_S = 3.0


class Worker:
    """Answers messages, one after the other. One thread."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._writer = EvidenceWriter()
        self._simulation: Simulation | None = None
        self._episode: Episode | None = None
        self._evidence: Evidence | None = None
        self._retries = Retries()
        self._live = None if settings.live_folder is None else LiveFile(Path(settings.live_folder))

    def answer(self, frame: WorkerFrame) -> WorkerFrame:
        """Do what ``frame`` says. Whatever goes wrong in an episode becomes `Failed`, and the next may begin."""
        try:
            return self._do(frame)
        except Exception as problem:
            log.exception("the episode failed")
            self._give_up()
            self._close_simulation()
            return WorkerFrame(Failed(f"{type(problem).__name__}: {problem}"[:500]))

    def close(self) -> None:
        """Give up what is running; keep what is finished."""
        self._give_up()
        self._writer.close()
        self._close_simulation()
        if self._live is not None:
            self._live.remove()

    def _do(self, frame: WorkerFrame) -> WorkerFrame:
        match frame.message:
            case Begin() as begin:
                return self._begin(begin, pickle.loads(frame.body))
            case Step() as step:
                return self._step(step)
            case GiveUp() as given_up:
                return self._fail(given_up)
            case Flush():
                self._writer.flush()
                return WorkerFrame(WorkerAnswer(problems=self._writer.take_problems()))
            case other:
                raise ValueError(f"{type(other).__name__} has no answer")

    def _begin(self, begin: Begin, task: Task) -> WorkerFrame:
        self._give_up()
        settings = self._settings
        episode = Episode(
            task,
            begin.seed,
            self._simulation_of(task),
            hold_steps=begin.hold_steps,
            num_steps=task.num_steps,
            episode_id=begin.episode_id,
            cameras=settings.cameras,
            privileged=settings.privileged,
        )
        observation = episode.reset()
        videos = settings.videos and settings.cameras
        self._episode, self._evidence = episode, Evidence(episode, Path(begin.folder), self._writer, videos=videos)
        self._evidence.add_pictures(observation)
        self._retries = begin.retries
        self._tell()
        return self._observed(observation, begin.body_format)

    def _step(self, step: Step) -> WorkerFrame:
        episode, evidence = self._running()
        episode.hold_for(step.hold_steps)
        executed, warning = 0, None
        for action in step.actions:
            episode.advance(action)
            executed += 1
            evidence.add(action)
            self._tell()
            warning = warning or _beyond_range(episode, action)
            if episode.done:
                break
            if executed < len(step.actions):
                evidence.add_overview()
        warnings = () if warning is None else (warning,)
        if episode.done:
            return self._ended(step, executed, warnings)
        observation = episode.observe()
        evidence.add_pictures(observation)
        return self._observed(observation, step.body_format, executed, warnings)

    def _tell(self) -> None:
        """Those who watch see the step that was just made."""
        if self._live is not None and self._episode is not None:
            self._live.tell(self._episode)

    def _fail(self, given_up: GiveUp) -> WorkerFrame:
        self._running()[0].fail(given_up.reason)
        self._tell()
        return self._ended(given_up, 0, detail=given_up.detail)

    def _running(self) -> tuple[Episode, Evidence]:
        if self._episode is None or self._evidence is None:
            raise ValueError("no episode is running")
        return self._episode, self._evidence

    def _ended(
        self, asked: Step | GiveUp, executed: int, warnings: tuple[str, ...] = (), detail: str | None = None
    ) -> WorkerFrame:
        episode, evidence = self._running()
        terminal = episode.observe()
        evidence.add_pictures(terminal)
        result = episode.result
        if result is None:
            raise ValueError("the episode is not done")
        result = replace(result, retries=self._retries, detail=detail)
        evidence.finish(terminal, result)
        self._episode = self._evidence = None
        reply = WorkerAnswer(result, executed, self._writer.take_problems(), warnings)
        return WorkerFrame(reply, self._encoded(terminal, asked.body_format) if asked.terminal else b"")

    def _observed(
        self, observation: Observation, body_format: BodyFormat, executed: int = 0, warnings: tuple[str, ...] = ()
    ) -> WorkerFrame:
        reply = WorkerAnswer(None, executed, self._writer.take_problems(), warnings)
        return WorkerFrame(reply, self._encoded(observation, body_format))

    def _encoded(self, observation: Observation, body_format: BodyFormat) -> bytes:
        return EncodedObservation.encode(observation, body_format, has_pictures=self._settings.cameras)

    def _simulation_of(self, task: Task) -> Simulation:
        """Compiling takes longer than a reset: a scene is kept until another task comes. A new job has new workers."""
        if self._simulation is None or self._simulation.task.name != task.name:
            self._close_simulation()
            robot = EMBODIMENTS[task.embodiment]
            mounts = self._settings.camera_choice.mounts(robot.name, task.cameras or robot.cameras)
            self._simulation = Simulation(task, replace(robot, cameras=mounts), cameras=self._settings.cameras)
        return self._simulation

    def _close_simulation(self) -> None:
        if self._simulation is not None:
            self._simulation.close()
        self._simulation = None

    def _give_up(self) -> None:
        if self._evidence is not None:
            self._evidence.discard()
        self._episode = self._evidence = None


def _beyond_range(episode: Episode, action: Action) -> str | None:
    """A sentence if a joint is commanded so far beyond its range that the action cannot mean that."""
    found = episode.simulation.far_beyond_range()
    if found is None:
        return None
    name, commanded_rad, (low_rad, high_rad) = found
    hint = "are its units radians?"
    if action.is_rel:
        hint = "are the actions absolute? Then send is_rel false, or start the server with --absolute"
    return (
        f"{name} is commanded to {commanded_rad:.2f} rad, more than half a turn beyond its range of {low_rad:.2f} to "
        f"{high_rad:.2f} rad, where it stops; {hint}"
    )


def serve(pipe: WorkerPipe) -> None:
    """Answer what comes through ``pipe`` until `Stop` or its end."""
    worker = Worker(pipe.receive().message)
    try:
        while not isinstance((frame := pipe.receive()).message, Stop):
            pipe.send(worker.answer(frame))
    except PipeBroken:
        log.info("the server is gone")
    finally:
        worker.close()


def _end_with_server(pipe: WorkerPipe) -> None:
    """Wait for the other end to hang up, however busy the rest of the process is; files get a moment to be finished."""
    poller = select.poll()
    poller.register(pipe.fileno(), select.POLLRDHUP)
    poller.poll()
    time.sleep(_LAST_MOMENT_S)
    os._exit(1)


def _schedule_as_batch() -> None:
    """A worker computes: it must not take the core from the server that wakes it, and is about to wake others.

    Kept without a figure of its own: it matters when there are more workers than cores, which no benchmark has.
    """
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def main() -> None:
    """Entry point of the process; the argument is the descriptor of its end of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _schedule_as_batch()
    gc.freeze()
    logging.basicConfig(level=logging.WARNING, format="worker %(process)d: %(message)s")
    pipe = WorkerPipe(socket.socket(fileno=int(sys.argv[1])))
    threading.Thread(target=_end_with_server, args=(pipe,), daemon=True).start()
    serve(pipe)


if __name__ == "__main__":
    main()
