"""The info stream: which actuators and cameras there are, told again and again while physics runs live."""

from collections.abc import Callable, Mapping
from typing import Protocol

from urlab.transport.endpoint import Listener
from urlab.transport.outlet import Outlet
from urlab.transport.publishing_thread import PublishingThread

OFTEN_STEPS = 50
SELDOM_STEPS = 500
OFTEN_UNTIL_STEP = 2500
_KEPT_MESSAGES = 100
_KEPT_BATCHES = 4


class InfoSource(Protocol):
    """A running scene, as far as this stream needs it."""

    @property
    def is_live(self) -> bool:
        """Whether physics runs by itself."""

    def listen(self, hook: Callable[[], None]) -> None:
        """Call the hook, under the physics lock, whenever the state is published."""

    def unlisten(self, hook: Callable[[], None]) -> None:
        """Call it no more."""

    def info(self, cameras: Mapping[str, str]) -> list[bytes]:
        """One message per robot; ``cameras`` maps names to endpoints."""


class InfoPublisher:
    """Sends one frame per robot, every `OFTEN_STEPS` live steps at first and every `SELDOM_STEPS` later.

    The steps of each play are counted anew.
    """

    def __init__(self, thread: PublishingThread, listener: Listener) -> None:
        """``thread`` serves the socket, until it is closed itself."""
        self._source: InfoSource | None = None
        self._frames: list[tuple[bytes]] = []
        self._steps = 0
        self._due = OFTEN_STEPS
        self._outlet = Outlet(
            thread.context,
            listener,
            kept_messages=_KEPT_MESSAGES,
            kept_batches=_KEPT_BATCHES,
            on_change=lambda new: None,  # noqa: ARG005 - the next message is soon enough
        )
        thread.add(self._outlet)

    @property
    def endpoint(self) -> str:
        """Where subscribers connect."""
        return self._outlet.endpoint

    def attach(self, source: InfoSource, cameras: Mapping[str, str]) -> None:
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

    def counters(self) -> dict[str, int]:
        """Messages sent, and messages that were dropped because they came too fast."""
        return self._outlet.counters()

    def _published(self) -> None:
        """On the stepping thread, under the physics lock."""
        source = self._source
        if source is None or not source.is_live:
            return
        self._steps += 1
        if self._steps < self._due:
            return
        self._due += OFTEN_STEPS if self._steps < OFTEN_UNTIL_STEP else SELDOM_STEPS
        wanted = [frame for frame in self._frames if self._outlet.wants(frame[0])]
        if wanted:
            self._outlet.offer(wanted)
