"""Background subscriptions: what a running server publishes, handed over as it arrives."""

import contextlib
import logging
import socket as sockets
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

import zmq

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

    def __init__(self, name: str) -> None:
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
            socket = _subscribe(channel)
        except zmq.ContextTerminated:
            raise
        except zmq.ZMQError as broken:
            _log.warning("stream %s: %s; trying again in %.2f s", channel.endpoint, broken, delay_s)
            self._retries.append(_Retry(time.monotonic() + delay_s, delay_s, channel))
        else:
            self._open[socket] = channel
            self._poller.register(socket, zmq.POLLIN)

    def _serve(self, ready: "zmq.Socket[bytes]") -> None:
        """Use what came on a socket; what is no subscription is the wake signal."""
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


def _subscribe(channel: Channel) -> "zmq.Socket[bytes]":
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
    try:
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
