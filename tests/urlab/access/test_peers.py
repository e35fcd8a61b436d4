"""Which user stands behind a connection: real sockets, and a process of another user."""

import os
import socket as sockets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from urlab import access

STRANGER_UID = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")

CONNECT = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
address = eval(sys.argv[1])
kind = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
peer = socket.socket(kind)
peer.connect(address)
print("connected", flush=True)
sys.stdin.read(1)
if sys.argv[3] == "closes":
    peer.close()
    print("closed", flush=True)
    sys.stdin.read(1)
"""


def listener_at(address: object) -> sockets.socket:
    family = sockets.AF_UNIX if isinstance(address, str) else sockets.AF_INET6 if ":" in address[0] else sockets.AF_INET  # type: ignore[index]
    listener = sockets.socket(family)
    listener.bind(address)  # type: ignore[arg-type]
    if isinstance(address, str):
        Path(address).chmod(0o777)
    listener.listen()
    return listener


class Peer:
    """A process of a user that is connected to a listener; ``accepted`` is our end."""

    def __init__(self, listener: sockets.socket, uid: int, *, closes: bool = False) -> None:
        arguments = [repr(listener.getsockname()), str(uid), "closes" if closes else "stays"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", CONNECT, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.accepted, _ = listener.accept()
        assert self.next_word() == "connected"

    def next_word(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("x")
        self._process.stdin.flush()

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *problem: object) -> None:
        self._process.kill()
        self._process.communicate()
        self.accepted.close()


ADDRESSES = [("127.0.0.1", 0), ("127.9.8.7", 0), ("::1", 0), "unix"]


@pytest.fixture(params=ADDRESSES, ids=str)
def listener(request: pytest.FixtureRequest) -> Iterator[sockets.socket]:
    with tempfile.TemporaryDirectory() as folder:  # any user may enter it, unlike those of pytest
        Path(folder).chmod(0o755)
        try:
            made = listener_at(f"{folder}/socket" if request.param == "unix" else request.param)
        except OSError as missing:
            pytest.skip(f"this machine has no {request.param}: {missing}")
        yield made


def test_a_process_of_this_user_is_no_stranger(listener: sockets.socket) -> None:
    with listener, Peer(listener, os.geteuid()) as peer:
        assert access.peer_uid(peer.accepted) == os.geteuid()
        assert not access.is_stranger(peer.accepted)


@as_root
def test_a_process_of_another_user_is_a_stranger(listener: sockets.socket) -> None:
    with listener, Peer(listener, STRANGER_UID) as peer:
        assert access.peer_uid(peer.accepted) == STRANGER_UID
        assert access.is_stranger(peer.accepted)


@as_root
@pytest.mark.parametrize("address", ADDRESSES[:1])
def test_a_peer_that_has_gone_counts_as_a_stranger_and_not_as_root(address: tuple[str, int]) -> None:
    with listener_at(address) as listener, Peer(listener, STRANGER_UID, closes=True) as peer:
        peer.go_on()
        assert peer.next_word() == "closed"
        assert access.peer_uid(peer.accepted) is None
        assert access.is_stranger(peer.accepted)


def test_only_the_own_user_and_root_are_let_in() -> None:
    assert access.is_own(os.geteuid())
    assert access.is_own(access.ROOT_UID)
    assert not access.is_own(STRANGER_UID)
    assert not access.is_own(None)


def test_a_client_of_the_old_family_on_a_socket_for_both_is_told_as_well() -> None:
    with sockets.create_server(("::", 0), family=sockets.AF_INET6, dualstack_ipv6=True) as both:
        port = both.getsockname()[1]
        with sockets.create_connection(("127.0.0.1", port)), both.accept()[0] as accepted:
            assert accepted.getpeername()[0] == "::ffff:127.0.0.1"
            assert access.peer_uid(accepted) == os.geteuid()
            assert not access.is_stranger(accepted)
