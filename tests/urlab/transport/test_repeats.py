"""A request that is repeated on another transport gets the first one's reply."""

import contextlib
import mmap
import queue
import socket as tcp
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from urlab.transport import repeats
from urlab.transport.repeats import AnsweredRequests, RequestRegistry
from urlab.transport.rpc import ZmqRpcServer
from urlab.transport.shm.folder import ShmFolder
from urlab.transport.shm.server import ShmRpcServer
from urlab_client import ZmqTransport

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
        return SimpleNamespace(
            frame=frame, takes_long=frame.startswith(b"slow"), pool="simulation", key=None, holder=None
        )

    parse = read

    def serve(self, call: Any) -> bytes:
        return self.handle(call.frame)

    serve_now = serve

    def let_go(self, session_id: str) -> None: ...


@pytest.fixture
def served(tmp_path: Path, connect: Any) -> Iterator[Callable[..., Any]]:
    """One handler on both transports: gives it, their registry, a peer in shared memory and one over ZeroMQ."""
    folder, servers = ShmFolder(tmp_path), []

    def start(**options: Any) -> Any:
        handler, registry = Handler(), RequestRegistry(**options)
        over_shm = ShmRpcServer(folder, handler, registry)
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


# -- requests with an id ----------------------------------------------------------------------------------------------


def identify(frame: bytes) -> Any:
    """The id of ``#7 of ann ...`` is 7, of the session ann."""
    words = frame.split()
    return (words[2].decode(), int(words[0][1:])) if frame.startswith(b"#") else None


def test_a_repeat_of_what_runs_gets_the_reply_of_the_first_on_any_connection(
    served: Any, connect: Any, wait_until: Any
) -> None:
    one = served(identify=identify)
    one.handler.read = lambda frame: SimpleNamespace(
        frame=frame, takes_long=True, pool="simulation", key=None, holder=None
    )
    one.handler.handle = held = Held()
    second = connect(one.zmq.LAST_ENDPOINT.decode())
    one.zmq.send(b"#1 of ann")
    wait_until(lambda: held.runs)
    second.send(b"#1 of ann")
    one.shm.send(b"#1 of ann")
    wait_until(lambda: len(one.registry._running["ann", 1].takers or ()) == 2)
    held.release.set()
    assert [one.zmq.recv(), second.recv(), one.shm.receive(wait_until)] == [b"run 1"] * 3


class Held:
    """Answers with the number of the run, when it is released."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.runs = 0

    def __call__(self, _: bytes) -> bytes:
        self.runs += 1
        assert self.release.wait(10)
        return b"run %d" % self.runs


def test_a_repeat_after_the_reply_gets_it_again_and_other_requests_are_their_own(served: Any, connect: Any) -> None:
    one = served(identify=identify)
    replies = []
    for request in (b"#1 of ann", b"#1 of ann", b"#2 of ann", b"#1 of bob", b"#1 of ann"):
        socket = connect(one.zmq.LAST_ENDPOINT.decode())
        socket.send(request)
        replies.append(socket.recv().partition(b" of ")[0])
    assert replies == [b"run 1", b"run 1", b"run 2", b"run 3", b"run 1"]


def test_an_id_that_is_used_for_another_request_is_refused(served: Any) -> None:
    one = served(identify=identify)
    for request in (b"#1 of ann", b"#1 of ann but different"):
        one.zmq.send(request)
        reply = one.zmq.recv()
    assert b"bad_request" in reply
    assert b"another one" in reply
    assert one.handler.runs == 1


def answered(registry: RequestRegistry, number: int, session: str = "ann", reply: bytes = b"reply") -> None:
    registry.finish(registry.begin(b"#%d of %s" % (number, session.encode()), "zmq"), reply)


def reply_to(registry: RequestRegistry, number: int, session: str = "ann") -> bytes | None:
    """What a repeat gets; None when it would be served."""
    again = registry.begin(b"#%d of %s" % (number, session.encode()), "zmq")
    if again.owner == "zmq":
        assert registry.abandon(again)
        return None
    taken: list[bytes] = []
    registry.attach(again, taken.append)
    return taken[0]


def test_of_a_session_so_many_requests_are_known_and_of_all_replies_so_many_bytes() -> None:
    kept = AnsweredRequests(requests=4, session_bytes=1000, all_bytes=2500)
    registry = RequestRegistry(identify=identify, answered=kept)
    for number in range(9):
        answered(registry, number)
    assert [reply_to(registry, number) for number in range(9)] == [*[None] * 5, *[b"reply"] * 4]
    answered(registry, 9, reply=b"x" * 996)
    assert b"not kept" in (reply_to(registry, 8) or b"")
    answered(registry, 10, reply=b"y" * 2400)
    assert reply_to(registry, 10) == b"y" * 2400, "the last one is kept, whatever its size"
    answered(registry, 1, "bob", reply=b"z" * 900)
    assert kept.bytes <= 2500
    assert reply_to(registry, 1, "bob") == b"z" * 900


def test_sessions_are_forgotten_after_a_while() -> None:
    kept = AnsweredRequests(lifetime_s=-1.0)
    registry = RequestRegistry(identify=identify, answered=kept)
    answered(registry, 1)
    answered(registry, 1, "bob")
    assert reply_to(registry, 1) is None
    assert kept.bytes == len(b"reply")


def test_a_session_that_asks_now_and_then_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: now_s)
    monkeypatch.setattr(repeats, "time", clock)
    registry = RequestRegistry(identify=identify, answered=AnsweredRequests(lifetime_s=120.0))
    for number in range(10):
        now_s = 50.0 * number
        answered(registry, number)
    answered(registry, 1, "bob")
    assert reply_to(registry, 9) == b"reply"


def test_a_request_that_was_abandoned_is_served_when_it_comes_again() -> None:
    registry = RequestRegistry(identify=identify)
    assert registry.abandon(registry.begin(b"#1 of ann", "zmq"))
    assert registry.begin(b"#1 of ann", "zmq").owner == "zmq"


def test_a_request_whose_repeat_waits_is_not_abandoned() -> None:
    registry = RequestRegistry(identify=identify)
    first = registry.begin(b"#1 of ann", "zmq")
    registry.attach(registry.begin(b"#1 of ann", "zmq"), lambda _: None)
    assert not registry.abandon(first)


class Cable:
    """A TCP connection through this process that can be cut; the next one is a new one."""

    def __init__(self, endpoint: str) -> None:
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        self._target = (host, int(port))
        self._listener = tcp.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._ends: list[tcp.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, far = self._listener.accept()[0], tcp.create_connection(self._target)
                self._ends += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(source, target), daemon=True).start()

    @staticmethod
    def _copy(source: tcp.socket, target: tcp.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(tcp.SHUT_RDWR)

    def cut(self) -> None:
        ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(tcp.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._listener.close()
        self.cut()


def test_a_client_whose_connection_breaks_gets_its_reply_over_another_one(served: Any, wait_until: Any) -> None:
    one = served(identify=lambda frame: ("ann", frame))
    cable = Cable(one.zmq.LAST_ENDPOINT.decode())
    transport = ZmqTransport(cable.endpoint)
    replies: list[bytes] = []
    frame = b"slow request_id"
    asking = threading.Thread(target=lambda: replies.append(transport.request(frame, timeout_ms=20_000)))
    asking.start()
    assert one.handler.begun.get(timeout=10) == frame
    cable.cut()
    wait_until(lambda: one.registry._running["ann", frame].takers)
    one.handler.release.set()
    asking.join(10)
    assert replies == [b"run 1 of " + frame]
    transport.close()
    cable.close()
