"""What a handler works with."""

from dataclasses import dataclass

from urlab.authoring import World
from urlab.config import ServerConfig
from urlab.manager import Manager, Play
from urlab.ops.session import Session, SessionTable
from urlab.overlay import Overlay
from urlab.viewport import Viewport


@dataclass(frozen=True, slots=True)
class Parts:
    """What a server is made of, as far as ops are concerned. ``world`` is the level that is being edited."""

    config: ServerConfig
    play: Play
    world: World
    overlay: Overlay
    viewport: Viewport


@dataclass(slots=True)
class Context:
    """The server as one request sees it. ``session`` is the caller's (for hello: the one being opened)."""

    parts: Parts
    sessions: SessionTable
    session: Session
    running: Manager | None = None
    """The running scene, for ops that need one."""

    @property
    def config(self) -> ServerConfig:
        """How the server was started."""
        return self.parts.config

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
