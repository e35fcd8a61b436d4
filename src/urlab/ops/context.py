"""What a handler works with, and how it registers: ``@handler("op")`` on a function in a module of `handlers`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from urlab.access import LOCAL, AuditLog, RpcCaller
from urlab.authoring import World
from urlab.manager import Exports, Manager, Play
from urlab.manager.batches import BatchTable
from urlab.monitoring.log_buffer import LogBuffer
from urlab.ops.session import Session, SessionTable
from urlab.overlay import Overlay
from urlab.viewport import ModelPictures, Viewport
from urlab_wire import CATALOGUE, Reply


class StreamEndpoints(Protocol):
    """The live streams, as far as clients need to know of them."""

    def endpoints(self) -> Mapping[str, Any]:
        """``state``, ``control``, ``info``, and ``cameras`` by name."""

    def counters(self) -> Mapping[str, Mapping[str, Any]]:
        """What each socket has done so far; those of ``cameras`` by name."""


class CameraRegions(Protocol):
    """Which cameras are in shared memory, by topic."""

    def has_camera(self, topic: str) -> bool:
        """Whether its pictures are written there, while a client reads them."""

    def mute(self, topic: str, muted: bool) -> None:
        """Stop, or resume, writing them."""


class SharedMemoryInfo(Protocol):
    """Shared memory, as far as clients need to know of it."""

    @property
    def folder(self) -> Path:
        """Where the regions are."""

    @property
    def streams(self) -> CameraRegions:
        """What is written there."""


class EditorPage(Protocol):
    """The browser editor, as far as clients need to know of it."""

    @property
    def url(self) -> str:
        """Its page, with the token that opens it."""


@dataclass(slots=True)
class Parts:
    """What a server is made of, as far as ops are concerned. ``world`` is the level that is being edited.

    ``streams`` is None while the server has no sockets, ``shared_memory`` while it has none.
    """

    play: Play
    world: World
    overlay: Overlay
    viewport: Viewport
    pictures: ModelPictures
    exports: Exports
    log: LogBuffer
    """The newest records of the server's log."""

    batches: BatchTable = field(default_factory=BatchTable)
    """What clients have open of many simulations."""

    streams: StreamEndpoints | None = None
    shared_memory: SharedMemoryInfo | None = None
    editor: EditorPage | None = None
    """The browser editor; None while there is none."""

    audit: AuditLog | None = None
    """Where it is kept who did what; None while there are no sockets."""

    def camera_endpoint(self, name: str) -> str | None:
        """Where a camera streams, or None."""
        if self.streams is None:
            return None
        endpoint: str | None = self.streams.endpoints()["cameras"].get(name)
        return endpoint


@dataclass(slots=True)
class Context:
    """The server as one request sees it. ``session`` is the caller's (for hello: the one being opened)."""

    parts: Parts
    sessions: SessionTable
    session: Session
    running: Manager | None = None
    """The running scene, for ops that need one."""

    caller: RpcCaller = LOCAL

    @property
    def play(self) -> Play:
        """The play lifecycle."""
        return self.parts.play

    @property
    def world(self) -> World:
        """The level that is being edited."""
        return self.parts.world

    @property
    def manager(self) -> Manager:
        """The running scene; NoActiveManager when nothing plays."""
        return self.running or self.parts.play.manager

    def record(self, event: str, **detail: Any) -> None:
        """Keep in the audit log what the caller did."""
        if self.parts.audit is not None:
            self.parts.audit.record(event, self.caller.name, self.caller.address, **detail)

    def count_from(self, total: int) -> None:
        """Let the caller's steps, and for the plain session those of the state stream, count from here."""
        self.session.steps_at_start = total
        if not (self.session.observer or self.session.operator):
            self.play.counter.driver_start = total


Handler = Callable[[Context, Any], Reply | bytes]
"""A typed reply, or one that is encoded already, in the encoding of the session."""

HANDLERS: dict[str, Handler] = {}


def handler(op: str) -> Callable[[Handler], Handler]:
    """Declare the handler of an op: ``(context, typed request) -> reply``. A second one for an op is refused."""
    if op not in CATALOGUE:
        raise ValueError(f"there is no op {op!r} in the catalogue")

    def register(function: Handler) -> Handler:
        if op in HANDLERS:
            raise ValueError(f"op {op!r} has two handlers: {HANDLERS[op].__name__} and {function.__name__}")
        HANDLERS[op] = function
        return function

    return register
