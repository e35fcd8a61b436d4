"""The state stream: rows and ``state/full``, to those who subscribed to them."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from urlab.errors import OpTimeout
from urlab.transport.endpoint import Listener
from urlab.transport.heartbeat import Heartbeat
from urlab.transport.outlet import Outlet
from urlab.transport.publishing_thread import PublishingThread
from urlab_wire.streams import STATE_TOPIC

HEARTBEAT_S = 0.1
KEPT_MESSAGES = 2000
"""Per subscriber. A step of a large scene is a few hundred rows, all handed over at once."""

KEPT_BATCHES = 250
"""Half a second of steps, for a moment when other threads have the interpreter."""

_TURN_S = 0.005
_STATE = STATE_TOPIC.encode()

Rows = Callable[[], list[tuple[bytes, bytes]]]


class StateSource(Protocol):
    """A running scene, as far as this stream needs it."""

    @property
    def is_live(self) -> bool:
        """Whether physics runs by itself."""

    def listen(self, hook: Callable[[], None]) -> None:
        """Call the hook, under the physics lock, whenever the state is published."""

    def unlisten(self, hook: Callable[[], None]) -> None:
        """Call it no more."""

    def locked(self, timeout_s: float) -> AbstractContextManager[None]:
        """The physics lock; OpTimeout when it is not to be had in time."""

    def select_rows(self, wanted: Callable[[bytes], bool]) -> Rows | None:
        """A function for the wanted rows, to be called under the lock; None when there are none."""

    def state(self) -> bytes:
        """The payload of ``state/full``; the caller holds the lock."""


class StatePublisher:
    """Lives as long as the server; scenes come and go. What nobody subscribed to is not even encoded.

    Live: rows, then ``state/full``, with every step. Other modes: ``state/full`` with every request. When nothing
    was published for a while, it is repeated every `HEARTBEAT_S`.
    """

    def __init__(self, thread: PublishingThread, listener: Listener) -> None:
        """``thread`` serves the socket, until it is closed itself."""
        self._turn = threading.Lock()
        self._source: StateSource | None = None
        self._rows: Rows | None = None
        self._wants_state = False
        self._publications = 0
        self._seen_by_heartbeat = 0
        self._heartbeat = Heartbeat(self._beat, HEARTBEAT_S)
        self._outlet = Outlet(
            thread.context,
            listener,
            kept_messages=KEPT_MESSAGES,
            kept_batches=KEPT_BATCHES,
            on_change=self._subscriptions_changed,
        )
        thread.add(self._outlet)

    @property
    def endpoint(self) -> str:
        """Where subscribers connect."""
        return self._outlet.endpoint

    def attach(self, source: StateSource) -> None:
        """Publish this scene from now on."""
        with self._turn:
            self._source = source
            self._select()
        source.listen(self._published)

    def detach(self) -> None:
        """Publish nothing until the next scene."""
        with self._turn:
            source, self._source = self._source, None
            self._select()
        if source is not None:
            source.unlisten(self._published)

    def counters(self) -> dict[str, int]:
        """Messages sent, and messages that were dropped because they came too fast."""
        return self._outlet.counters()

    def close(self) -> None:
        """End the heartbeat; the socket is closed by the thread that serves it."""
        self.detach()
        self._heartbeat.close()

    def _subscriptions_changed(self, new: bool) -> None:  # noqa: ARG002 - those that went matter as much
        with self._turn:
            self._select()

    def _select(self) -> None:
        source, wants = self._source, self._outlet.wants
        self._rows = None if source is None else source.select_rows(wants)
        self._wants_state = source is not None and wants(_STATE)
        self._heartbeat.want(self._wants_state)

    def _published(self) -> None:
        """On the stepping thread, under the physics lock."""
        self._publications += 1
        rows, source = self._rows, self._source
        if source is None or not (rows or self._wants_state):
            return
        batch = rows() if rows is not None and source.is_live else []
        if self._wants_state:
            batch.append((_STATE, source.state()))
        if batch:
            self._outlet.offer(batch)

    def _beat(self) -> None:
        source = self._source
        idle, self._seen_by_heartbeat = self._seen_by_heartbeat == self._publications, self._publications
        if source is None or not idle:
            return
        try:
            with source.locked(_TURN_S):
                if self._source is source:
                    self._outlet.offer([(_STATE, source.state())])
        except OpTimeout:  # a long step is under way, which will publish its own end
            return
