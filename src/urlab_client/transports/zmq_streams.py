"""Streams over ZeroMQ: whole states and pictures of cameras that come in, commands that go out."""

import contextlib
import logging
import socket as sockets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import zmq

from urlab_client.transports.base import FrameCallback, StateCallback, Transport, description, stream_endpoint
from urlab_client.transports.keys import ClientKey
from urlab_wire.codec import decode
from urlab_wire.streams import STATE_TOPIC, meta_topic

_KEPT_MESSAGES = 100
STATE_QUEUE = 1000
CAMERA_QUEUE = 8
"""Messages, and a picture is two: an old picture in a long queue is worth less than a dropped one."""

RECONNECT_FIRST_MS = 100
RECONNECT_LAST_MS = 1000
RETRY_FIRST_S = 0.25
RETRY_LAST_S = 5.0
STOP_LIMIT_S = 1.0
BATCH = 64
"""So many messages are taken from a socket before the newest is used, however many more wait."""

_KEEPALIVE = {
    zmq.TCP_KEEPALIVE: 1, zmq.TCP_KEEPALIVE_IDLE: 10, zmq.TCP_KEEPALIVE_INTVL: 5, zmq.TCP_KEEPALIVE_CNT: 3,
}  # fmt: skip
"""A machine that vanished without a word is noticed after 25 s."""

_log = logging.getLogger(__name__)

Message = list[zmq.Frame]


class Channel(Protocol):
    """What to subscribe to, and what to do with it. Called on the listener's thread only.

    A channel is fed every message that waits and then flushed once: most are superseded before they are used.
    ``queue`` is how many messages may wait here before the server has to drop some.
    """

    endpoint: str
    topics: tuple[bytes, ...]
    queue: int

    def feed(self, message: Message) -> None:
        """Take one message, as the frames that came. Cheap, and never raises."""

    def flush(self) -> None:
        """Use what was fed."""


@dataclass(frozen=True, slots=True)
class _Retry:
    """A channel that could not be opened, and when (monotonic seconds) to try again."""

    due_s: float
    delay_s: float
    channel: Channel


class StreamListener:
    """Any number of SUB sockets on one daemon thread, from construction until `stop`.

    A server that publishes nothing is not an error: ZeroMQ keeps trying to connect, and finds one that comes back.
    The thread sleeps until something arrives.
    """

    def __init__(self, name: str, key: ClientKey | None = None) -> None:
        """``key`` is that of the client, if the server asks for one."""
        self._key = key
        self._added: deque[Channel] = deque()
        self._open: dict[zmq.Socket[bytes], Channel] = {}
        self._retries: list[_Retry] = []
        self._stopping = threading.Event()
        self._poller = zmq.Poller()
        self._wake_in, self._wake_out = sockets.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._poller.register(self._wake_in, zmq.POLLIN)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, channel: Channel) -> None:
        """Subscribe to one more channel; returns at once."""
        self._added.append(channel)
        self._wake()

    def stop(self) -> None:
        """End all subscriptions and wait for it, at most `STOP_LIMIT_S`. From a callback it only asks for the end."""
        self._stopping.set()
        self._wake()
        if self._thread is not threading.current_thread():
            self._thread.join(STOP_LIMIT_S)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # enough wakes wait already, or the thread has ended
            self._wake_out.send(b"\0")

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._open_added()
                for ready, _ in self._poller.poll(self._patience_ms()):
                    self._serve(ready)
        except zmq.ContextTerminated:
            _log.debug("%s: ends with its ZeroMQ context", self._thread.name)
        finally:
            for socket in self._open:
                socket.close()
            self._wake_in.close()
            self._wake_out.close()

    def _open_added(self) -> None:
        while self._added:
            self._try_to_open(self._added.popleft(), RETRY_FIRST_S)
        now_s = time.monotonic()
        due = [retry for retry in self._retries if retry.due_s <= now_s]
        self._retries = [retry for retry in self._retries if retry.due_s > now_s]
        for retry in due:
            self._try_to_open(retry.channel, min(2 * retry.delay_s, RETRY_LAST_S))

    def _patience_ms(self) -> int | None:
        """How long nothing needs doing unless something arrives; None is for ever."""
        if not self._retries:
            return None
        first_s = min(retry.due_s for retry in self._retries)
        return max(0, int(1000 * (first_s - time.monotonic())) + 1)

    def _try_to_open(self, channel: Channel, delay_s: float) -> None:
        try:
            socket = _subscribe(channel, self._key)
        except zmq.ContextTerminated:
            raise
        except zmq.ZMQError as broken:
            _log.warning("stream %s: %s; trying again in %.2f s", channel.endpoint, broken, delay_s)
            self._retries.append(_Retry(time.monotonic() + delay_s, delay_s, channel))
        else:
            self._open[socket] = channel
            self._poller.register(socket, zmq.POLLIN)

    def _serve(self, ready: "zmq.Socket[bytes]") -> None:
        """Use what came on a socket; one that belongs to no channel is the wake signal's."""
        channel = self._open.get(ready)
        if channel is None:
            with contextlib.suppress(BlockingIOError):
                self._wake_in.recv(1024)
            return
        _drain(ready, channel)
        if self._stopping.is_set():
            return
        try:
            channel.flush()
        except Exception:  # noqa: BLE001 - a bad message or a failing callback must not end the stream
            _log.exception("stream %s: a message could not be used", channel.endpoint)


def _subscribe(channel: Channel, key: ClientKey | None) -> "zmq.Socket[bytes]":
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
    try:
        if key is not None:
            key.secure(socket)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, channel.queue)
        socket.setsockopt(zmq.IPV6, int("[" in channel.endpoint))
        socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_FIRST_MS)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, RECONNECT_LAST_MS)
        for option, value in _KEEPALIVE.items():
            socket.setsockopt(option, value)
        for topic in channel.topics:
            socket.setsockopt(zmq.SUBSCRIBE, topic)
        socket.connect(channel.endpoint)
    except zmq.ZMQError:
        socket.close()
        raise
    return socket


def _drain(socket: "zmq.Socket[bytes]", channel: Channel) -> None:
    with contextlib.suppress(zmq.Again):
        for _ in range(BATCH):
            channel.feed(socket.recv_multipart(zmq.NOBLOCK, copy=False))


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
        if self._meta is None and self._is_described:  # its description got lost on the way
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

    def __init__(
        self, base: str, state_endpoint: str | None, *, follow_handshake: bool = True, key: ClientKey | None = None
    ) -> None:
        self.key = key
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
        bound = (handshake.get("streams") or {}).get("state")
        known = stream_endpoint(bound, self._base) if bound and self._follow_handshake else self._own_state_endpoint
        self.state_endpoint = known

    @property
    def has_state_stream(self) -> bool:
        """Whether an endpoint of states is known."""
        return self.state_endpoint is not None

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
                self._cameras = StreamListener("urlab-cameras", self.key)
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
            listener = StreamListener("urlab-states", self.key)
            listener.add(StateChannel(endpoint, lambda payload: on_snapshot(decode(payload))))
            self._states = endpoint, listener


class ControlSender:
    """A PUB socket to a server's control port. Any thread may use it.

    Nothing tells whether a command arrived; while no server listens, or too much waits, commands are dropped. So is
    what is sent in the first moments, until the connection is there.
    """

    def __init__(self, endpoint: str, key: ClientKey | None = None) -> None:
        self.endpoint = endpoint
        self._turn = threading.Lock()
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUB)
        if key is not None:
            key.secure(self._socket)
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
