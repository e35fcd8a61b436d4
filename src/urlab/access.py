"""Which local user stands behind a connection, and whether that user may use this server.

On loopback every user of the machine can connect. So a peer's user has to be the server's own, or root; a peer whose
user cannot be told counts as a stranger. UNIX sockets tell the user of their peer; for TCP the kernel's table of
sockets does, on Linux.
"""

import ipaddress
import os
import socket as sockets
import struct
import sys
from functools import lru_cache
from pathlib import Path

ROOT_UID = 0
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

    The kernel lists the peer's end with its own address first. A socket that is closing has no inode any more and is
    listed as root's, so it does not count.
    """
    if sys.platform != "linux" or family not in _TABLES:
        return None
    local, peer = _unmapped(local), _unmapped(peer)
    wanted = (_hex_address(*peer), _hex_address(*local))
    with Path(_TABLES[sockets.AF_INET6 if ":" in peer[0] else sockets.AF_INET]).open(encoding="ascii") as table:
        for line in table:
            columns = line.split()
            if (columns[_ADDRESS_COLUMN], columns[_PEER_COLUMN]) == wanted:
                alive = columns[_STATE_COLUMN] == _ESTABLISHED and columns[_INODE_COLUMN] != "0"
                return int(columns[_UID_COLUMN]) if alive else None
    return None


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
