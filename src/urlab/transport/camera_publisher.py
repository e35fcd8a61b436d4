"""The camera streams: a socket per camera, on which pictures follow what is known of them."""

import errno
import itertools
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from urlab.errors import ConfigError
from urlab.transport.endpoint import Listener, listen
from urlab.transport.outlet import Message, Outlet
from urlab.transport.publishing_thread import PublishingThread
from urlab_wire.stream_messages import pack_metadata
from urlab_wire.streams import frame_topic, meta_topic

log = logging.getLogger("urlab.transport")

OPTION = "--camera-port"
_KEPT_MESSAGES = 4
"""Per subscriber: two pictures with what is known of them."""

_KEPT_BATCHES = 1
_LAST_PORT = 65535


class CameraPublisher:
    """Publishes the pictures of one scene after another.

    Sockets are opened when a scene needs more of them than there are, and stay open until the thread that serves
    them is closed: the first camera of any scene is always at the first port, the second at the next, and so on.
    """

    def __init__(self, thread: PublishingThread, base: str, first_port: int, avoided_ports: Collection[int]) -> None:
        """Ports are taken upward from ``first_port``, leaving out those to be avoided and those in use; 0 is any."""
        self.on_subscribe: Callable[[], None] = _nobody_listens
        """Called on the serving thread when a subscriber arrives; it must not take long."""
        self._thread = thread
        self._base = base
        self._ports = _ports(first_port, frozenset(avoided_ports))
        self._outlets: list[Outlet] = []
        self._names: dict[str, Outlet] = {}
        self._topics: dict[str, Outlet] = {}

    def attach(self, cameras: Mapping[str, str]) -> None:
        """Serve these cameras, names to topics, in their order; ConfigError when there are not enough free ports."""
        while len(self._outlets) < len(cameras):
            self._open_one()
        self._names = dict(zip(cameras, self._outlets, strict=False))
        self._topics = dict(zip(cameras.values(), self._outlets, strict=False))

    def detach(self) -> None:
        """Serve none; subscribers stay connected and wait for the next scene."""
        self._names, self._topics = {}, {}

    def endpoints(self) -> dict[str, str]:
        """Where subscribers of each camera connect."""
        return {name: outlet.endpoint for name, outlet in self._names.items()}

    def counters(self) -> dict[str, dict[str, int]]:
        """Per camera: messages sent, and messages that newer ones have superseded before they were sent."""
        return {name: outlet.counters() for name, outlet in self._names.items()}

    def wanted(self, topic: str) -> bool:
        """Whether somebody subscribed to a camera's pictures, or to what is known of them. Any thread."""
        outlet = self._topics.get(topic)
        return outlet is not None and (
            outlet.wants(frame_topic(topic).encode()) or outlet.wants(meta_topic(topic).encode())
        )

    def publish(self, topic: str, metadata: Mapping[str, Any], data: bytes | memoryview) -> None:
        """Send a picture to those who want it; ``data`` is not copied. Never waits; a newer picture replaces it."""
        outlet = self._topics.get(topic)
        if outlet is None:
            return
        meta, frame = meta_topic(topic).encode(), frame_topic(topic).encode()
        batch: list[Message] = []
        if outlet.wants(meta):
            batch.append((meta, pack_metadata(metadata)))
        if outlet.wants(frame):
            batch.append((frame, data))
        if batch:
            outlet.offer(batch)

    def _open_one(self) -> None:
        outlet = Outlet(
            self._thread.context,
            self._listen_on_next_port(),
            kept_messages=_KEPT_MESSAGES,
            kept_batches=_KEPT_BATCHES,
            on_change=self._subscriptions_changed,
        )
        self._outlets.append(outlet)
        self._thread.add(outlet)

    def _listen_on_next_port(self) -> Listener:
        for port in self._ports:
            try:
                return listen(self._base, port, option=OPTION)
            except ConfigError as refused:
                if not _is_in_use(refused):
                    raise
                log.info("port %d is in use; the next camera takes another one", port)
        raise ConfigError(f"no port is left for a camera: choose a lower {OPTION}, or 0 for any free ports")

    def _subscriptions_changed(self, new: bool) -> None:
        if new:
            self.on_subscribe()


def _ports(first: int, avoided: frozenset[int]) -> Iterator[int]:
    if first == 0:
        yield from itertools.repeat(0)
    else:
        yield from (port for port in range(first, _LAST_PORT + 1) if port not in avoided)


def _is_in_use(refused: ConfigError) -> bool:
    """Whether another port may do. A living server on an ipc path is found by asking, not by an error of the system."""
    cause = refused.__cause__
    return cause is None or (isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE)


def _nobody_listens() -> None:
    """Until somebody wants to hear of subscribers."""
