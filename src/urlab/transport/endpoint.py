"""Listening on an address, with messages that say which option to change."""

import contextlib
import errno
import os
import socket as sockets
from dataclasses import dataclass
from pathlib import Path

from urlab.errors import ConfigError

_FIRST_IPC_NUMBER = 5559
_BACKLOG = 128
_OWN_FILE, _SHARED_FILE = 0o600, 0o666


@dataclass(frozen=True)
class ListeningSocket:
    """A socket that listens, and the endpoint that clients connect to."""

    socket: sockets.socket
    endpoint: str

    def close(self) -> None:
        """Stop listening; the file of an ipc endpoint goes too."""
        self.socket.close()
        if self.endpoint.startswith("ipc://"):
            Path(self.endpoint.removeprefix("ipc://")).unlink(missing_ok=True)


def listen(base: str, port: int, *, option: str, share: bool = False) -> ListeningSocket:
    """Listen on ``<base>:<port>``, port 0 meaning any free one; ConfigError says what is wrong and what to change.

    A socket file is for this user alone, unless ``share`` opens it to all users of this machine. For TCP the caller has
    to judge who connects: see `urlab.access`.
    """
    if base.startswith("ipc://"):
        return _listen_ipc(f"{base}:{port or _free_ipc_number(base)}", option, share)
    return _listen_tcp(base, port, option)


def _listen_tcp(base: str, port: int, option: str) -> ListeningSocket:
    host = base.removeprefix("tcp://").strip("[]").replace("localhost", "127.0.0.1")
    socket = None
    try:
        family, kind, _, _, address = sockets.getaddrinfo(host, port, type=sockets.SOCK_STREAM)[0]
        socket = sockets.socket(family, kind)
        socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        socket.bind(address)
        socket.listen(_BACKLOG)
    except OSError as refused:
        if socket is not None:
            socket.close()
        raise ConfigError(_advice(f"{base}:{port}", option, refused)) from refused
    shown = f"[{host}]" if ":" in host else host
    return ListeningSocket(socket, f"tcp://{shown}:{socket.getsockname()[1]}")


def _listen_ipc(endpoint: str, option: str, share: bool) -> ListeningSocket:
    path = endpoint.removeprefix("ipc://")
    _refuse_taken_ipc(endpoint, option)
    socket = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()
        os.fchmod(socket.fileno(), _OWN_FILE)  # what bind creates has this mode from the start
        socket.bind(path)
        if share:
            Path(path).chmod(_SHARED_FILE)
        socket.listen(_BACKLOG)
    except OSError as refused:
        socket.close()
        raise ConfigError(_advice(endpoint, option, refused)) from refused
    return ListeningSocket(socket, endpoint)


def _free_ipc_number(base: str) -> int:
    number = _FIRST_IPC_NUMBER
    while Path(f"{base.removeprefix('ipc://')}:{number}").exists():
        number += 1
    return number


def _refuse_taken_ipc(endpoint: str, option: str) -> None:
    """The socket file of a living server must not be taken over; a dead one's may."""
    path = endpoint.removeprefix("ipc://")
    if not Path(path).exists():
        return
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return
    raise ConfigError(f"{endpoint} is in use by another server: choose another path, or another {option}")


def _advice(address: str, option: str, refused: OSError) -> str:
    if refused.errno == errno.EADDRINUSE:
        return (
            f"port {address.rpartition(':')[2]} ({option}) is in use, perhaps by another server: "
            f"stop that one, or choose another port with {option} (0 = any free one)"
        )
    if refused.errno in (errno.EADDRNOTAVAIL, errno.ENODEV) or isinstance(refused, sockets.gaierror):
        return f"{address} is not an address of this machine: choose another --host"
    return f"{address} ({option}) cannot be bound: {os.strerror(refused.errno or 0)}"
