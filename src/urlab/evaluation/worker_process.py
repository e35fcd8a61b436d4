"""A worker process as the server sees it: messages out, answers back, and an end that is always reached."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from typing import Self

from urlab.evaluation.worker_messages import Letter, Stop, WorkerSettings
from urlab.evaluation.worker_pipe import ServerEnd

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Workers are the parallelism; a pool of threads in each would only make them fight for cores."""
_EXIT_S = 1.0
_LOOK_EVERY_S = 0.01


class WorkerProcess:
    """Made by `start`; loads in its own time. Used on the event loop."""

    def __init__(self, process: "subprocess.Popen[bytes]", pipe: ServerEnd) -> None:
        self._process, self._pipe = process, pipe

    @classmethod
    async def start(cls, settings: WorkerSettings) -> Self:
        """A new process, which gets ``settings`` as its first message."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.to_thread(_spawn, theirs)
        _, pipe = await asyncio.get_running_loop().create_unix_connection(ServerEnd, sock=ours)
        pipe.send(Letter(settings))
        return cls(process, pipe)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    async def ask(self, letter: Letter, limit_s: float) -> Letter:
        """The answer; PipeBroken if the process ends instead, NoAnswer if it takes too long: then `kill` it."""
        return await self._pipe.ask(letter, limit_s)

    async def end(self, grace_s: float) -> None:
        """Let it finish its files, then end it in any case. Nobody may be asking it anything."""
        self._pipe.send(Letter(Stop()))
        try:
            await self._ended_within(grace_s)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it now; whoever waits for an answer gets PipeBroken. May be called twice."""
        self._process.kill()
        self._process.wait()
        self._pipe.close()

    async def how_it_died(self) -> str:
        """For when the pipe broke: the process has ended or is about to."""
        code = await self._ended_within(_EXIT_S)
        if code is None:
            return "its pipe broke"
        return f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"

    async def _ended_within(self, limit_s: float) -> int | None:
        """Its exit code once there is one. No thread waits: slow ends of many would keep others from theirs."""
        until_s = time.monotonic() + limit_s
        while (code := self._process.poll()) is None and time.monotonic() < until_s:
            await asyncio.sleep(_LOOK_EVERY_S)
        return code


def _spawn(pipe: socket.socket) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "urlab.evaluation.worker", str(pipe.fileno())],
        pass_fds=(pipe.fileno(),),
        stdin=subprocess.DEVNULL,
        env={**_ONE_THREAD, **os.environ},
    )
