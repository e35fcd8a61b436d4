"""The key by which a client proves its name to a server, and knows the server: CURVE, ZeroMQ's own encryption."""

import contextlib
import os
import re
import socket as sockets
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

VARIABLE = "URLAB_KEY"
"""The environment variable that names a key file."""

_KEY = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_VERSION = b"\xff" + bytes(8) + b"\x7f\x03\x00"
"""The part of ZeroMQ's greeting that comes before a mechanism is chosen: enough to be told the server's."""

_GREETING_BYTES = 64
_MECHANISM = slice(12, 32)
_PROBE_TIMEOUT_S = 0.5
_HANDSHAKES = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A client's key pair, and the public key of the server that it is for."""

    public: str
    secret: str
    server: str
    name: str = ""

    def __repr__(self) -> str:
        return f"ClientKey({self.name!r})"

    @classmethod
    def load(cls, path: "str | os.PathLike[str]") -> "ClientKey":
        """Read the file that `urlab keys new` wrote; ValueError says what is wrong with it."""
        try:
            fields = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
        except (OSError, ValueError) as wrong:
            raise ValueError(f"the key {os.fspath(path)} cannot be read: {wrong}") from wrong
        for field in ("public", "secret", "server"):
            if not isinstance(fields.get(field), str) or not _KEY.fullmatch(fields[field]):
                raise ValueError(f"the key {os.fspath(path)} has no {field} of 40 characters: is it a client's key?")
        return cls(fields["public"], fields["secret"], fields["server"], str(fields.get("name", "")))

    def secure(self, socket: Any) -> None:
        """Have a ZeroMQ socket that is not connected yet use this key."""
        socket.curve_publickey = self.public.encode()
        socket.curve_secretkey = self.secret.encode()
        socket.curve_serverkey = self.server.encode()


def find_key(key: "ClientKey | str | os.PathLike[str] | None") -> ClientKey | None:
    """A key as callers name it: itself, its file, or None for the file that ``URLAB_KEY`` names, if it does."""
    if key is None:
        named = os.environ.get(VARIABLE)
        return ClientKey.load(named) if named else None
    return key if isinstance(key, ClientKey) else ClientKey.load(key)


def reason_of_silence(endpoint: str, key: ClientKey | None) -> str | None:
    """Why a server that listens may not let a client in; None when keys have nothing to do with it."""
    mechanism = mechanism_of(endpoint)
    if mechanism == "CURVE" and key is None:
        return f"the server at {endpoint} lets in clients with a key only: URLabClient(..., key=FILE), or {VARIABLE}"
    if mechanism == "CURVE" and key is not None and not _is_let_in(endpoint, key):
        return (
            f"the server at {endpoint} does not let the key {key.name!r} in: it is of another server, or was revoked "
            f"(`urlab keys list` on the server's machine)"
        )
    if mechanism == "NULL" and key is not None:
        return f"the server at {endpoint} was started without --keys: leave the key out (and {VARIABLE})"
    return None


def _is_let_in(endpoint: str, key: ClientKey) -> bool:
    """Whether a handshake with that key succeeds."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as probe:
        probe.setsockopt(zmq.LINGER, 0)
        key.secure(probe)
        monitor = probe.get_monitor_socket(_HANDSHAKES)
        try:
            probe.connect(endpoint)
            if monitor.poll(int(1000 * _PROBE_TIMEOUT_S)):
                event = recv_monitor_message(monitor)["event"]
                return bool(event == zmq.EVENT_HANDSHAKE_SUCCEEDED)
            return False
        finally:
            probe.disable_monitor()
            monitor.close(linger=0)


def mechanism_of(endpoint: str) -> str:
    """How a ZeroMQ server lets clients in, as its greeting says: "NULL", "CURVE"; empty when there is no greeting."""
    scheme, _, place = endpoint.partition("://")
    host, _, port = place.rpartition(":")
    received = b""
    with contextlib.suppress(OSError, ValueError):
        family = sockets.AF_UNIX if scheme == "ipc" else sockets.AF_INET6 if "[" in host else sockets.AF_INET
        with sockets.socket(family, sockets.SOCK_STREAM) as probe:
            probe.settimeout(_PROBE_TIMEOUT_S)
            probe.connect(place if scheme == "ipc" else (host.strip("[]"), int(port)))
            probe.sendall(_VERSION)
            while len(received) < _GREETING_BYTES and (part := probe.recv(_GREETING_BYTES - len(received))):
                received += part
    return received[_MECHANISM].rstrip(b"\0").decode("ascii", "replace")
