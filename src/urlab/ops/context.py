"""What a handler works with."""

from dataclasses import dataclass

from urlab.config import ServerConfig
from urlab.manager import Manager, Play
from urlab.ops.session import Session, SessionTable


@dataclass(slots=True)
class Context:
    """The server as one request sees it. ``session`` is the caller's (for hello: the one being opened)."""

    config: ServerConfig
    play: Play
    sessions: SessionTable
    session: Session
    running: Manager | None = None
    """The running scene, for ops that need one."""

    @property
    def manager(self) -> Manager:
        """The running scene; NoActiveManager when nothing plays."""
        return self.running or self.play.manager
