"""Which local user stands behind a connection, and whether that user may use this server.

On loopback every user of the machine can connect. So a peer's user has to be the server's own, or root; a peer whose
user cannot be told counts as a stranger. UNIX sockets tell the user of their peer; for TCP the kernel does when it is
asked for the peer's end of the connection, on Linux.
"""

import contextlib
import ctypes
import ipaddress
import logging
import os
import select
import socket as sockets
import struct
import sys
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from urlab.monitoring.metrics import REFUSED

log = logging.getLogger("urlab.access")

ROOT_UID = 0
_SAID_EVERY_S = 10.0
_ESTABLISHED = "01"
_TABLES = {sockets.AF_INET: "/proc/net/tcp", sockets.AF_INET6: "/proc/net/tcp6"}
_ADDRESS_COLUMN, _PEER_COLUMN, _STATE_COLUMN, _UID_COLUMN, _INODE_COLUMN = 1, 2, 3, 7, 9


def is_stranger(socket: sockets.socket) -> bool:
    """Whether a connection comes from this machine, but not from a process of this user or root.

    A peer on another machine is no stranger in this sense: an address that other machines reach is guarded otherwise.
    """
    if not is_from_this_machine(socket):
        return False
    return not is_own(peer_uid(socket))


def is_own(uid: int | None) -> bool:
    """Whether a user may use a server of this process's user; None is a user that could not be told."""
    return uid is not None and uid in (ROOT_UID, os.geteuid())


def is_from_this_machine(socket: sockets.socket) -> bool:
    """Whether the peer of a connected socket is on this machine; a socket that has lost its peer counts as local."""
    if socket.family == sockets.AF_UNIX:
        return True
    try:
        return _is_loopback(socket.getpeername()[0])
    except OSError:
        return True


def peer_uid(socket: sockets.socket) -> int | None:
    """The user of the process at the other end of a connection within this machine; None when it cannot be told."""
    try:
        if socket.family == sockets.AF_UNIX:
            return _unix_peer(socket)
        return tcp_peer_uid(socket.family, socket.getsockname()[:2], socket.getpeername()[:2])
    except OSError:
        return None


def tcp_peer_uid(family: int, local: tuple[str, int], peer: tuple[str, int]) -> int | None:
    """The user of the process that connected from ``peer`` to ``local``, (address, port) each.

    A socket that is closing has no inode any more and is listed as root's, so it does not count.
    """
    if sys.platform != "linux" or family not in _TABLES:
        return None
    local, peer = _unmapped(local), _unmapped(peer)
    return _asked_uid(local, peer) if _kernel_answers() else _listed_uid(local, peer)


_DIAG_REQUEST = struct.Struct("=IHHII BBBBI 2s2s16s16sIQ")
"""A netlink header, then ``inet_diag_req_v2`` with the socket that is asked for: the peer's end."""
_DIAG_REPLY = struct.Struct("=IHHII BBBB 2s2s16s16sIQ IIIII")
_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ANY_STATE, _NO_COOKIE = 4, 20, 1, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
_LOOPBACK_INTERFACE = 1


@lru_cache(maxsize=1)
def _kernel_answers() -> bool:
    """Whether the kernel can be asked for one socket: it knows this process's user behind a connection to itself.

    Its list of all sockets would do as well, but takes milliseconds to read.
    """
    with sockets.create_server(("127.0.0.1", 0)) as listener:
        with sockets.create_connection(listener.getsockname()) as own:
            return _asked_uid(listener.getsockname(), own.getsockname()) == os.geteuid()


def _asked_uid(local: tuple[str, int], peer: tuple[str, int]) -> int | None:
    """Asks the kernel for that one socket, however many there are; None when it does not know, or may not be asked."""
    source, destination = (ipaddress.ip_address(address).packed for address, _ in (peer, local))
    ports = [port.to_bytes(2, "big") for _, port in (peer, local)]
    family = sockets.AF_INET6 if len(source) == 16 else sockets.AF_INET
    question = _DIAG_REQUEST.pack(
        _DIAG_REQUEST.size, _BY_FAMILY, _REQUEST, 0, 0,
        family, sockets.IPPROTO_TCP, 0, 0, _ANY_STATE,
        *ports, source, destination, _LOOPBACK_INTERFACE, _NO_COOKIE,
    )  # fmt: skip
    try:
        with sockets.socket(sockets.AF_NETLINK, sockets.SOCK_DGRAM, _SOCK_DIAG) as kernel:
            kernel.settimeout(1.0)
            kernel.send(question)
            answer = kernel.recv(4096)
    except OSError:
        return None
    if len(answer) < _DIAG_REPLY.size:
        return None
    _, kind, _, _, _, _, state, _, _, *found, _, _, _, _, _, uid, inode = _DIAG_REPLY.unpack_from(answer)
    alive = kind == _BY_FAMILY and state == int(_ESTABLISHED, 16) and inode != 0
    return int(uid) if alive and found[:2] == ports else None


def _listed_uid(local: tuple[str, int], peer: tuple[str, int]) -> int | None:
    """The same from the list of all sockets, which has the peer's end with its own address first."""
    wanted = (_hex_address(*peer), _hex_address(*local))
    with Path(_TABLES[sockets.AF_INET6 if ":" in peer[0] else sockets.AF_INET]).open(encoding="ascii") as table:
        for line in table:
            columns = line.split()
            if (columns[_ADDRESS_COLUMN], columns[_PEER_COLUMN]) == wanted:
                alive = columns[_STATE_COLUMN] == _ESTABLISHED and columns[_INODE_COLUMN] != "0"
                return int(columns[_UID_COLUMN]) if alive else None
    return None


def disconnect(socket: sockets.socket) -> None:
    """End a connection whose descriptor belongs to another part of this process, and drop what it has sent so far.

    Unlike a shutdown this leaves nothing to read, on TCP.
    """
    if socket.family in _TABLES and sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).connect(socket.fileno(), bytes(16), 16)  # AF_UNSPEC: to no address
    with contextlib.suppress(OSError):
        socket.shutdown(sockets.SHUT_RDWR)


class RefusalLog:
    """Says in the log that a user was refused at an endpoint: at once, and then how often, every ten seconds at most.

    Any thread may use it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due_s: dict[str, float] = {}
        self._unsaid: dict[str, int] = {}
        self.listeners: list[Callable[[str, str], None]] = []
        """Called with the key and the text of what is logged."""

    def refused(self, endpoint: str, socket: sockets.socket) -> None:
        """Another user of this machine is refused at that endpoint; the socket is still connected.

        A peer that has left already, as one that only looks whether there is a server, is not worth a word: its user
        cannot be told.
        """
        uid = peer_uid(socket)
        if uid is None and _has_left(socket):
            return
        user = "a user that is unknown" if uid is None else f"user {uid}"
        self.say(endpoint, f"{endpoint}: {user} is refused; --share lets other users of this machine in", "stranger")

    def say(self, key: str, message: str, reason: str = "limit") -> None:
        """Count a refusal for ``reason``, and log a message about ``key``, unless one was logged just now."""
        REFUSED.add(reason)
        now = time.monotonic()
        with self._lock:
            if now < self._due_s.get(key, 0.0):
                self._unsaid[key] = self._unsaid.get(key, 0) + 1
                return
            self._due_s[key] = now + _SAID_EVERY_S
            unsaid = self._unsaid.pop(key, 0)
        text = f"{message} ({unsaid} more since this was last said)" if unsaid else message
        log.warning("%s", text)
        for listener in list(self.listeners):
            listener(key, text)


refusals = RefusalLog()
"""That of this process."""


def _has_left(socket: sockets.socket) -> bool:
    poller = select.poll()
    poller.register(socket.fileno(), select.POLLRDHUP)
    return bool(poller.poll(0))


def _unix_peer(socket: sockets.socket) -> int | None:
    if not hasattr(sockets, "SO_PEERCRED"):
        return None
    _, uid, _ = struct.unpack("3i", socket.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, struct.calcsize("3i")))
    return int(uid)


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(_unmapped((address, 0))[0]).is_loopback


def _unmapped(address: tuple[str, int]) -> tuple[str, int]:
    """An address without its zone; an IPv4 address that a socket for both families maps to IPv6, as IPv4."""
    parsed = ipaddress.ip_address(address[0].partition("%")[0])
    return str(getattr(parsed, "ipv4_mapped", None) or parsed), address[1]


@lru_cache(maxsize=256)
def _hex_address(address: str, port: int) -> str:
    """As in the kernel's table: words of four bytes in the machine's order, then the port."""
    packed = ipaddress.ip_address(address).packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
