"""What the streams need of a running scene, and what a server needs of the streams."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from urlab_wire.streams import ControlOutcome

Rows = Callable[[], list[tuple[bytes, bytes]]]
"""Gives the selected rows of this moment, (topic, payload) each; its caller holds the physics lock."""


class StreamedCamera(NamedTuple):
    """A camera that streams. ``prefix`` and ``short_name`` make its file names, ``frame_bytes`` are one picture's."""

    name: str
    topic: str
    prefix: str
    short_name: str
    frame_bytes: int


class SceneSource(Protocol):
    """A running scene, as the streams know it."""

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
        """A function for the wanted rows; None when there are none."""

    def state(self) -> bytes:
        """The payload of ``state/full``; the caller holds the lock."""

    def info(self, cameras: Mapping[str, str]) -> list[bytes]:
        """One info message per robot; ``cameras`` maps names to endpoints."""

    def control(self, messages: Sequence[tuple[bytes, bytes]]) -> Sequence[ControlOutcome]:
        """Take messages of the control socket, (topic, payload) each; what became of each."""

    def control_hint(self, topic: bytes, payload: bytes) -> str:
        """For the log: which ids a message asks for, and which its robot has."""


class ScenePublisher(Protocol):
    """Publishes one scene after another: its state, and the pictures of its cameras by their topics."""

    on_subscriber: Callable[[], None]
    """Called when a camera may have got a subscriber, on a thread of the publisher; it must not take long."""

    def attach(self, source: SceneSource, cameras: Sequence[StreamedCamera]) -> None:
        """Publish this scene from now on."""

    def detach(self) -> None:
        """Publish nothing until the next scene."""

    def wants(self, topic: str) -> bool:
        """Whether a camera's pictures have a subscriber. Any thread, at once."""

    def publish(self, topic: str, metadata: Mapping[str, Any], data: bytes | memoryview) -> None:
        """Hand a picture to its subscribers; ``data`` must not change afterwards. Any thread; it never waits."""


def no_op() -> None:
    """The callback of a publisher that has been given none."""
