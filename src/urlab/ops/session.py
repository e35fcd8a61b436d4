"""Who talks to the server. One plain session at a time, and observers and operators beside it."""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from urlab.errors import SessionExpired
from urlab_wire.enums import Encoding, ObservationLevel, StepMode

MAX_OBSERVERS = 256
"""Operators included. When one more comes, the one that has been silent longest is closed."""


@dataclass
class Session:
    """``steps_at_start`` is the step counter's total at its hello; ``wanted_mode`` the mode it last asked for.

    ``warned_of_source`` are the articulations of which it knows that its controls do nothing. ``has_stepped`` says
    whether it has sent a step: until then a switch of the mode begins its count anew.

    An observer may only look. An operator may do everything, and is not the one whose mode the server keeps.
    """

    observer: bool = False
    operator: bool = False
    encoding: Encoding = Encoding.MSGPACK
    observations: ObservationLevel = ObservationLevel.STANDARD
    steps_at_start: int = 0
    wanted_mode: StepMode | None = None
    warned_of_source: set[str] = field(default_factory=set)
    has_stepped: bool = False
    id: str = field(default_factory=lambda: str(uuid.uuid4()))


class SessionTable:
    """The open sessions. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._driver: Session | None = None
        self._beside: OrderedDict[str, Session] = OrderedDict()
        self.on_end: list[Callable[[Session], None]] = []
        """Called with a session that has ended; on the thread of the hello that ended it."""

    def open(self, session: Session) -> None:
        """Add a session; a plain one replaces the plain one before it."""
        ended: list[Session] = []
        with self._lock:
            if session.observer or session.operator:
                self._beside[session.id] = session
                while len(self._beside) > MAX_OBSERVERS:
                    ended.append(self._beside.popitem(last=False)[1])
            else:
                ended += [self._driver] if self._driver is not None else []
                self._driver = session
        for one in ended:
            for listener in self.on_end:
                listener(one)

    def counts(self) -> dict[str, int]:
        """How many sessions of each kind are open."""
        with self._lock:
            beside = list(self._beside.values())
        operators = sum(one.operator for one in beside)
        return {"driver": int(self._driver is not None), "operator": operators, "observer": len(beside) - operators}

    def wanted_mode(self, session: Session) -> StepMode | None:
        """The mode in which a play that this session begins is wanted: an operator begins it for the plain one."""
        whose = self._driver if session.operator else session
        return whose.wanted_mode if whose is not None else None

    def find(self, session_id: str | None) -> Session:
        """The open session of that id; SessionExpired when there is none."""
        driver = self._driver
        if driver is not None and session_id == driver.id:
            return driver
        if not session_id:
            raise SessionExpired("the request has no session_id: say hello first")
        with self._lock:
            if session_id in self._beside:
                self._beside.move_to_end(session_id)
                return self._beside[session_id]
        raise SessionExpired(
            f"session {session_id!r} is not open: another client said hello, or the server was restarted. "
            f"Say hello again (client.discover())."
        )
