"""A request that is repeated on another transport gets the first one's reply."""

import mmap
import queue
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from urlab.transport.repeats import RequestRegistry
from urlab.transport.rpc import ZmqRpcServer
from urlab.transport.shm.folder import ShmFolder
from urlab.transport.shm.server import ShmRpcServer

SLOW = b"slow {session_id: a}"
OTHER = b"other {session_id: a}"


class OriginalPeer:
    """Shared memory as the original's client uses it: it remembers the sequence of the last reply that it took."""

    def __init__(self, folder: Path) -> None:
        self._requests, self._replies = (self._map(folder / name) for name in ("req.shm", "rep.shm"))
        self._seen = self._sequence()

    @staticmethod
    def _map(path: Path) -> mmap.mmap:
        with path.open("r+b") as file:
            return mmap.mmap(file.fileno(), 0)

    def _sequence(self) -> int:
        return int(struct.unpack_from("<Q", self._replies, 16)[0])

    @property
    def has_reply(self) -> bool:
        return self._sequence() != self._seen

    def send(self, payload: bytes) -> None:
        stride, slots, sequence, latest = struct.unpack_from("<IIQI", self._requests, 8)
        target = (latest + 1) % slots
        struct.pack_into("<I", self._requests, 64 + target * stride, len(payload))
        start = 64 + target * stride + 4
        self._requests[start : start + len(payload)] = payload
        struct.pack_into("<I", self._requests, 24, target)
        struct.pack_into("<Q", self._requests, 16, sequence + 1)

    def receive(self, wait_until: Callable[[Callable[[], Any]], None]) -> bytes:
        wait_until(lambda: self.has_reply)
        self._seen = self._sequence()
        stride, _, _, latest = struct.unpack_from("<IIQI", self._replies, 8)
        start = 64 + latest * stride
        return self._replies[start + 4 : start + 4 + struct.unpack_from("<I", self._replies, start)[0]]


class Handler:
    """Answers each request with its number; a slow one waits to be released."""

    def __init__(self) -> None:
        self.begun: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.release = threading.Event()
        self.runs = 0

    def handle(self, frame: bytes) -> bytes:
        self.runs += 1
        number = self.runs
        self.begun.put(frame)
        if frame.startswith(b"slow"):
            assert self.release.wait(10)
        return b"run %d of " % number + frame

    def read(self, frame: bytes) -> Any:
        return SimpleNamespace(frame=frame, takes_long=frame.startswith(b"slow"), pool="simulation")

    def serve(self, call: Any) -> bytes:
        return self.handle(call.frame)

    serve_now = serve


@pytest.fixture
def served(tmp_path: Path, connect: Any) -> Iterator[Callable[..., Any]]:
    """One handler on both transports: gives it, their registry, a peer in shared memory and one over ZeroMQ."""
    folder, servers = ShmFolder(tmp_path), []

    def start(**options: Any) -> Any:
        handler, registry = Handler(), RequestRegistry(**options)
        over_shm = ShmRpcServer(folder, handler.handle, registry)
        over_zmq = ZmqRpcServer("tcp://127.0.0.1", 0, handler, registry)
        for server in (over_shm, over_zmq):
            servers.append(server)
            server.start()
        shm = OriginalPeer(folder.path)
        return SimpleNamespace(handler=handler, registry=registry, shm=shm, zmq=connect(over_zmq.endpoint))

    yield start
    for server in servers:
        server.stop()
    folder.close()


def is_attached(registry: RequestRegistry, request: bytes = SLOW) -> Callable[[], bool]:
    """Whether a repeat of that request has arrived."""
    return lambda: bool(registry._running[request].takers)


def test_a_repeat_over_zeromq_gets_the_reply_and_shared_memory_gets_none(served: Any, wait_until: Any) -> None:
    one = served()
    one.shm.send(SLOW)
    one.handler.begun.get(timeout=10)
    one.zmq.send(SLOW)
    wait_until(is_attached(one.registry))
    one.handler.release.set()
    assert one.zmq.recv() == b"run 1 of " + SLOW
    one.shm.send(OTHER)
    assert one.shm.receive(wait_until) == b"run 2 of " + OTHER


def test_a_repeat_in_shared_memory_gets_the_reply_of_zeromq(served: Any, wait_until: Any) -> None:
    one = served()
    one.zmq.send(SLOW)
    one.handler.begun.get(timeout=10)
    one.shm.send(SLOW)
    wait_until(is_attached(one.registry))
    one.handler.release.set()
    assert one.shm.receive(wait_until) == b"run 1 of " + SLOW
    assert one.zmq.recv() == b"run 1 of " + SLOW
    assert one.handler.runs == 1


def test_the_same_bytes_one_after_the_other_are_two_requests(served: Any, wait_until: Any) -> None:
    one = served()
    one.handler.release.set()
    for _ in range(2):
        one.shm.send(SLOW)
        one.shm.receive(wait_until)
        one.zmq.send(SLOW)
        one.zmq.recv()
    assert one.handler.runs == 4


def test_the_same_bytes_twice_on_one_transport_are_two_requests(served: Any, connect: Any) -> None:
    one = served()
    second = connect(one.zmq.LAST_ENDPOINT.decode())
    for socket in (one.zmq, second):
        socket.send(SLOW)
    for _ in range(2):
        one.handler.begun.get(timeout=10)
    one.handler.release.set()
    assert {one.zmq.recv(), second.recv()} == {b"run 1 of " + SLOW, b"run 2 of " + SLOW}


def test_requests_without_a_session_may_be_of_two_clients_and_are_not_shared(served: Any, wait_until: Any) -> None:
    one = served()
    one.shm.send(b"slow hello")
    one.handler.begun.get(timeout=10)
    one.zmq.send(b"slow hello")
    one.handler.begun.get(timeout=10)
    one.handler.release.set()
    assert {one.zmq.recv(), one.shm.receive(wait_until)} == {b"run 1 of slow hello", b"run 2 of slow hello"}


def test_a_repeat_that_comes_just_after_a_late_reply_gets_it_and_the_late_one_is_withdrawn(
    served: Any, wait_until: Any
) -> None:
    one = served(patience_s=0.0)
    one.handler.release.set()
    one.shm.send(SLOW)
    wait_until(lambda: one.shm.has_reply)
    one.zmq.send(SLOW)  # its client had given up just before
    assert one.zmq.recv() == b"run 1 of " + SLOW
    assert not one.shm.has_reply
    one.shm.send(OTHER)
    assert one.shm.receive(wait_until) == b"run 2 of " + OTHER


def test_a_client_that_went_on_in_shared_memory_had_its_late_reply(served: Any, wait_until: Any) -> None:
    one = served(patience_s=0.0)
    one.handler.release.set()
    for request in (SLOW, OTHER):
        one.shm.send(request)
        one.shm.receive(wait_until)
    one.zmq.send(SLOW)
    assert one.zmq.recv() == b"run 3 of " + SLOW


def test_a_reply_to_a_client_that_has_written_its_next_request_is_skipped(served: Any, wait_until: Any) -> None:
    one = served()
    one.shm.send(SLOW)
    one.handler.begun.get(timeout=10)
    one.shm.send(OTHER)
    one.handler.release.set()
    assert one.shm.receive(wait_until) == b"run 2 of " + OTHER


def test_only_so_many_replies_are_kept() -> None:
    registry, shm, zmq = RequestRegistry(), object(), object()
    for number in range(6):
        running = registry.begin(b"%d" % number, shm)
        registry.finish_in_turn(running, b"reply", 0.0, False, settle=lambda _: None, withdraw=lambda: None)
    kept = [registry.begin(b"%d" % number, zmq).reply for number in range(6)]
    assert kept == [None, None, b"reply", b"reply", b"reply", b"reply"]


def test_a_repeat_that_comes_the_moment_a_reply_is_sent_runs_nothing() -> None:
    """A client that is told that its reply is too large may ask again before this thread goes on."""
    registry, found = RequestRegistry(), []
    running = registry.begin(OTHER, "shm")

    def ask_again() -> None:
        found.append(registry.begin(OTHER, "zmq"))

    repeat = threading.Thread(target=ask_again)

    def tell_that_it_is_too_large(_is_repeated: bool) -> None:
        repeat.start()
        repeat.join(0.2)

    registry.finish_in_turn(running, b"reply", 0.0, False, tell_that_it_is_too_large, lambda: None)
    repeat.join()
    assert found == [running]
