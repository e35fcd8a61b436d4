"""What the server and a worker process send each other through their pipe. Both ends are ours.

A message is a few typed values; what is large or has no type for it goes along as its body. In the pipe a frame is two
lengths, the message in msgpack, and the body as it is. The worker reads and writes by `WorkerPipe`, the server by
`process.WorkerProcess`.
"""

import socket
import struct
from typing import Any, NamedTuple

import msgspec

from urlab.evaluation.camera_config import CameraChoice
from urlab.evaluation.encoding import BodyFormat
from urlab.evaluation.episode_result import EpisodeResult, Retries
from urlab.evaluation.simulation.actions import Action

FRAME_LENGTHS = struct.Struct("<QQ")
"""Of message and body."""

_JOINED_BYTES = 64 << 10
"""Up to here a copy is cheaper than a second call."""


class WorkerSettings(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The first message: how the worker runs all its episodes. What it simulates is told in ``live_folder``, if any."""

    cameras: bool
    privileged: bool
    videos: bool
    camera_choice: CameraChoice = CameraChoice()
    live_folder: str | None = None


class Begin(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Begin an episode; one that is running is given up. The body is a pickled task. Answer: `WorkerAnswer`.

    ``retries`` are the attempts at this episode before this one.
    """

    seed: int
    hold_steps: int
    episode_id: str
    folder: str
    body_format: BodyFormat
    retries: Retries = Retries()


class Step(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Carry out actions until they or the episode end. Answer: `WorkerAnswer`.

    It has the observation after the last action, encoded in ``body_format``; if the episode ended, only with
    ``terminal``. From here on a subgoal must last ``hold_steps``.
    """

    actions: tuple[Action, ...]
    body_format: BodyFormat
    hold_steps: int
    terminal: bool = False


class GiveUp(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """End the episode as failed, for the reason of `EpisodeResult` and in words. Answer: `WorkerAnswer`."""

    reason: str
    detail: str
    body_format: BodyFormat
    terminal: bool = False


class Flush(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Wait until all evidence is on disk. Answer: `WorkerAnswer`."""


class Stop(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Flush and end. No answer."""


class WorkerAnswer(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The body is an observation as `EncodedObservation.encode` makes it, or empty.

    ``result`` is there when the episode has ended, after ``executed`` actions. ``problems`` are about evidence,
    ``warnings`` about the actions.
    """

    result: EpisodeResult | None = None
    executed: int = 0
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The worker could not do it; its episode is lost, the process lives on."""

    reason: str


Message = WorkerSettings | Begin | Step | GiveUp | Flush | Stop | WorkerAnswer | Failed
Body = bytes | memoryview

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Message)


class WorkerFrame(NamedTuple):
    """A message and its body; a large body that was received is a view of the buffer that it was read into."""

    message: Any
    body: Body = b""


def frame_parts(frame: WorkerFrame) -> tuple[Body, ...]:
    """What is sent, one after the other."""
    message = encode_message(frame.message)
    head = FRAME_LENGTHS.pack(len(message), len(frame.body)) + message
    return (head + frame.body,) if len(frame.body) <= _JOINED_BYTES else (head, frame.body)


def encode_message(message: Any) -> bytes:
    """One of `Message` as it is sent."""
    return _encoder.encode(message)


def decode_message(data: memoryview | bytearray | bytes) -> Any:
    """One of `Message`."""
    return _decoder.decode(data)


class PipeBroken(Exception):
    """The other end of the pipe is gone."""


class WorkerPipe:
    """The worker's end of the pipe. Blocks. One thread."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def fileno(self) -> int:
        """The descriptor, to be polled."""
        return self._socket.fileno()

    def send(self, frame: WorkerFrame) -> None:
        """PipeBroken if the server will not read it."""
        try:
            for part in frame_parts(frame):
                self._socket.sendall(part)
        except OSError as problem:
            raise PipeBroken from problem

    def receive(self) -> WorkerFrame:
        """The next frame, once it is there; PipeBroken if none will come."""
        message, body = FRAME_LENGTHS.unpack(self._read(FRAME_LENGTHS.size))
        return WorkerFrame(decode_message(self._read(message)), bytes(self._read(body)))

    def _read(self, size: int) -> bytearray:
        buffer = bytearray(size)
        with memoryview(buffer) as view:
            at = 0
            while at < size:
                try:
                    count = self._socket.recv_into(view[at:])
                except OSError as problem:
                    raise PipeBroken from problem
                if count == 0:
                    raise PipeBroken
                at += count
        return buffer
