"""The state stream (rows and ``state/full``) and the info stream (actuators and cameras), to their subscribers."""

import threading
from collections.abc import Callable, Mapping

from urlab.errors import OpTimeout
from urlab.transport.endpoint import ListeningSocket
from urlab.transport.publisher import Rows, SceneSource
from urlab.transport.streams.publishing import PublishingThread, PubSocket
from urlab_wire.streams import STATE_TOPIC

HEARTBEAT_S = 0.1
KEPT_MESSAGES = 2000
"""Per subscriber. A step of a large scene is a few hundred rows, all handed over at once."""

KEPT_BATCHES = 250
"""Half a second of steps, for a moment when other threads have the interpreter."""

OFTEN_STEPS = 50
SELDOM_STEPS = 500
OFTEN_UNTIL_STEP = 2500
_INFO_MESSAGES = 100
_INFO_BATCHES = 4
_LOCK_S = 0.005
_STOP_LIMIT_S = 3.0
_STATE = STATE_TOPIC.encode()


class Heartbeat:
    """A thread that calls ``beat`` at once when it becomes wanted, and every ``period_s`` until it no longer is."""

    def __init__(self, beat: Callable[[], None], period_s: float) -> None:
        self._beat = beat
        self._period_s = period_s
        self._changed = threading.Condition()
        self._wanted = False
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="urlab-heartbeat", daemon=True)
        self._thread.start()

    def want(self, wanted: bool) -> None:
        """Whether it shall beat."""
        with self._changed:
            self._wanted = wanted
            self._changed.notify()

    def close(self) -> None:
        """End the thread. Once is enough."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(_STOP_LIMIT_S)

    def _run(self) -> None:
        while self._wait_until_wanted():
            self._beat()
            with self._changed:
                self._changed.wait_for(lambda: self._stopping, self._period_s)

    def _wait_until_wanted(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._wanted or self._stopping)
            return not self._stopping


class StatePublisher:
    """Lives as long as the server; scenes come and go. What has no subscriber is not even encoded.

    Live: rows, then ``state/full``, with every step. Other modes: ``state/full`` with every request. When nothing
    was published for a while, it is repeated every `HEARTBEAT_S`.
    """

    def __init__(self, thread: PublishingThread, listener: ListeningSocket) -> None:
        """``thread`` serves the socket, until it is closed itself."""
        self._lock = threading.Lock()
        self._source: SceneSource | None = None
        self._rows: Rows | None = None
        self._wants_state = False
        self._publications = 0
        self._seen_by_heartbeat = 0
        self._heartbeat = Heartbeat(self._beat, HEARTBEAT_S)
        self.socket = PubSocket(
            thread.guard,
            listener,
            kept_messages=KEPT_MESSAGES,
            kept_batches=KEPT_BATCHES,
            on_change=self._subscriptions_changed,
        )
        thread.add(self.socket)

    def attach(self, source: SceneSource) -> None:
        """Publish this scene from now on."""
        with self._lock:
            self._source = source
            self._select()
        source.listen(self._published)

    def detach(self) -> None:
        """Publish nothing until the next scene."""
        with self._lock:
            source, self._source = self._source, None
            self._select()
        if source is not None:
            source.unlisten(self._published)

    def close(self) -> None:
        """End the heartbeat; the socket is closed by the thread that serves it."""
        self.detach()
        self._heartbeat.close()

    def _subscriptions_changed(self, new: bool) -> None:  # noqa: ARG002 - those that went matter as much
        with self._lock:
            self._select()

    def _select(self) -> None:
        source, wants = self._source, self.socket.wants
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
            self.socket.offer(batch)

    def _beat(self) -> None:
        source = self._source
        idle, self._seen_by_heartbeat = self._seen_by_heartbeat == self._publications, self._publications
        if source is None or not idle:
            return
        try:
            with source.locked(_LOCK_S):
                if self._source is source:
                    self.socket.offer([(_STATE, source.state())])
        except OpTimeout:  # a long step is under way, which will publish its own end
            return


class InfoPublisher:
    """Sends one frame per robot, every `OFTEN_STEPS` live steps at first and every `SELDOM_STEPS` later.

    The steps of each play are counted anew.
    """

    def __init__(self, thread: PublishingThread, listener: ListeningSocket) -> None:
        """``thread`` serves the socket, until it is closed itself."""
        self._source: SceneSource | None = None
        self._frames: list[tuple[bytes]] = []
        self._steps = 0
        self._due = OFTEN_STEPS
        self.socket = PubSocket(
            thread.guard,
            listener,
            kept_messages=_INFO_MESSAGES,
            kept_batches=_INFO_BATCHES,
            on_change=lambda new: None,  # noqa: ARG005 - the next message is soon enough
        )
        thread.add(self.socket)

    def attach(self, source: SceneSource, cameras: Mapping[str, str]) -> None:
        """Tell of this scene from now on; ``cameras`` maps names to endpoints."""
        self._frames = [(frame,) for frame in source.info(cameras)]
        self._steps, self._due = 0, OFTEN_STEPS
        self._source = source
        source.listen(self._published)

    def detach(self) -> None:
        """Tell nothing until the next scene."""
        source, self._source = self._source, None
        if source is not None:
            source.unlisten(self._published)

    def _published(self) -> None:
        """On the stepping thread, under the physics lock."""
        source = self._source
        if source is None or not source.is_live:
            return
        self._steps += 1
        if self._steps < self._due:
            return
        self._due += OFTEN_STEPS if self._steps < OFTEN_UNTIL_STEP else SELDOM_STEPS
        wanted = [frame for frame in self._frames if self.socket.wants(frame[0])]
        if wanted:
            self.socket.offer(wanted)
