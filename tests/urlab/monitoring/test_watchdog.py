"""Threads that must turn, and the one that looks whether they do."""

import logging
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from urlab.monitoring import watchdog
from urlab.monitoring.watchdog import LATE_S, Turns, Watchdog

PATIENCE_S = 10.0


class Worker:
    """A thread that works when it is told to, and until it is let go."""

    def __init__(self, dog: Watchdog) -> None:
        self.turns = Turns("worker", dog)
        self.work, self.let_go, self.is_idle = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self.is_idle.wait()

    def _run(self) -> None:
        self.turns.open()
        self.is_idle.set()
        self.work.wait()
        self.is_idle.clear()
        self.turns.busy()
        self.let_go.wait()
        self.turns.idle()
        self.is_idle.set()

    def begin(self) -> None:
        self.work.set()
        wait_until(lambda: self.turns.count == 1)

    def end(self) -> None:
        self.work.set()
        self.let_go.set()
        self._thread.join()


def wait_until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.001)


class Clock:
    """What the watchdog takes for the time: it stands still until a test sets it forward."""

    def __init__(self) -> None:
        self.now_s = time.monotonic()

    def be_late(self) -> None:
        self.now_s += LATE_S + 0.5


@pytest.fixture
def clock(monkeypatch: Any) -> Clock:
    clock = Clock()
    monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=lambda: clock.now_s, sleep=time.sleep))
    return clock


@pytest.fixture
def dog(clock: Clock) -> Watchdog:
    return Watchdog()


@pytest.fixture
def worker(dog: Watchdog) -> Any:
    made = Worker(dog)
    yield made
    made.end()


def test_a_thread_that_works_too_long_is_late_until_it_turns(
    dog: Watchdog, worker: Any, clock: Clock, caplog: Any
) -> None:
    caplog.set_level(logging.WARNING, "urlab.watchdog")
    worker.begin()
    dog.look()
    assert dog.stalled() == []
    clock.be_late()
    dog.look()
    ((thread, seconds, doing),) = dog.stalled()
    assert thread == "worker"
    assert seconds == pytest.approx(LATE_S + 0.5)
    assert "Worker._run (test_watchdog.py:" in doing
    assert "thread worker has not turned for" in caplog.text
    worker.let_go.set()
    worker.is_idle.wait()
    dog.look()
    assert dog.stalled() == []
    assert "thread worker turns again, after" in caplog.text


def test_a_thread_that_waits_for_work_is_never_late(dog: Watchdog, worker: Any, clock: Clock) -> None:
    dog.look()
    clock.be_late()
    dog.look()
    assert dog.stalled() == []


def test_a_thread_that_turns_while_it_works_is_not_late(dog: Watchdog, worker: Any, clock: Clock) -> None:
    worker.begin()
    for _ in range(20):
        worker.turns.turn()
        dog.look()
        assert dog.stalled() == []
        clock.now_s += 0.9 * LATE_S
        assert dog.stalled() == []


def test_what_is_logged_of_one_thread_is_bounded(dog: Watchdog, worker: Any, clock: Clock, caplog: Any) -> None:
    worker.begin()
    for _ in range(3):
        worker.turns.turn()
        dog.look()
        clock.be_late()
        assert dog.stalled() != []
        dog.look()
        dog.look()
    assert caplog.text.count("thread worker has not turned") == 1


def test_a_thread_that_has_ended_is_not_looked_at(dog: Watchdog, worker: Any, clock: Clock) -> None:
    worker.begin()
    dog.look()
    clock.be_late()
    assert dog.stalled() != []
    worker.turns.close()
    assert dog.stalled() == []
