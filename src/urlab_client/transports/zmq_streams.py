"""Streams over ZeroMQ: whole states and pictures of cameras that come in, commands that go out."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

import zmq

from urlab_client.live import Message, StreamListener
from urlab_client.transports.base import FrameCallback, StateCallback, Transport, description, stream_endpoint
from urlab_wire.codec import decode
from urlab_wire.streams import STATE_TOPIC, meta_topic

_KEPT_MESSAGES = 100
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
            self._on_frame(pixels.buffer, description(None if meta is None else meta.bytes), skipped)


def _topic(message: Message) -> bytes:
    """The topic of a message; servers of this protocol may end it with a space."""
    return message[0].bytes.rstrip(b" ")


class StreamingTransport(Transport):
    """A transport with ZeroMQ streams beside it: one thread for states, one for all cameras, while they are on.

    ``base`` is the address at which this client reaches the server; without ``state_endpoint`` there are states only
    where the handshake tells an endpoint. A caller who names a port of its own (``follow_handshake`` is False) keeps
    it: there may be a tunnel in between.
    """

    def __init__(self, base: str, state_endpoint: str | None, *, follow_handshake: bool = True) -> None:
        self._base = base
        self._own_state_endpoint = state_endpoint
        self._follow_handshake = follow_handshake
        self.state_endpoint = state_endpoint
        self._streams_lock = threading.Lock()
        self._streams_closed = False
        self._states: tuple[str, StreamListener] | None = None
        self._cameras: StreamListener | None = None

    def absorb_handshake(self, handshake: Mapping[str, Any]) -> None:
        """Learn where states are published."""
        told = (handshake.get("streams") or {}).get("state")
        known = stream_endpoint(told, self._base) if told and self._follow_handshake else self._own_state_endpoint
        self.state_endpoint = known

    def start_state_stream(self, on_snapshot: StateCallback) -> None:
        """Subscribe to whole-state snapshots, at the endpoint now known; silent while no server publishes them."""
        endpoint, running = self.state_endpoint, self._states
        if running is not None and running[0] == endpoint:
            return
        self.stop_state_stream()
        if endpoint is not None:
            self._begin_states(endpoint, on_snapshot)

    def stop_state_stream(self) -> None:
        """Unsubscribe and wait for the thread."""
        with self._streams_lock:
            states, self._states = self._states, None
        if states is not None:
            states[1].stop()

    def start_camera_stream(
        self,
        prefix: str,  # noqa: ARG002 - the endpoint and the topic say it all
        name: str,  # noqa: ARG002
        endpoint: str,
        topic: str,
        on_frame: FrameCallback,
    ) -> None:
        """Subscribe to one more camera."""
        with self._streams_lock:
            if self._streams_closed:
                return
            if self._cameras is None:
                self._cameras = StreamListener("urlab-cameras")
            self._cameras.add(CameraChannel(stream_endpoint(endpoint, self._base), topic, on_frame))

    def stop_camera_streams(self) -> None:
        """Unsubscribe from all cameras and wait for the thread."""
        with self._streams_lock:
            cameras, self._cameras = self._cameras, None
        if cameras is not None:
            cameras.stop()

    def close(self) -> None:
        """End the streams; none begins any more."""
        with self._streams_lock:
            self._streams_closed = True
        self.stop_state_stream()
        self.stop_camera_streams()

    def _begin_states(self, endpoint: str, on_snapshot: StateCallback) -> None:
        with self._streams_lock:
            if self._streams_closed or self._states is not None:
                return
            listener = StreamListener("urlab-states")
            listener.add(StateChannel(endpoint, lambda payload: on_snapshot(decode(payload))))
            self._states = endpoint, listener


class ControlSender:
    """A PUB socket to a server's control port. Any thread may use it.

    Nothing tells whether a command arrived; while no server listens, or too much waits, commands are dropped. So is
    what is sent in the first moments, until the connection is there.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._turn = threading.Lock()
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SNDHWM, _KEPT_MESSAGES)
        self._socket.setsockopt(zmq.IPV6, int("[" in endpoint))
        self._socket.connect(endpoint)

    def send(self, topic: str, payload: bytes) -> None:
        """Send one command; it never waits. Nothing is sent once closed."""
        with self._turn, contextlib.suppress(zmq.ZMQError):
            if not self._socket.closed:
                self._socket.send_multipart([topic.encode(), payload], zmq.NOBLOCK)

    def close(self) -> None:
        """Close the socket. Once is enough."""
        with self._turn:
            self._socket.close()
