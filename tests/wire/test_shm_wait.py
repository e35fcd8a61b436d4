"""Waiting for news in shared memory: woken, not woken, stopped, in one process and in two."""

import ctypes
import mmap
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from urlab_wire import shm, shm_wait
from urlab_wire.shm import Region
from urlab_wire.shm_wait import AdaptiveSpin, SequenceWaiter, wake

PEER = Path(__file__).with_name("shm_peer.py")
NO_HANG_S = 20.0
has_futex = pytest.mark.skipif(shm_wait._FUTEX_NUMBER is None, reason="no waiter can be woken on this system")


class CountedRegion(Region):
    """A region that counts how often it is looked at: that is what waiting costs."""

    looks = 0

    @property
    def sequence(self) -> int:
        self.looks += 1
        return super().sequence


def new_region(n_buffers: int = 2) -> CountedRegion:
    buffer = bytearray(shm.region_bytes(64, n_buffers))
    shm.format_region(buffer, 64, n_buffers)
    return CountedRegion(buffer)


@pytest.fixture(params=["woken", "polling"])
def region(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CountedRegion:
    """A region, on a system that can wake and on one that cannot."""
    if request.param == "polling":
        monkeypatch.setattr(shm_wait, "_FUTEX_NUMBER", None)
    return new_region()


@contextmanager
def in_a_thread(work: Callable[[], object]) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join(timeout=60)
        assert not thread.is_alive()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


# -- one process --------------------------------------------------------------------------------------------------


def test_news_that_is_there_is_told_at_once(region: Region) -> None:
    region.write(b"news")
    assert SequenceWaiter(region).wait(0, timeout_s=0)


def test_a_lower_sequence_is_news_too(region: Region) -> None:
    region.write(b"the writer started again")
    assert SequenceWaiter(region).wait(1000, timeout_s=0)


@pytest.mark.parametrize("timeout_s", [0, 0.0003, 0.03, 0.1])
def test_a_wait_ends_when_its_time_is_up(region: Region, timeout_s: float) -> None:
    begin = time.perf_counter()
    assert not SequenceWaiter(region).wait(0, timeout_s)
    assert timeout_s <= time.perf_counter() - begin < timeout_s + NO_HANG_S


def test_a_write_ends_a_wait(region: Region) -> None:
    waiter, told = SequenceWaiter(region), []
    with in_a_thread(lambda: told.append(waiter.wait(0, timeout_s=10))):
        region.write(b"news")
        wake(region)
    assert told == [True]


@pytest.mark.parametrize("attempt", range(5))
def test_stop_ends_a_wait_at_once(region: Region, attempt: int) -> None:
    waiter, ended = SequenceWaiter(region), []
    with in_a_thread(lambda: ended.append(waiter.wait(0, timeout_s=60))):
        until(lambda: waiter._resting and waiter._sleeper.pace.rest_s > 0.01)
        waiter.stop()
    assert ended == [False]
    assert waiter.stopped


def test_who_has_been_stopped_waits_no_more(region: Region) -> None:
    waiter = SequenceWaiter(region)
    waiter.stop()
    region.write(b"too late")
    assert not waiter.wait(0)


def test_waiting_in_vain_costs_next_to_nothing(region: CountedRegion) -> None:
    waiter = SequenceWaiter(region)
    waiter._sleeper.pace._last_change -= 10  # as if nothing had happened for so many seconds
    while waiter._sleeper.pace.rest_s < 0.1:
        waiter.wait(0, timeout_s=0.3)
    before = region.looks
    waiter.wait(0, timeout_s=0.7)
    assert region.looks - before < 25  # two for each rest of a tenth of a second


def test_a_slot_that_cannot_be_read_makes_no_waiter_spin(region: CountedRegion) -> None:
    region.write(b"x")
    struct.pack_into("<I", region._whole, 64 + 64, 0)
    waiter = SequenceWaiter(region)
    told = 0
    begin = time.perf_counter()
    while (passed_s := time.perf_counter() - begin) < 1.0 or told <= 10:
        told += waiter.wait(0, timeout_s=0.5)
        assert region.read(0) is None
    assert told < 4000 * passed_s
    assert region.looks < 10 * told
    region.write(b"readable again")
    assert waiter.wait(0, timeout_s=0)
    assert region.read(0) == (2, b"readable again")


@pytest.mark.parametrize("spins", [False, True])
def test_other_threads_run_while_one_looks_or_sleeps(region: Region, spins: bool) -> None:
    """The interpreter itself would only make room after a minute: the waiter has to."""
    waiter = SequenceWaiter(region, spin_s=20)
    if spins:
        waiter._spin.learn(True)

    def other() -> None:
        for _ in range(50):
            time.sleep(0)
        region.write(b"news")
        wake(region)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)
    try:
        with in_a_thread(other):
            assert waiter.wait(0, timeout_s=20)
    finally:
        sys.setswitchinterval(interval)


def test_a_wait_spins_only_while_events_follow_each_other_closely() -> None:
    spin = AdaptiveSpin()
    assert not spin.active
    for _ in range(20):
        spin.learn(True)
        assert spin.active
    for _ in range(4):
        spin.learn(False)
    assert not spin.active


def test_a_waiter_spins_while_that_has_been_worth_it(region: Region) -> None:
    waiter = SequenceWaiter(region)
    for number in range(20):
        region.write(b"soon")
        assert waiter.wait(number, timeout_s=0)
    assert waiter._spin.active
    for _ in range(4):
        assert not waiter.wait(20, timeout_s=0.001)
    assert not waiter._spin.active


@has_futex
def test_sleeps_are_long_once_the_peer_has_proved_to_wake_us() -> None:
    region = new_region()
    waiter = SequenceWaiter(region, spin_s=0)
    wake_in_its_sleep(waiter, region)
    assert waiter._sleeper.pace.rest_s == 0.1


def wake_in_its_sleep(waiter: SequenceWaiter, writer: Region) -> int:
    """Write until the waiter has slept when it was woken, which on a busy machine it may not at once; how often."""
    ends: list[bool] = []
    while waiter._sleeper.pace.rest_s < 0.1:
        with in_a_thread(lambda: ends.append(waiter.wait(len(ends), timeout_s=10))):
            writer.write(b"news")
            wake(writer)
    assert all(ends)
    return len(ends)


@has_futex
def test_sleeps_are_short_for_a_while_after_a_change_that_was_not_announced() -> None:
    region = new_region()
    waiter = SequenceWaiter(region, spin_s=0)
    pace = waiter._sleeper.pace

    def idle_s() -> float:
        return time.perf_counter() - pace._last_change

    while pace.rest_s < 0.02:
        assert not waiter.wait(0, timeout_s=0.2)
    assert pace.rest_s <= idle_s() / 25
    with in_a_thread(lambda: waiter.wait(0, timeout_s=10)):
        region.write(b"silent news")
    assert pace.rest_s == 200e-6
    assert not waiter.wait(1, timeout_s=0.1)
    assert pace.rest_s == 200e-6 or idle_s() > 0.5  # a busy machine may take that long
    while pace.rest_s < 0.02:
        assert not waiter.wait(1, timeout_s=0.7)
    assert pace.rest_s <= idle_s() / 25


@has_futex
def test_no_waiter_need_be_there_to_be_woken() -> None:
    region = new_region()
    wake(region)
    region.release()
    wake(region)


@has_futex
def test_memory_that_cannot_be_slept_on_is_looked_at_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    region = new_region()
    waiter = SequenceWaiter(region)
    monkeypatch.setattr(shm_wait, "_wait_call", lambda *_: ctypes.set_errno(38) or -1)
    waiter.wait(0, timeout_s=0.3)
    assert region.looks < 1000  # two for each rest, of two milliseconds at most at first
    assert isinstance(waiter._sleeper, shm_wait._Polling)


@has_futex
def test_a_reader_that_may_not_write_is_woken_as_well(tmp_path: Path) -> None:
    path = tmp_path / "state.shm"
    path.write_bytes(bytes(shm.region_bytes(64, 4)))
    with path.open("r+b") as file:
        ours = mmap.mmap(file.fileno(), 0)
        theirs = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    shm.format_region(ours, 64, 4)
    writer, reader = Region(ours), Region(theirs)
    waiter = SequenceWaiter(reader, spin_s=0)
    assert not waiter.wait(0, timeout_s=0.1)
    written = wake_in_its_sleep(waiter, writer)
    assert reader.read(0) == (written, b"news")
    for part in (writer, reader, ours, theirs):
        part.release() if isinstance(part, Region) else part.close()


# -- two processes ------------------------------------------------------------------------------------------------


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[tuple[Region, Region]]:
    """Requests and replies, in files."""
    mappings = []
    for name in (shm.REQUEST_FILE, shm.REPLY_FILE):
        path = tmp_path / name
        path.write_bytes(bytes(shm.region_bytes(4096, shm.RPC_BUFFERS)))
        with path.open("r+b") as file:
            mappings.append(mmap.mmap(file.fileno(), 0))
        shm.format_region(mappings[-1], 4096, shm.RPC_BUFFERS)
    requests, replies = map(Region, mappings)
    yield requests, replies
    requests.release()
    replies.release()
    for mapping in mappings:
        mapping.close()


@contextmanager
def peer(role: str, folder: Path, number: int) -> Iterator[None]:
    child = subprocess.Popen([sys.executable, PEER, role, folder, str(number)], stderr=subprocess.PIPE, text=True)
    try:
        yield
        _, complaint = child.communicate(timeout=60)
        assert (child.returncode, complaint) == (0, "")
    finally:
        child.kill()
        child.communicate()


def next_payload(region: Region, waiter: SequenceWaiter, seen: int) -> tuple[int, bytes]:
    while (got := region.read(seen)) is None:
        assert waiter.wait(seen, timeout_s=60), f"nothing came after {seen}"
    return got


def test_two_processes_take_thousands_of_turns(tmp_path: Path, channel: tuple[Region, Region]) -> None:
    requests, replies = channel
    waiter, seen, rounds = SequenceWaiter(replies), 0, 5000
    with peer("echo", tmp_path, rounds):
        for number in range(rounds):
            question = f"question {number}".encode() * (number % 5 + 1)
            requests.write(question)
            wake(requests)
            seen, answer = next_payload(replies, waiter, seen)
            assert (seen, answer) == (number + 1, question[::-1])


def test_a_peer_that_never_wakes_its_peer_is_served(tmp_path: Path, channel: tuple[Region, Region]) -> None:
    requests, replies = channel
    waiter, seen, rounds = SequenceWaiter(requests), 0, 400
    with peer("stranger", tmp_path, rounds):
        for number in range(rounds):
            seen, question = next_payload(requests, waiter, seen)
            assert seen == number + 1
            replies.write(question[::-1])
            wake(replies)
