"""Who talks to the server. One plain session at a time, and observers and operators beside it."""

import threading
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from urlab.access import LOCAL, RpcCaller
from urlab.errors import DriverBusy, SessionExpired, excerpt
from urlab_wire.enums import Encoding, ObservationLevel, StepMode

MAX_OBSERVERS = 256
MAX_OPERATORS = 64
"""Of each kind, counted apart. When one more comes, the caller that has most of them loses the one of them that has
been silent longest."""

LEASE_S = 10.0
"""How long a driver keeps its seat after its last request, against other callers."""

_REMEMBERED_ENDS = 64


@dataclass
class Session:
    """``steps_at_start`` is the step counter's total at its hello; ``wanted_mode`` the mode it last asked for.

    ``warned_of_source`` are the articulations of which it knows that its controls do nothing. ``has_stepped`` says
    whether it has sent a step: until then a switch of the mode begins its count anew. ``model_version`` is that of the
    changed model which it was told of, and ``gets_model`` says whether its handshakes carry the model.

    An observer may only look. An operator may do everything, and is not the one whose mode the server keeps. Only
    ``caller`` may use the session, and the user whose server this is.
    """

    observer: bool = False
    operator: bool = False
    encoding: Encoding = Encoding.MSGPACK
    observations: ObservationLevel = ObservationLevel.STANDARD
    steps_at_start: int = 0
    wanted_mode: StepMode | None = None
    warned_of_source: set[str] = field(default_factory=set)
    has_stepped: bool = False
    model_version: int = 0
    gets_model: bool = True
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    caller: RpcCaller = LOCAL
    last_used_s: float = field(default_factory=time.monotonic)

    @property
    def kind(self) -> str:
        """Observer, operator or driver."""
        return "observer" if self.observer else "operator" if self.operator else "driver"

    def is_of(self, caller: RpcCaller) -> bool:
        """Whether that caller may use it."""
        return caller is LOCAL or self.caller.name == caller.name


class SessionTable:
    """The open sessions. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._driver: Session | None = None
        self._observers: OrderedDict[str, Session] = OrderedDict()
        self._operators: OrderedDict[str, Session] = OrderedDict()
        self._taken: OrderedDict[str, str] = OrderedDict()
        self.on_end: list[Callable[[Session], None]] = []
        """Called with a session that has ended; on the thread of the hello that ended it."""

    def driver_before(self, caller: RpcCaller, *, takeover: bool) -> Session | None:
        """The driver of another caller, whose seat this one takes; DriverBusy while that one uses it."""
        driver = self._driver
        if driver is None or driver.caller.name == caller.name:
            return None
        idle_s = time.monotonic() - driver.last_used_s
        if idle_s < LEASE_S and not takeover:
            raise DriverBusy(
                f"{driver.caller.name!r} drives, and sent a request {idle_s:.1f} s ago: wait until it has been "
                f"silent for {LEASE_S:g} s, or say hello with takeover (URLabClient(..., takeover=True))"
            )
        return driver

    def open(self, session: Session, *, takeover: bool = False) -> None:
        """Add a session; a plain one replaces the plain one before it. DriverBusy as `driver_before` says."""
        ended: list[Session] = []
        with self._lock:
            if session.observer:
                ended += _put(session, self._observers, MAX_OBSERVERS)
            elif session.operator:
                ended += _put(session, self._operators, MAX_OPERATORS)
            else:
                before = self.driver_before(session.caller, takeover=takeover)
                if before is not None:
                    self._remember_taken(before, session.caller)
                ended += [self._driver] if self._driver is not None else []
                self._driver = session
        for one in ended:
            for listener in self.on_end:
                listener(one)

    def counts(self) -> dict[str, int]:
        """How many sessions of each kind are open."""
        with self._lock:
            observers, operators = len(self._observers), len(self._operators)
        return {"driver": int(self._driver is not None), "operator": operators, "observer": observers}

    def wanted_mode(self, session: Session) -> StepMode | None:
        """The mode in which a play that this session begins is wanted: an operator begins it for the plain one."""
        whose = self._driver if session.operator else session
        return whose.wanted_mode if whose is not None else None

    def _remember_taken(self, before: Session, caller: RpcCaller) -> None:
        self._taken[before.id] = f"{caller.name!r} has taken the driver's seat"
        while len(self._taken) > _REMEMBERED_ENDS:
            self._taken.popitem(last=False)

    def find(self, session_id: str | None, caller: RpcCaller = LOCAL) -> Session:
        """The open session of that id, if it is the caller's; SessionExpired when there is none."""
        driver = self._driver
        if driver is not None and session_id == driver.id and driver.is_of(caller):
            driver.last_used_s = time.monotonic()
            return driver
        if not session_id:
            raise SessionExpired("the request has no session_id: say hello first")
        with self._lock:
            for beside in (self._observers, self._operators):
                found = beside.get(session_id)
                if found is not None and found.is_of(caller):
                    beside.move_to_end(session_id)
                    return found
            taken = self._taken.get(session_id)
        reason = taken or "another client said hello, or the server was restarted"
        raise SessionExpired(
            f"session {excerpt(session_id)} is not open: {reason}. Say hello again (client.discover())."
        )


def _put(session: Session, beside: "OrderedDict[str, Session]", most: int) -> list[Session]:
    """Add a session to those of its kind; those that make room for it."""
    ended = []
    if len(beside) >= most:
        (caller, _), *_ = Counter(one.caller.name for one in beside.values()).most_common(1)
        oldest = next(one for one in beside.values() if one.caller.name == caller)
        ended.append(beside.pop(oldest.id))
    beside[session.id] = session
    return ended
