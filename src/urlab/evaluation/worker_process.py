"""A worker process as the server sees it: messages out, answers back, and an end that is always reached."""

import contextlib
import logging
import os
import socket
import subprocess
import sys
from multiprocessing.connection import Connection

from urlab.evaluation.worker_messages import Answer, Message, Stop, WorkerSettings

log = logging.getLogger("urlab.evaluation")

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Workers are the parallelism; a pool of threads in each would only make them fight for cores."""


class WorkerDied(Exception):
    """The process has ended; the text says how."""


class WorkerProcess:
    """Starts at once and loads in its own time. One thread at a time may call `ask`; any may call `kill`."""

    def __init__(self, settings: WorkerSettings) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "urlab.evaluation.worker", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env={**_ONE_THREAD, **os.environ},
            )
        self._pipe = Connection(ours.detach())
        self._send(settings)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """True while the process runs."""
        return self._process.poll() is None

    def ask(self, message: Message) -> Answer:
        """The answer to ``message``; WorkerDied if the process ends instead. No time limit: `kill` ends the wait."""
        self._send(message)
        try:
            answer: Answer = self._pipe.recv()
        except (EOFError, OSError) as problem:
            raise WorkerDied(self._how_it_died()) from problem
        return answer

    def end(self, grace_s: float) -> None:
        """Let it finish its files, then end it in any case. Nobody may be asking it anything."""
        with contextlib.suppress(WorkerDied):
            self._send(Stop())
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self.kill()
        self._pipe.close()

    def kill(self) -> None:
        """End it now; whoever waits for an answer gets WorkerDied. May be called twice."""
        self._process.kill()
        self._process.wait()

    def _send(self, message: Message | WorkerSettings) -> None:
        try:
            self._pipe.send(message)
        except OSError as problem:
            raise WorkerDied(self._how_it_died()) from problem

    def _how_it_died(self) -> str:
        """The pipe broke: the process has ended or is about to."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.poll()
        if code is None:
            return "its pipe broke"
        return f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
