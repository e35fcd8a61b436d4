"""Sockets that publish, and the thread that owns all of them.

ZeroMQ's sockets belong to one thread, and each send lets go of the interpreter: on the stepping thread, sixty rows
would mean a hundred chances per step to lose the processor to another thread. So the stepping thread hands over what it
has to publish, which costs a few microseconds, and the publishing thread sends it.
"""

import contextlib
import logging
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import zmq

from urlab.access import Role
from urlab.monitoring.watchdog import Turns
from urlab.transport.endpoint import ListeningSocket
from urlab.transport.guard import ConnectionGuard, GuardedSocket, source
from urlab.transport.publisher import no_op

log = logging.getLogger("urlab.transport")

Message = tuple[bytes | memoryview, ...]
"""The frames of one message; the first is the topic."""

_LONGEST_TOPIC_BYTES = 640
MOST_TOPICS_EACH = 1000
"""Of one subscriber. ZeroMQ's table of topics takes up to sixty times their bytes."""

MOST_TOPICS = 4000
"""Of one socket."""

_SUBSCRIPTIONS_AHEAD = 2
"""Per subscriber; with one, ZeroMQ waits for ever on encrypted connections. It puts all that have arrived into its
table before it tells of one: with many more than this, a quick sender keeps it busy for as long as it likes, and is
counted too late."""

_SUBSCRIPTION_BYTES_AHEAD = 1 << 20
"""Per subscriber. While ZeroMQ is kept busy by a quick sender, the guard ends its connection at so many."""

_RECEIVED_AT_ONCE = 1000
_ZERO_COPY_BYTES = 65536
_STOP_LIMIT_S = 3.0
_SUBSCRIBE, _UNSUBSCRIBE = 1, 0
_KEEPALIVE = {
    zmq.TCP_KEEPALIVE: 1,
    zmq.TCP_KEEPALIVE_IDLE: 10,
    zmq.TCP_KEEPALIVE_INTVL: 5,
    zmq.TCP_KEEPALIVE_CNT: 3,
}
"""A machine that vanished without a word stops being a subscriber after 25 s."""


def bind(
    guard: ConnectionGuard,
    kind: int,
    listener: ListeningSocket,
    needs: Role = Role.OBSERVER,
    most_undelivered_bytes: int | None = None,
    **limits: int,
) -> tuple[Any, GuardedSocket]:
    """A ZeroMQ socket that serves a listener from now on, and the account of its connections.

    ``needs`` is the role that keys need, ``limits`` are further socket options by name. The listener has taken the port
    already, with our own words for what can go wrong; ZeroMQ only gets the handle.
    """
    bound = guard.context.socket(kind)
    bound.setsockopt(zmq.LINGER, 0)
    bound.setsockopt(zmq.IPV6, int(listener.socket.family == socket.AF_INET6))
    for option, value in {**_KEEPALIVE, **{getattr(zmq, name): value for name, value in limits.items()}}.items():
        bound.setsockopt(option, value)
    guarded = guard.guard(bound, listener.endpoint, needs, most_undelivered_bytes)
    listener.socket.setblocking(False)
    bound.setsockopt(zmq.USE_FD, listener.socket.detach())
    bound.bind(listener.endpoint)
    return bound, guarded


class TopicPrefixes:
    """The topic prefixes that have a subscriber. One thread updates them, any thread may ask.

    An XPUB socket tells of a prefix when the first peer subscribes to it and when the last one no longer does, be it
    that it said so or that it is gone.
    """

    def __init__(self) -> None:
        self._prefixes: tuple[bytes, ...] = ()

    def __len__(self) -> int:
        return len(self._prefixes)

    def wants(self, topic: bytes) -> bool:
        """Whether a beginning of that topic has a subscriber; the empty prefix begins every topic."""
        return topic.startswith(self._prefixes)

    def update(self, messages: Iterable[bytes]) -> bool:
        """Follow what an XPUB socket received; whether a new prefix is wanted. Other messages of peers are ignored."""
        prefixes = dict.fromkeys(self._prefixes)
        for message in messages:
            if message[:1] == bytes((_SUBSCRIBE,)):
                prefixes[message[1:]] = None
            elif message[:1] == bytes((_UNSUBSCRIBE,)):
                prefixes.pop(message[1:], None)
        before, self._prefixes = self._prefixes, tuple(prefixes)
        return not prefixes.keys() <= set(before)


class PubSocket:
    """Publishes batches of messages to their subscribers.

    Any thread may offer a batch and ask what is wanted; neither ever waits. The socket is touched by one thread
    only, that of the `PublishingThread` which it is added to. A subscriber that does not keep up loses
    messages: at most ``kept_messages`` wait for each of them, and at most ``kept_batches`` for the thread, where the
    oldest go first.
    """

    def __init__(
        self,
        guard: ConnectionGuard,
        listener: ListeningSocket,
        *,
        kept_messages: int,
        kept_batches: int,
        on_change: Callable[[bool], None],
    ) -> None:
        """``on_change(new)`` is called on the thread when subscriptions change; ``new`` when one was added."""
        self.subscriptions = TopicPrefixes()
        self.wake: Callable[[], None] = no_op
        self.sent = 0
        self.dropped = 0
        self.endpoint = listener.endpoint
        """Where subscribers connect."""

        self._listener = listener
        self._on_change = on_change
        self._batches: deque[Sequence[Message]] = deque(maxlen=kept_batches)
        self._kept_batches = kept_batches
        self.socket, self._guarded = bind(
            guard,
            zmq.XPUB,
            listener,
            most_undelivered_bytes=_SUBSCRIPTION_BYTES_AHEAD,
            SNDHWM=kept_messages,
            RCVHWM=_SUBSCRIPTIONS_AHEAD,
            MAXMSGSIZE=_LONGEST_TOPIC_BYTES,
        )

    def wants(self, topic: bytes) -> bool:
        """Whether that topic has a subscriber."""
        return self.subscriptions.wants(topic)

    def offer(self, batch: Sequence[Message]) -> None:
        """Have a batch sent, in its order."""
        if len(self._batches) == self._kept_batches:
            self.dropped += len(self._batches[0])
        self._batches.append(batch)
        self.wake()

    def counters(self) -> dict[str, int]:
        """Messages handed to ZeroMQ, and messages that were superseded before."""
        return {"sent": self.sent, "dropped": self.dropped}

    # -- the thread's part --------------------------------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._batches)

    def flush(self) -> None:
        """Send what waits; what is offered meanwhile has to wait its turn."""
        for _ in range(len(self._batches)):
            batch = self._batches.popleft()
            self.sent += len(batch)
            for *topics, payload in batch:
                for topic in topics:
                    self.socket.send(topic, zmq.NOBLOCK | zmq.SNDMORE)
                self.socket.send(payload, zmq.NOBLOCK, copy=len(payload) < _ZERO_COPY_BYTES)

    def receive_subscriptions(self) -> None:
        """Follow what peers subscribe to and no longer want."""
        frames: list[zmq.Frame] = []
        with contextlib.suppress(zmq.Again):
            while len(frames) < _RECEIVED_AT_ONCE:
                frames.append(self.socket.recv(zmq.NOBLOCK, copy=False))
        if frames:
            messages = [frame.bytes for frame in frames]
            new = self.subscriptions.update(messages)
            for frame, message in zip(frames, messages, strict=True):
                self._account(frame, message)
            self._on_change(new)

    def _account(self, frame: zmq.Frame, message: bytes) -> None:
        """Count the topics of a subscriber, and end the connection of one that has too many."""
        use = self._guarded.use_by(frame)
        if use is None:
            return
        use.deliver(len(message))
        if message[:1] == bytes((_UNSUBSCRIBE,)):
            use.topics = max(0, use.topics - 1)
            return
        use.topics += 1
        if use.topics > MOST_TOPICS_EACH or len(self.subscriptions) > MOST_TOPICS:
            most = f"{MOST_TOPICS_EACH} topics are the most, and {MOST_TOPICS} of all subscribers together"
            self._guarded.refuse(source(frame), most)

    def close(self) -> None:
        """Give the port back."""
        self.socket.close()
        self._listener.close()


class PublishingThread:
    """Sends what its sockets are offered and follows their subscriptions; sleeps while there is neither."""

    def __init__(self, guard: ConnectionGuard) -> None:
        """``guard`` judges the connections of its sockets."""
        self.guard = guard
        self._sockets: list[PubSocket] = []
        self._new: deque[PubSocket] = deque()
        self._old: deque[tuple[PubSocket, threading.Event]] = deque()
        self._poller = zmq.Poller()
        self._wake_in, self._wake_out = socket.socketpair()
        for end in (self._wake_in, self._wake_out):
            end.setblocking(False)
        self._poller.register(self._wake_in.fileno(), zmq.POLLIN)
        self._asleep = False
        self._stopping = False
        self._watched = Turns("urlab-publishing")
        self._thread = threading.Thread(target=self._run, name="urlab-publishing", daemon=True)
        self._thread.start()

    def add(self, one: PubSocket) -> None:
        """Serve one more socket, which is this thread's from now on."""
        one.wake = self._wake
        self._new.append(one)
        self._wake()

    def remove(self, one: PubSocket) -> None:
        """Close a socket, and wait until its port is free; what was not sent by then is lost."""
        closed = threading.Event()
        self._old.append((one, closed))
        self._wake()
        closed.wait(_STOP_LIMIT_S)

    def close(self) -> None:
        """End the thread and close its sockets; what was not sent by then is lost. Once is enough."""
        if self._stopping:
            return
        self._stopping = True
        self._wake()
        self._thread.join(_STOP_LIMIT_S)

    def _wake(self) -> None:
        if self._asleep:
            self._asleep = False
            with contextlib.suppress(OSError):
                self._wake_out.send(b"!")

    def _run(self) -> None:
        self._watched.open()
        try:
            while not self._stopping:
                self._serve_once()
        finally:
            self._watched.close()
            for one in (*self._sockets, *self._new):
                one.close()
            self._wake_in.close()
            self._wake_out.close()

    def _serve_once(self) -> None:
        self._asleep = True
        # What is offered from here on wakes this thread; what was offered before is seen now.
        busy = self._stopping or self._new or self._old or any(one.has_work for one in self._sockets)
        events = dict(self._poller.poll(0 if busy else None))
        self._asleep = False
        self._watched.busy()
        if self._wake_in.fileno() in events:
            self._wake_in.recv(4096)
        while self._new:
            one = self._new.popleft()
            self._sockets.append(one)
            self._poller.register(one.socket, zmq.POLLIN)
        while self._old:
            one, closed = self._old.popleft()
            self._sockets.remove(one)
            self._poller.unregister(one.socket)
            one.close()
            closed.set()
        for one in self._sockets:
            if one.has_work or one.socket in events:
                self._serve(one, one.socket in events)
        self._watched.idle()

    def _serve(self, one: PubSocket, has_subscriptions: bool) -> None:
        try:
            if has_subscriptions:
                one.receive_subscriptions()
            one.flush()
        except Exception:
            log.exception("a stream at %s failed for a moment", one.endpoint)
