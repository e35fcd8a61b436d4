"""What comes over a stream's socket, turned into calls: snapshots of the state, pictures of a camera."""

from collections.abc import Callable, Mapping
from typing import Any

import zmq

from urlab_client.live import Message
from urlab_client.transports.base import FrameCallback
from urlab_wire.stream_messages import unpack_metadata
from urlab_wire.streams import STATE_TOPIC, StreamError, meta_topic

STATE_QUEUE = 1000
CAMERA_QUEUE = 8
"""Messages, and a picture is two: an old picture in a long queue is worth less than a dropped one."""


class StateChannel:
    """Whole-state snapshots, as they come; the newest one counts."""

    topics: tuple[bytes, ...] = (STATE_TOPIC.encode(),)
    queue = STATE_QUEUE

    def __init__(self, endpoint: str, on_payload: Callable[[bytes], object]) -> None:
        self.endpoint = endpoint
        self._on_payload = on_payload
        self._newest: zmq.Frame | None = None

    def feed(self, message: Message) -> None:
        """Remember a snapshot; a message of another shape is ignored."""
        if len(message) == 2 and _topic(message) in self.topics:
            self._newest = message[1]

    def flush(self) -> None:
        """Hand the newest snapshot over."""
        newest, self._newest = self._newest, None
        if newest is not None:
            self._on_payload(newest.bytes)


class CameraChannel:
    """Pictures of one camera: each is a message of raw pixels, before which one may come that describes it.

    Where pictures are described, one whose description is missing does not count.
    """

    queue = CAMERA_QUEUE

    def __init__(self, endpoint: str, topic: str, on_frame: FrameCallback) -> None:
        self.endpoint = endpoint
        plain = topic.rstrip(" ")
        self._meta_topic = meta_topic(plain).encode()
        self.topics: tuple[bytes, ...] = (self._meta_topic, plain.encode())
        self._on_frame = on_frame
        self._meta: zmq.Frame | None = None
        self._is_described = False
        self._newest: tuple[zmq.Frame, zmq.Frame | None] | None = None
        self._skipped = 0

    def feed(self, message: Message) -> None:
        """Pair pixels with the description that came last before them; a message of another shape is ignored."""
        topic = _topic(message)
        if len(message) != 2 or topic not in self.topics:
            return
        if topic == self._meta_topic:
            self._meta, self._is_described = message[1], True
            return
        if self._meta is None and self._is_described:  # what was told of it got lost on the way
            self._skipped += 1
            return
        self._skipped += self._newest is not None
        self._newest, self._meta = (message[1], self._meta), None

    def flush(self) -> None:
        """Hand the newest picture over, and say how many it superseded."""
        newest, self._newest = self._newest, None
        skipped, self._skipped = self._skipped, 0
        if newest is not None:
            pixels, meta = newest
            self._on_frame(pixels.buffer, _described(meta), skipped)


def _topic(message: Message) -> bytes:
    """The topic of a message; servers of this protocol may end it with a space."""
    return message[0].bytes.rstrip(b" ")


def _described(meta: zmq.Frame | None) -> Mapping[str, Any] | None:
    """The description of a picture; one that cannot be read counts as none."""
    if meta is None:
        return None
    try:
        return unpack_metadata(meta.bytes)
    except StreamError:
        return None
