"""Clients of several transports at once, and a reader of the state while it is written at full speed."""

import contextlib
import fcntl
import itertools
import mmap
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq

from urlab_client.transports.shm_link import ShmLink

STEPS = 2000

READER = """
import mmap, struct, sys, msgpack
with open(sys.argv[1], "rb") as file:
    memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
stride, slots = struct.unpack_from("<II", memory, 8)
seen, times = struct.unpack_from("<Q", memory, 16)[0], [0.0]
print("reading", flush=True)
while times[-1] < float(sys.argv[2]):
    sequence, latest = struct.unpack_from("<QI", memory, 16)
    if sequence == seen:
        continue
    start = 64 + latest * stride
    payload = memory[start + 4 : start + 4 + struct.unpack_from("<I", memory, start)[0]]
    if struct.unpack_from("<Q", memory, 16)[0] - sequence > slots - 2:
        continue
    seen = sequence
    state = msgpack.unpackb(payload)
    assert state["op"] == "state_full"
    times.append(state["time"])
assert times == sorted(times)
print(len(times), flush=True)
"""
"""Reads what is written to the region from now on, as the layout says and with nothing of ours, to the last step."""


@pytest.fixture
def beside() -> Iterator[Callable[[Callable[[], Any]], None]]:
    """Runs something again and again, on another thread, until the test is over; what it raises fails the test."""
    over, failures, threads = threading.Event(), [], []

    def run(action: Callable[[], Any]) -> None:
        def repeat() -> None:
            try:
                while not over.is_set():
                    action()
            except BaseException as failed:  # noqa: BLE001 - it belongs to the test
                failures.append(failed)

        threads.append(threading.Thread(target=repeat))
        threads[-1].start()

    yield run
    over.set()
    for thread in threads:
        thread.join(20)
    assert failures == []


@pytest.mark.parametrize(("driving", "looking"), [*itertools.permutations(["inprocess", "shm", "zmq"], 2)])
def test_one_drives_while_another_looks(connect_over: Any, beside: Any, driving: str, looking: str) -> None:
    driver, observer = connect_over(driving), connect_over(looking)
    driver.hello()
    driver.play("arena")
    driver.ok("reset")
    observer.hello(observer=True)
    beside(lambda: observer.ok("pie_status"))
    beside(lambda: connect_over("inprocess").refused("step"))
    assert [driver.ok("step")["step"] for _ in range(300)] == list(range(1, 301))


@pytest.mark.parametrize(("first", "second"), [("shm", "zmq"), ("zmq", "shm")])
def test_the_last_who_says_hello_drives(connect_over: Any, first: str, second: str) -> None:
    former, latter = connect_over(first), connect_over(second)
    former.hello()
    former.play("arena")
    former.ok("step")
    latter.hello()
    assert former.refused("step") == "session_expired"
    latter.ok("step")


@pytest.mark.every_transport
@pytest.mark.parametrize("size", [(1 << 20) - 200, (1 << 20) + 200, 5 << 20])
def test_a_request_of_any_size_is_answered(wire: Any, size: int) -> None:
    assert wire.ok("pie_status", padding=b"x" * size)["state"] == "ready"
    wire.ok("step")


def test_a_reader_gets_whole_states_while_they_are_written_at_full_speed(server: Any, connect_over: Any) -> None:
    wire = connect_over("shm")
    wire.hello()
    wire.play("arena")
    timestep = server.play.manager.engine.model.opt.timestep
    last_s = timestep * (STEPS - 0.5)
    command = [sys.executable, "-c", READER, str(server.shm_folder / "state.shm"), str(last_s)]
    wire.ok("reset")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        if reader.stdout.readline() != "reading\n":
            pytest.fail(reader.communicate(timeout=20)[1])
        while server.play.manager.engine.data.time < last_s + 5 * timestep:
            wire.ok("step", observations="minimal")
        said, complaints = reader.communicate(timeout=60)
    assert reader.returncode == 0, complaints
    assert int(said) > STEPS / 100


class ImpatientClient:
    """A client as the original's: it gives up in shared memory, and sends the same bytes again over ZeroMQ.

    It takes whatever reply comes after the last one that it took.
    """

    def __init__(self, server: Any) -> None:
        self._server = server
        self._requests, self._replies = (self._map(server.shm_folder / name) for name in ("req.shm", "rep.shm"))
        self._seen = self._sequence(self._replies)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.RCVTIMEO, 20_000)
        self._socket.connect(server.endpoints()["step"])

    @staticmethod
    def _map(path: Path) -> mmap.mmap:
        with path.open("r+b") as file:
            return mmap.mmap(file.fileno(), 0)

    @staticmethod
    def _sequence(memory: mmap.mmap) -> int:
        return int(struct.unpack_from("<Q", memory, 16)[0])

    def close(self) -> None:
        self._context.destroy(linger=0)

    def send(self, over: str, frame: bytes) -> None:
        if over == "zmq":
            self._socket.send(frame)
            return
        stride, slots, sequence, latest = struct.unpack_from("<IIQI", self._requests, 8)
        target = (latest + 1) % slots
        start = 64 + target * stride + 4
        struct.pack_into("<I", self._requests, start - 4, len(frame))
        self._requests[start : start + len(frame)] = frame
        struct.pack_into("<I", self._requests, 24, target)
        struct.pack_into("<Q", self._requests, 16, sequence + 1)

    def receive(self, over: str) -> Any:
        if over == "zmq":
            return msgpack.unpackb(self._socket.recv())
        wait_for(lambda: self._sequence(self._replies) != self._seen)
        self._seen = self._sequence(self._replies)
        stride, _, _, latest = struct.unpack_from("<IIQI", self._replies, 8)
        start = 64 + latest * stride
        return msgpack.unpackb(self._replies[start + 4 : start + 4 + struct.unpack_from("<I", self._replies, start)[0]])

    def ask(self, over: str, **message: Any) -> Any:
        self.send(over, msgpack.packb(message))
        return self.receive(over)

    def repeat(self, first: str, second: str, frame: bytes, let_go: Callable[[], None]) -> Any:
        """Send on one transport, and again on the other one while the first runs; the second one's reply."""
        running = self._server._registry._running
        self.send(first, frame)
        wait_for(lambda: frame in running)
        self.send(second, frame)
        wait_for(lambda: running[frame].takers)
        let_go()
        return self.receive(second)


def wait_for(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.0005)


@pytest.fixture
def impatient(server: Any) -> Iterator[ImpatientClient]:
    client = ImpatientClient(server)
    yield client
    client.close()


@pytest.mark.parametrize(("first", "second"), [("shm", "zmq"), ("zmq", "shm")])
def test_a_step_that_is_repeated_on_another_transport_runs_once(
    server: Any, wire: Any, impatient: ImpatientClient, first: str, second: str
) -> None:
    session, engine = wire.session_id, server.play.manager.engine
    n_steps = 2 + int(0.02 / server.play.seconds_per_step())  # a window that other requests do not wait for
    before_s, before = engine.data.time, wire.ok("step")["step"]
    frame = msgpack.packb({"op": "step", "session_id": session, "n_steps": n_steps})
    held = contextlib.ExitStack()
    held.enter_context(engine.locked())
    reply = impatient.repeat(first, second, frame, let_go=held.close)
    assert (reply["op"], reply["step"]) == ("step_ok", before + n_steps)
    assert engine.data.time == pytest.approx(before_s + (1 + n_steps) * engine.model.opt.timestep)
    assert impatient.ask("shm", op="pie_status", session_id=session)["op"] == "pie_status_ok"
    again = [impatient.ask("shm", op="step", session_id=session, n_steps=n_steps)["step"] for _ in range(2)]
    assert again == [before + 2 * n_steps, before + 3 * n_steps]


def test_an_import_that_is_repeated_over_zeromq_runs_once(
    server: Any, wire: Any, impatient: ImpatientClient, tmp_path: Path
) -> None:
    model = tmp_path / f"once{os.getpid()}.xml"
    model.write_text("<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>")
    frame = msgpack.packb({"op": "import_xml", "session_id": wire.session_id, "path": str(model)})
    imports = server.project.imports_dir
    imports.mkdir(parents=True, exist_ok=True)
    handle = os.open(imports / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    reply = impatient.repeat("shm", "zmq", frame, let_go=lambda: os.close(handle))
    assert (reply["op"], reply["imported_now"]) == ("import_xml_ok", True)
    assert impatient.ask("shm", op="pie_status", session_id=wire.session_id)["op"] == "pie_status_ok"


def test_shared_memory_is_free_for_the_next_client_after_a_reply_was_skipped(
    server: Any, wire: Any, impatient: ImpatientClient
) -> None:
    engine = server.play.manager.engine
    frame = msgpack.packb({"op": "step", "session_id": wire.session_id, "n_steps": 3})
    held = contextlib.ExitStack()
    held.enter_context(engine.locked())
    impatient.repeat("shm", "zmq", frame, let_go=held.close)
    link = ShmLink(server.shm_folder, "here")
    assert link.is_free
    status = msgpack.packb({"op": "pie_status", "session_id": wire.session_id})
    assert msgpack.unpackb(link.ask(status, timeout_s=20))["op"] == "pie_status_ok"
    link.close()


@pytest.mark.parametrize(("first", "second"), [("shm", "zmq"), ("zmq", "shm"), ("shm", "shm"), ("zmq", "zmq")])
def test_a_request_with_an_id_runs_once_on_whatever_transport_it_comes_again(
    server: Any, wire: Any, impatient: ImpatientClient, first: str, second: str
) -> None:
    before = wire.ok("step")["step"]
    request = {"op": "step", "session_id": wire.session_id, "n_steps": 5, "request_id": f"{first}-{second}"}
    replies = [impatient.ask(over, **request) for over in (first, second, first)]
    assert [reply["step"] for reply in replies] == [before + 5] * 3
    assert wire.ok("step")["step"] == before + 6
