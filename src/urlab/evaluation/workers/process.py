"""A worker process as the server sees it: requests out, answers back, and an end that is always reached."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from typing import Any, Self, cast

from urlab.evaluation.workers.messages import (
    FRAME_LENGTHS,
    PipeBroken,
    Stop,
    WorkerFrame,
    WorkerSettings,
    decode_message,
    frame_parts,
)

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Workers are the parallelism; a pool of threads in each would only take the cores from the others."""
_EXIT_S = 1.0
_POLL_EVERY_S = 0.01
_USUAL_BYTES = 256 << 10
"""A frame without pictures is read at once into a buffer of this size."""


class NoAnswer(Exception):
    """The worker took longer than it may."""


class WorkerProcess(asyncio.BufferedProtocol):
    """Made by `start`; loads in its own time. One request at a time, each with one answer; all on the event loop,
    which reads the pipe itself: there is no thread for it.
    """

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[WorkerFrame] | None = None
        self._usual = bytearray(_USUAL_BYTES)
        self._buffer, self._filled = self._usual, 0

    @classmethod
    async def start(cls, settings: WorkerSettings) -> Self:
        """A new process, which gets ``settings`` as its first message."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.to_thread(_spawn, theirs)
        started = await cls.attach(process, ours)
        started.send(WorkerFrame(settings))
        return started

    @classmethod
    async def attach(cls, process: "subprocess.Popen[bytes]", pipe: socket.socket) -> Self:
        """A process that runs already, and our end of its pipe."""
        _, made = await asyncio.get_running_loop().create_unix_connection(lambda: cls(process), sock=pipe)
        return made

    async def request(self, frame: WorkerFrame, limit_s: float) -> WorkerFrame:
        """The answer; PipeBroken if the process ends before, NoAnswer if it takes too long.

        After anything but an answer the process must be killed: a late answer would be taken for the next.
        """
        if not self.send(frame):
            raise PipeBroken
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[WorkerFrame] = loop.create_future()
        self._answer = answer
        timer = loop.call_later(limit_s, _give_up, answer)
        try:
            return await answer
        finally:
            timer.cancel()
            self._answer = None

    def send(self, frame: WorkerFrame) -> bool:
        """Send what has no answer; False if the pipe is broken. What the worker does not read yet waits here."""
        if self._transport is None or self._transport.is_closing():
            return False
        for part in frame_parts(frame):
            self._transport.write(part)
        return True

    async def end(self, grace_s: float) -> None:
        """Let it finish its files, then end it in any case. No request may be under way."""
        self.send(WorkerFrame(Stop()))
        try:
            await self._ended_within(grace_s)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it now; a request that waits for its answer gets PipeBroken. May be called twice."""
        self._process.kill()
        self._process.wait()
        if self._transport is not None:
            self._transport.abort()

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
            await asyncio.sleep(_POLL_EVERY_S)
        return code

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast("asyncio.WriteTransport", transport)

    def get_buffer(self, _size_hint: int) -> memoryview:
        """Called by the event loop."""
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Called by the event loop."""
        self._filled += nbytes
        if self._filled < FRAME_LENGTHS.size:
            return
        message, body = FRAME_LENGTHS.unpack_from(self._buffer)
        end = FRAME_LENGTHS.size + message + body
        if self._filled < end:
            self._make_room(end)
            return
        view, at = memoryview(self._buffer), FRAME_LENGTHS.size + message
        body = bytes(view[at:end]) if self._buffer is self._usual else view[at:end]
        frame = WorkerFrame(decode_message(view[FRAME_LENGTHS.size : at]), body)
        self._buffer, self._filled = self._usual, 0
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(frame)

    def connection_lost(self, _problem: Exception | None) -> None:
        """Called by the event loop."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(PipeBroken())

    def _make_room(self, size: int) -> None:
        if len(self._buffer) < size:
            larger = bytearray(size)
            larger[: self._filled] = self._buffer[: self._filled]
            self._buffer = larger


def _give_up(answer: "asyncio.Future[Any]") -> None:
    if not answer.done():
        answer.set_exception(NoAnswer())


def _spawn(pipe: socket.socket) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "urlab.evaluation.workers.worker", str(pipe.fileno())],
        pass_fds=(pipe.fileno(),),
        stdin=subprocess.DEVNULL,
        env={**_ONE_THREAD, **os.environ},
    )
