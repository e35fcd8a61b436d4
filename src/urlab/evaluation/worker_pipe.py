"""How letters travel between the server and a worker process: two lengths, the message in msgpack, the body as it is.

The worker waits in `WorkerEnd`; the server's event loop reads through `ServerEnd`.
"""

import asyncio
import socket
import struct
from typing import Any, cast

import msgspec

from urlab.evaluation.worker_messages import Body, Letter, Message

_LENGTHS = struct.Struct("<QQ")
_USUAL_BYTES = 256 << 10
"""A letter without pictures is read at once into a buffer of this size."""
_JOINED_BYTES = 64 << 10
"""Up to here a copy is cheaper than a second call."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Message)


class PipeBroken(Exception):
    """The other end is gone."""


class NoAnswer(Exception):
    """The other end took longer than it may."""


class WorkerEnd:
    """Blocks. One thread."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def fileno(self) -> int:
        """The descriptor, for those who watch it."""
        return self._socket.fileno()

    def send(self, letter: Letter) -> None:
        """PipeBroken if nobody will read it."""
        try:
            for part in _parts(letter):
                self._socket.sendall(part)
        except OSError as problem:
            raise PipeBroken from problem

    def receive(self) -> Letter:
        """The next letter, once it is there; PipeBroken if none will come."""
        message, body = _LENGTHS.unpack(self._read(_LENGTHS.size))
        return Letter(_decoder.decode(self._read(message)), bytes(self._read(body)))

    def _read(self, size: int) -> bytearray:
        buffer = bytearray(size)
        with memoryview(buffer) as view:
            at = 0
            while at < size:
                at += self._read_into(view[at:])
        return buffer

    def _read_into(self, view: memoryview) -> int:
        try:
            count = self._socket.recv_into(view)
        except OSError as problem:
            raise PipeBroken from problem
        if count == 0:
            raise PipeBroken
        return count


class ServerEnd(asyncio.BufferedProtocol):
    """One question at a time, each with one answer; all on the event loop."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[Letter] | None = None
        self._usual = bytearray(_USUAL_BYTES)
        self._buffer, self._filled = self._usual, 0

    async def ask(self, letter: Letter, limit_s: float) -> Letter:
        """The answer; PipeBroken if the other end is gone before, NoAnswer if it takes too long.

        After anything but an answer the pipe is of no use any more: a late one would be taken for the next.
        """
        if not self.send(letter):
            raise PipeBroken
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Letter] = loop.create_future()
        self._answer = answer
        timer = loop.call_later(limit_s, _give_up, answer)
        try:
            return await answer
        finally:
            timer.cancel()
            self._answer = None

    def send(self, letter: Letter) -> bool:
        """Send what has no answer; False if the pipe is broken. What the other end does not read yet waits here."""
        if self._transport is None or self._transport.is_closing():
            return False
        for part in _parts(letter):
            self._transport.write(part)
        return True

    def close(self) -> None:
        """Whoever waits for an answer gets PipeBroken. May be called twice."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast("asyncio.WriteTransport", transport)

    def get_buffer(self, _size_hint: int) -> memoryview:
        """Called by the event loop."""
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Called by the event loop."""
        self._filled += nbytes
        if self._filled < _LENGTHS.size:
            return
        message, body = _LENGTHS.unpack_from(self._buffer)
        end = _LENGTHS.size + message + body
        if self._filled < end:
            self._make_room(end)
            return
        view, at = memoryview(self._buffer), _LENGTHS.size + message
        body = bytes(view[at:end]) if self._buffer is self._usual else view[at:end]
        letter = Letter(_decoder.decode(view[_LENGTHS.size : at]), body)
        self._buffer, self._filled = self._usual, 0
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(letter)

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


def _parts(letter: Letter) -> tuple[Body, ...]:
    """What is sent, one after the other."""
    message = _encoder.encode(letter.message)
    head = _LENGTHS.pack(len(message), len(letter.body)) + message
    return (head + letter.body,) if len(letter.body) <= _JOINED_BYTES else (head, letter.body)
