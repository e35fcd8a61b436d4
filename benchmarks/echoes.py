"""Bare round trips: the floor under a request. Frames of the same sizes go to a process that answers at once.

The first four bytes of a request name the size of its reply. Run as a module this is the far end:
``python -m benchmarks.echoes tcp|ipc|shm FOLDER [REGIONS]``.
"""

import contextlib
import mmap
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Protocol

import zmq

from benchmarks.measuring import BenchmarkError
from benchmarks.processes import Child, child_module, write_json
from urlab.transport.shm.folder import ShmFolder, ShmUnavailable
from urlab_wire.shm import REPLY_FILE, REQUEST_FILE, RPC_BUFFERS, RPC_STRIDE, Region
from urlab_wire.shm_wait import SequenceWaiter, wake

READY_FILE = "echo.json"
_SIZE_BYTES = 4
_TIMEOUT_S = 5.0


class Echo(Protocol):
    """A round trip to a far end; ``pid`` is that process's."""

    pid: int

    def use(self, request_bytes: int, reply_bytes: int) -> None:
        """The sizes of the round trips from now on."""

    def once(self) -> bytes:
        """One round trip; its reply."""


class ZmqEcho:
    """A bare REQ socket."""

    def __init__(self, endpoint: str, pid: int) -> None:
        self.pid = pid
        self._socket = request_socket(endpoint)
        self._frame = b""

    def use(self, request_bytes: int, reply_bytes: int) -> None:
        """The sizes of the round trips from now on."""
        self._frame = _request(request_bytes, reply_bytes)

    def once(self) -> bytes:
        """One round trip; its reply."""
        self._socket.send(self._frame)
        return self._socket.recv()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class ShmEcho:
    """Two regions of shared memory, with the waiting of `urlab_wire` and nothing else."""

    def __init__(self, requests: Region, replies: Region, pid: int) -> None:
        self.pid = pid
        self._requests, self._replies = requests, replies
        self._waiter = SequenceWaiter(replies)
        self._frame = b""

    def use(self, request_bytes: int, reply_bytes: int) -> None:
        """The sizes of the round trips from now on."""
        self._frame = _request(request_bytes, reply_bytes)

    def once(self) -> bytes:
        """One round trip; its reply."""
        seen = self._replies.sequence
        self._requests.write(self._frame)
        wake(self._requests)
        found = self._replies.read(seen) if self._waiter.wait(seen, _TIMEOUT_S) else None
        if found is None:
            raise BenchmarkError(f"the echo in shared memory did not answer within {_TIMEOUT_S:g} s")
        return found[1]


def request_socket(endpoint: str) -> "zmq.Socket[bytes]":
    """A bare REQ socket that gives up after a while."""
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVTIMEO, int(2000 * _TIMEOUT_S))
    socket.connect(endpoint)
    return socket


@contextlib.contextmanager
def echoing(scheme: str) -> Iterator[Echo]:
    """An echo over tcp or ipc, with its far end in another process."""
    with Child(child_module("echoes", scheme, "{folder}")) as child:
        endpoints, _ = child.wait_for_file(READY_FILE)
        echo = ZmqEcho(str(endpoints["endpoint"]), child.pid)
        with contextlib.closing(echo):
            yield echo


@contextlib.contextmanager
def echoing_in_shm() -> Iterator[Echo]:
    """An echo in shared memory; the regions are gone afterwards."""
    with contextlib.ExitStack() as opened:
        try:
            shared = ShmFolder()
        except ShmUnavailable as refused:
            raise BenchmarkError(f"without shared memory there is nothing to compare: {refused}") from refused
        opened.callback(shared.close)
        requests, replies = (shared.make_region(name, RPC_STRIDE, RPC_BUFFERS) for name in (REQUEST_FILE, REPLY_FILE))
        opened.callback(requests.close)
        opened.callback(replies.close)
        child = opened.enter_context(Child(child_module("echoes", "shm", "{folder}", str(shared.path))))
        child.wait_for_file(READY_FILE)
        yield ShmEcho(requests.region, replies.region, child.pid)


def _request(request_bytes: int, reply_bytes: int) -> bytes:
    return reply_bytes.to_bytes(_SIZE_BYTES, "little").ljust(request_bytes, b"\0")


@cache
def _reply(size: bytes) -> bytes:
    return bytes(int.from_bytes(size, "little"))


# -- the far end --------------------------------------------------------------------------------------------------


def _serve_zmq(scheme: str, folder: Path) -> None:
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REP)
    socket.bind(f"ipc://{folder}/echo" if scheme == "ipc" else "tcp://127.0.0.1:*")
    write_json(folder / READY_FILE, {"endpoint": socket.getsockopt_string(zmq.LAST_ENDPOINT)})
    while True:
        socket.send(_reply(socket.recv()[:_SIZE_BYTES]))


def _serve_shm(regions: Path, folder: Path) -> None:
    requests, replies = _map(regions / REQUEST_FILE), _map(regions / REPLY_FILE)
    waiter, seen = SequenceWaiter(requests), requests.sequence
    write_json(folder / READY_FILE, {})
    while True:
        if waiter.wait(seen) and (found := requests.read(seen)):
            seen, request = found
            replies.write(_reply(request[:_SIZE_BYTES]))
            wake(replies)


def _map(path: Path) -> Region:
    with path.open("r+b") as file:
        return Region(mmap.mmap(file.fileno(), 0))


if __name__ == "__main__":
    serve: Callable[[], None] = (
        (lambda: _serve_shm(Path(sys.argv[3]), Path(sys.argv[2])))
        if sys.argv[1] == "shm"
        else (lambda: _serve_zmq(sys.argv[1], Path(sys.argv[2])))
    )
    serve()
