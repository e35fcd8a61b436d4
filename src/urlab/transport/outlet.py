"""One socket that publishes, and what waits to be sent on it."""

import socket as sockets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import zmq

from urlab.transport.endpoint import Listener
from urlab.transport.subscriptions import Subscriptions

Message = tuple[bytes | memoryview, ...]
"""The frames of one message; the first is the topic."""

_LONGEST_TOPIC_BYTES = 4096
_HEARD_AT_ONCE = 1000
_ZERO_COPY_BYTES = 65536
_KEEPALIVE = {
    zmq.TCP_KEEPALIVE: 1,
    zmq.TCP_KEEPALIVE_IDLE: 10,
    zmq.TCP_KEEPALIVE_INTVL: 5,
    zmq.TCP_KEEPALIVE_CNT: 3,
}
"""A machine that vanished without a word stops being a subscriber after 25 s."""


def bind(context: "zmq.Context[zmq.Socket[bytes]]", kind: int, listener: Listener, **limits: int) -> Any:
    """A ZeroMQ socket that serves a listener from now on; ``limits`` are further socket options by name.

    The listener has taken the port already, with our own words for what can go wrong; ZeroMQ only gets the handle.
    """
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.IPV6, int(listener.socket.family == sockets.AF_INET6))
    for option, value in {**_KEEPALIVE, **{getattr(zmq, name): value for name, value in limits.items()}}.items():
        socket.setsockopt(option, value)
    listener.socket.setblocking(False)
    socket.setsockopt(zmq.USE_FD, listener.socket.detach())
    socket.bind(listener.endpoint)
    return socket


class Outlet:
    """Publishes batches of messages to whoever subscribed.

    Any thread may offer a batch and ask what is wanted; neither ever waits. The socket is touched by one thread
    only, that of the `PublishingThread` which this outlet is added to. A subscriber that does not keep up loses
    messages: at most ``kept_messages`` wait for each of them, and at most ``kept_batches`` for the thread, where the
    oldest go first.
    """

    def __init__(
        self,
        context: "zmq.Context[zmq.Socket[bytes]]",
        listener: Listener,
        *,
        kept_messages: int,
        kept_batches: int,
        on_change: Callable[[bool], None],
    ) -> None:
        """``on_change(new)`` is called on the thread when subscriptions change; ``new`` when one was added."""
        self.subscriptions = Subscriptions()
        self.wake: Callable[[], None] = _nobody_to_wake
        self.sent = 0
        self.dropped = 0
        self._listener = listener
        self._on_change = on_change
        self._batches: deque[Sequence[Message]] = deque(maxlen=kept_batches)
        self._kept_batches = kept_batches
        self.socket = bind(context, zmq.XPUB, listener, SNDHWM=kept_messages, MAXMSGSIZE=_LONGEST_TOPIC_BYTES)

    @property
    def endpoint(self) -> str:
        """Where subscribers connect."""
        return self._listener.endpoint

    def wants(self, topic: bytes) -> bool:
        """Whether somebody listens to that topic."""
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
            for message in batch:
                self._send(message)

    def hear(self) -> None:
        """Follow the subscriptions."""
        heard: list[bytes] = []
        try:
            while len(heard) < _HEARD_AT_ONCE:
                heard.append(self.socket.recv(zmq.NOBLOCK))
        except zmq.Again:
            pass
        if heard:
            self._on_change(self.subscriptions.update(heard))

    def close(self) -> None:
        """Give the port back."""
        self.socket.close()
        self._listener.close()

    def _send(self, message: Message) -> None:
        *topics, payload = message
        for topic in topics:
            self.socket.send(topic, zmq.NOBLOCK | zmq.SNDMORE)
        self.socket.send(payload, zmq.NOBLOCK, copy=len(payload) < _ZERO_COPY_BYTES)


def _nobody_to_wake() -> None:
    """Before an outlet is added to a thread, what it is offered waits."""
