"""Bare round trips: the floor under a request. Frames of the same sizes go to a process that answers at once.

The first four bytes of a request name the size of its reply. Run as a module this is the far end:
``python -m benchmarks.echoes tcp|ipc|shm FOLDER [REGIONS]``.
"""

import contextlib
import mmap
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import zmq

from benchmarks.measuring import BenchmarkError
from benchmarks.processes import Child, child_module, write_json
from urlab.transport.shm.folder import ShmFolder, ShmUnavailable
from urlab_wire.shm import REPLY_FILE, REQUEST_FILE, RPC_BUFFERS, RPC_STRIDE, Region
from urlab_wire.shm_wait import SequenceWaiter, wake

READY_FILE = "echo.json"
_SIZE_BYTES = 4
_TIMEOUT_S = 5.0


@dataclass(slots=True)
class Echo:
    """Sends one frame again and again; ``pid`` is the process at the other end."""

    pid: int
    exchange: Callable[[bytes], bytes]
    frame: bytes = b""

    def use(self, request_bytes: int, reply_bytes: int) -> None:
        """The sizes of the round trips from now on."""
        self.frame = reply_bytes.to_bytes(_SIZE_BYTES, "little").ljust(request_bytes, b"\0")

    def once(self) -> bytes:
        """One round trip; its reply."""
        return self.exchange(self.frame)


@contextlib.contextmanager
def bare_socket(endpoint: str, pid: int) -> Iterator[Echo]:
    """Round trips through a bare REQ socket, which gives up after a while."""
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
    with socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, int(2000 * _TIMEOUT_S))
        socket.connect(endpoint)
        send, receive = socket.send, socket.recv

        def exchange(frame: bytes) -> bytes:
            send(frame)
            return receive()

        yield Echo(pid, exchange)


@contextlib.contextmanager
def echoing(scheme: str) -> Iterator[Echo]:
    """An echo over tcp or ipc, with its far end in another process."""
    with Child(child_module("echoes", scheme, "{folder}"), ready_file=READY_FILE) as child:
        with bare_socket(str(child.said["endpoint"]), child.pid) as echo:
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
        files = (REQUEST_FILE, REPLY_FILE)
        requests, replies = (shared.make_region(name, RPC_STRIDE, RPC_BUFFERS, peers_write=True) for name in files)
        opened.callback(requests.close)
        opened.callback(replies.close)
        command = child_module("echoes", "shm", "{folder}", str(shared.path))
        child = opened.enter_context(Child(command, ready_file=READY_FILE))
        yield Echo(child.pid, _shm_exchange(requests.region, replies.region))


def _shm_exchange(requests: Region, replies: Region) -> Callable[[bytes], bytes]:
    """Two regions with the waiting of `urlab_wire` and nothing else."""
    waiter = SequenceWaiter(replies)

    def exchange(frame: bytes) -> bytes:
        seen = replies.sequence
        requests.write(frame)
        wake(requests)
        found = replies.read(seen) if waiter.wait(seen, _TIMEOUT_S) else None
        if found is None:
            raise BenchmarkError(f"the echo in shared memory did not answer within {_TIMEOUT_S:g} s")
        return found[1]

    return exchange


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
    if sys.argv[1] == "shm":
        _serve_shm(Path(sys.argv[3]), Path(sys.argv[2]))
    else:
        _serve_zmq(sys.argv[1], Path(sys.argv[2]))
