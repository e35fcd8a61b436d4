"""What the client raises.

    RuntimeError
    ├── URLabRPCError             the server answered an error, or could not be asked
    │   ├── URLabTimeoutError     no answer in time (also a TimeoutError)
    │   └── URLabPIEError         the simulation did not start
    └── URLabVersionMismatch      server and client run different MuJoCo builds

Wrong arguments are refused before anything is sent, with the builtin ValueError, TypeError or KeyError.
"""

import re

from urlab_wire.enums import PIEState

TIMEOUT = "timeout"
TRANSPORT_ERROR = "transport_error"
UNEXPECTED_REPLY_OP = "unexpected_reply_op"
CLIENT_CLOSED = "client_closed"
NO_SESSION = "no_session"


class URLabRPCError(RuntimeError):
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


class URLabVersionMismatch(RuntimeError):
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
