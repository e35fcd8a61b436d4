"""What the client raises, and the warning that it gives.

    RuntimeError
    ├── URLabRPCError             the server answered an error, or could not be asked
    │   ├── URLabTimeoutError     no answer in time (also a TimeoutError)
    │   ├── URLabPIEError         the simulation did not start
    │   ├── URLabValueError       the server does not take a value: a word, a number, a length (also a ValueError)
    │   └── URLabControllerError  a controller does not take these params (also a ValueError)
    ├── URLabVersionMismatch      server and client run different MuJoCo builds
    └── URLabGoneError            a handle whose robot, body or camera is not in the running scene
    KeyError
    └── URLabLookupError          no joint, actuator, robot, camera, ... of that name; it lists those that there are
    UserWarning
    ├── URLabModeWarning          the step mode in force is not the one that was asked for
    └── URLabLocalEditWarning     the local model was edited, and the server's was not

Other wrong arguments are refused before anything is sent, with the builtin ValueError or TypeError; so a wrong value is
a ValueError whichever side finds it. An attribute that an object does not have, or that is read-only, is an
AttributeError. All of them survive pickling.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from urlab_wire.enums import PIEState
from urlab_wire.errors import ErrorCode

TIMEOUT = "timeout"
TRANSPORT_ERROR = "transport_error"
UNEXPECTED_REPLY_OP = "unexpected_reply_op"
CLIENT_CLOSED = "client_closed"
NO_SESSION = "no_session"
_MOST_NAMES = 40


class PicklableError(Exception):
    """An exception that pickles whole, whatever its constructor takes: type, ``args`` and attributes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, dict(self.__dict__))


def _rebuilt(kind: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    maker: Any = OSError if issubclass(kind, OSError) else kind
    error: BaseException = maker.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class URLabRPCError(PicklableError, RuntimeError):
    """An op failed. ``code`` is short and stable, ``message`` is for people, ``op`` is what was asked."""

    def __init__(self, code: str, message: str, *, op: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.op = op

    def __str__(self) -> str:
        named = not self.op or re.match(rf"{re.escape(self.op)}\b", self.message)
        prefix = "" if named else f"{self.op}: "
        return f"{prefix}{self.message} [{self.code}]"


class URLabTimeoutError(URLabRPCError, TimeoutError):
    """No server answered at ``address`` within ``timeout_s`` seconds; its code is ``timeout``."""

    def __init__(
        self,
        address: str,
        timeout_s: float,
        *,
        connected: bool = True,
        op: str | None = None,
        message: str | None = None,
    ) -> None:
        super().__init__(TIMEOUT, message or _late(address, timeout_s, connected), op=op)
        self.address = address
        self.timeout_s = timeout_s
        self.connected = connected


class ServerEndedError(URLabTimeoutError):
    """The server ended before it answered; a timeout that was known early. ``timeout_s`` is how long it was."""

    def __init__(self, address: str, timeout_s: float) -> None:
        message = (
            f"the server at {address} ended before it answered: start one (`urlab serve`), then call discover() again"
        )
        super().__init__(address, timeout_s, connected=False, message=message)


class URLabPIEError(URLabRPCError):
    """``sim.start`` ended in another state than READY; ``message`` carries the compile log when there is one."""

    def __init__(self, *, code: str, message: str, state: PIEState) -> None:
        super().__init__(code, message, op="begin_pie")
        self.state = state


class URLabControllerError(URLabRPCError, ValueError):
    """A controller does not take these params: an unknown one, or a value that its schema forbids.

    Its code is ``controller_schema_violation``, whether the client or the server found it; nothing was changed.
    """

    def __init__(self, message: str, *, op: str | None = None) -> None:
        super().__init__(ErrorCode.CONTROLLER_SCHEMA_VIOLATION.value, message, op=op)


class URLabValueError(URLabRPCError, ValueError):
    """The server does not take a value of this request; its code is one of `WRONG_VALUE`. Nothing was changed."""


WRONG_VALUE = frozenset({ErrorCode.BAD_VALUE, ErrorCode.BAD_MODE, ErrorCode.INVALID_MODE, ErrorCode.DIM_MISMATCH})
"""Codes of an unknown word, of a number that cannot be, of a vector of another length."""


class URLabGoneError(PicklableError, RuntimeError):
    """A handle was used whose robot, body or camera is not in the running scene; the message says why."""


class URLabLookupError(PicklableError, KeyError):
    """There is none of that name. ``kind`` says of what, ``name`` which was asked for, ``known`` which there are."""

    def __init__(self, message: str, *, kind: str = "", name: str = "", known: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.kind = kind
        self.name = name
        self.known = tuple(known)

    def __str__(self) -> str:
        return str(self.args[0])


class URLabModeWarning(UserWarning):
    """The server steps in another mode than this client asked for; the text says which, why, and what to do."""


class URLabLocalEditWarning(UserWarning):
    """The local model was edited in a mode in which the server simulates its own; the text says what to call."""


class URLabVersionMismatch(PicklableError, RuntimeError):
    """Server and client run different MuJoCo builds, so a compiled model cannot travel between them."""

    def __init__(self, server: str, client: str) -> None:
        super().__init__(
            f"the server runs MuJoCo {server}, this client {client}: install mujoco=={server} here, "
            "or pass mujoco_version_check=False to go on with a warning"
        )
        self.server = server
        self.client = client


def _late(address: str, timeout_s: float, connected: bool) -> str:
    if connected:
        return f"no answer from {address} within {timeout_s:g} s: the server listens there, but is busy or stuck"
    return f"no server listens at {address} (waited {timeout_s:g} s): is `urlab serve` running, and is this its port?"


def unknown_name(
    kind: str, name: object, known: Iterable[str], *, owner: str = "", empty: str = ""
) -> URLabLookupError:
    """The error for a name that is none of ``known``. ``owner`` is what they belong to; ``empty`` stands for no names.

    It proposes the name that looks most alike.
    """
    names = list(known)
    subject = f"{owner!r} has no {kind} {name!r}" if owner else f"no {kind} {name!r}"
    near = get_close_matches(str(name), names, n=1)
    proposal = f" (did you mean {near[0]!r}?)" if near else ""
    verb = "it has" if owner else "there are"
    return URLabLookupError(
        f"{subject}{proposal}; {verb} {listed(names) or empty or 'none'}", kind=kind, name=str(name), known=names
    )


def listed(names: list[str]) -> str:
    """Names with commas between them; of very many the first ones."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def counted(count: int, noun: str) -> str:
    """``1 robot``, ``2 robots``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
