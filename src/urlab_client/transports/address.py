"""Where a server is, as a caller writes it."""

import re
from dataclasses import dataclass

PORTS = range(1, 65536)
DEFAULT_STATE_PORT = 5555
_SCHEMES = ("tcp", "ipc")
_ANY_HOST = ("", "*", "0.0.0.0", "[::]")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is: base address, ports, and the shared-memory folder when the caller names one."""

    base: str
    step_port: int
    state_port: int
    connect_timeout_ms: int
    shm_dir: str | None = None


def check_base(address: str, *, own_transport: bool) -> None:
    """ValueError unless this is a base address; ``inproc://`` is one for a caller with its own transport."""
    schemes = (*_SCHEMES, "inproc") if own_transport else _SCHEMES
    if not re.fullmatch(rf"({'|'.join(schemes)})://.+", str(address)):
        raise ValueError(
            f"address {address!r} is not one: write tcp://host or ipc:///path, without a port (pass step_port=)"
        )


def check_ports(**ports: int) -> None:
    """ValueError that names the first one that is no port number."""
    for name, port in ports.items():
        if isinstance(port, bool) or not isinstance(port, int) or port not in PORTS:
            raise ValueError(f"{name} must be a whole number within 1 and 65535, not {port!r}")


def stream_endpoint(told: str, base: str) -> str:
    """Where to connect for a stream that the server binds at ``told``, for a client that reaches it at ``base``.

    Over TCP only the port counts: the server may know itself by a wildcard, or by a name that means nothing here.
    """
    scheme, _, place = told.partition("://")
    host, _, port = place.rpartition(":")
    if scheme != "tcp":
        return told
    if base.startswith("tcp://"):
        return f"{base}:{port}"
    return f"tcp://127.0.0.1:{port}" if host in _ANY_HOST else told
