"""Who talks to the server. One plain session at a time, and observers beside it."""

import threading
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field

from urlab.errors import SessionExpired
from urlab_wire.enums import Encoding, ObservationLevel, StepMode

MAX_OBSERVERS = 256
"""When one more comes, the one that has been silent longest is closed."""


@dataclass
class Session:
    """``steps_at_start`` is the step counter's total at its hello; ``wanted_mode`` the mode it last asked for."""

    observer: bool = False
    encoding: Encoding = Encoding.MSGPACK
    observations: ObservationLevel = ObservationLevel.STANDARD
    steps_at_start: int = 0
    wanted_mode: StepMode | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))


class SessionTable:
    """The open sessions. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._driver: Session | None = None
        self._observers: OrderedDict[str, Session] = OrderedDict()

    def open(self, session: Session) -> None:
        """Add a session; a plain one replaces the plain one before it."""
        with self._lock:
            if not session.observer:
                self._driver = session
                return
            self._observers[session.id] = session
            while len(self._observers) > MAX_OBSERVERS:
                self._observers.popitem(last=False)

    def last_level(self) -> ObservationLevel:
        """The observation level of the plain session, which the next one keeps unless it says otherwise."""
        return self._driver.observations if self._driver is not None else ObservationLevel.STANDARD

    def find(self, session_id: str | None) -> Session:
        """The open session of that id; SessionExpired when there is none."""
        driver = self._driver
        if driver is not None and session_id == driver.id:
            return driver
        if not session_id:
            raise SessionExpired("the request has no session_id: say hello first")
        with self._lock:
            if session_id in self._observers:
                self._observers.move_to_end(session_id)
                return self._observers[session_id]
        raise SessionExpired(
            f"session {session_id!r} is not open: another client said hello, or the server was restarted. "
            f"Say hello again (client.discover())."
        )
