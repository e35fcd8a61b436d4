"""Clients of several transports at once, and a reader of the state while it is written at full speed."""

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

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
        said, complaints = reader.communicate(timeout=20)
    assert reader.returncode == 0, complaints
    assert int(said) > STEPS / 100
