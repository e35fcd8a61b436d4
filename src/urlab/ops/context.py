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

    @property
    def manager(self) -> Manager:
        """The running scene; NoActiveManager when nothing plays."""
        return self.play.manager
