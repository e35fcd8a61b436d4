"""The camera streams: a socket per camera, on which pictures follow what is known of them."""

import errno
import itertools
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from urlab.errors import ConfigError
from urlab.transport.endpoint import ListeningSocket, listen
from urlab.transport.publisher import StreamedCamera, no_op
from urlab.transport.streams.publishing import Message, PublishingThread, PubSocket
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

    Sockets are opened when a scene needs more of them than there are, and closed when the next scene needs fewer: each
    takes several file descriptors. The first camera of any scene is always at the first port, the second at the next,
    and so on; subscribers of a port that was closed come back to it by themselves when it is opened again.
    """

    def __init__(
        self,
        thread: PublishingThread,
        base: str,
        first_port: int,
        avoided_ports: Collection[int],
        *,
        share: bool = False,
    ) -> None:
        """Ports are taken upward from ``first_port``, leaving out those to be avoided and those in use; 0 is any."""
        self.on_subscriber: Callable[[], None] = no_op
        """Called on the serving thread when a subscriber arrives; it must not take long."""
        self._thread = thread
        self._base = base
        self._share = share
        self._ports = _ports(first_port, frozenset(avoided_ports))
        self._fixed_ports = first_port != 0
        self._sockets: list[PubSocket] = []
        self._given_back: list[int] = []
        self._names: dict[str, PubSocket] = {}
        self._topics: dict[str, PubSocket] = {}

    def attach(self, cameras: Sequence[StreamedCamera]) -> None:
        """Serve these cameras, in their order; ConfigError when there are not enough free ports."""
        while len(self._sockets) > len(cameras):
            self._close_last()
        while len(self._sockets) < len(cameras):
            self._open_one()
        self._names = {one.name: socket for one, socket in zip(cameras, self._sockets, strict=False)}
        self._topics = {one.topic: socket for one, socket in zip(cameras, self._sockets, strict=False)}

    def detach(self) -> None:
        """Serve none; subscribers stay connected and wait for the next scene."""
        self._names, self._topics = {}, {}

    def endpoints(self) -> dict[str, str]:
        """Where subscribers of each camera connect."""
        return {name: socket.endpoint for name, socket in self._names.items()}

    def counters(self) -> dict[str, dict[str, int]]:
        """Per camera: messages sent, and messages that newer ones have superseded before they were sent."""
        return {name: socket.counters() for name, socket in self._names.items()}

    def wants(self, topic: str) -> bool:
        """Whether a camera's pictures, or what is known of them, have a subscriber. Any thread."""
        socket = self._topics.get(topic)
        return socket is not None and (
            socket.wants(frame_topic(topic).encode()) or socket.wants(meta_topic(topic).encode())
        )

    def publish(self, topic: str, metadata: Mapping[str, Any], data: bytes | memoryview) -> None:
        """Send a picture to its subscribers; ``data`` is not copied. Never waits; a newer picture replaces it."""
        socket = self._topics.get(topic)
        if socket is None:
            return
        meta, frame = meta_topic(topic).encode(), frame_topic(topic).encode()
        batch: list[Message] = []
        if socket.wants(meta):
            batch.append((meta, pack_metadata(metadata)))
        if socket.wants(frame):
            batch.append((frame, data))
        if batch:
            socket.offer(batch)

    def _open_one(self) -> None:
        socket = PubSocket(
            self._thread.guard,
            self._listen_on_next_port(),
            kept_messages=_KEPT_MESSAGES,
            kept_batches=_KEPT_BATCHES,
            on_change=lambda new: self.on_subscriber() if new else None,
        )
        self._sockets.append(socket)
        self._thread.add(socket)

    def _close_last(self) -> None:
        socket = self._sockets.pop()
        if self._fixed_ports:
            self._given_back.append(int(socket.endpoint.rpartition(":")[2]))
        self._thread.remove(socket)

    def _next_port(self) -> int | None:
        return self._given_back.pop() if self._given_back else next(self._ports, None)

    def _listen_on_next_port(self) -> ListeningSocket:
        while (port := self._next_port()) is not None:
            try:
                return listen(self._base, port, option=OPTION, share=self._share)
            except ConfigError as refused:
                if not _is_in_use(refused):
                    raise
                log.info("port %d is in use; the next camera takes another one", port)
        raise ConfigError(f"no port is left for a camera: choose a lower {OPTION}, or 0 for any free ports")


def _ports(first: int, avoided: frozenset[int]) -> Iterator[int]:
    if first == 0:
        yield from itertools.repeat(0)
    else:
        yield from (port for port in range(first, _LAST_PORT + 1) if port not in avoided)


def _is_in_use(refused: ConfigError) -> bool:
    """Whether another port may do. A living server on an ipc path is found by asking, not by an error of the system."""
    cause = refused.__cause__
    return cause is None or (isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE)
