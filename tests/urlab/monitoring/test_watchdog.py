"""Threads that must turn, and the one that looks whether they do."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from urlab.monitoring import watchdog
from urlab.monitoring.watchdog import Turns, Watchdog

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
        self.turns.busy()
        self.is_idle.clear()
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


@pytest.fixture
def dog(monkeypatch: Any) -> Watchdog:
    monkeypatch.setattr(watchdog, "LATE_S", 0.05)
    return Watchdog()


@pytest.fixture
def worker(dog: Watchdog) -> Any:
    made = Worker(dog)
    yield made
    made.end()


def test_a_thread_that_works_too_long_is_late_until_it_turns(dog: Watchdog, worker: Any, caplog: Any) -> None:
    caplog.set_level(logging.WARNING, "urlab.watchdog")
    worker.begin()
    dog.look()
    assert dog.stalled() == []
    wait_until(dog.stalled)
    dog.look()
    ((thread, seconds, doing),) = dog.stalled()
    assert thread == "worker"
    assert seconds > 0.05
    assert "Worker._run (test_watchdog.py:" in doing
    assert "thread worker has not turned for" in caplog.text
    worker.let_go.set()
    worker.is_idle.wait()
    dog.look()
    assert dog.stalled() == []
    assert "thread worker turns again, after" in caplog.text


def test_a_thread_that_waits_for_work_is_never_late(dog: Watchdog, worker: Any) -> None:
    dog.look()
    time.sleep(0.1)
    dog.look()
    assert dog.stalled() == []


def test_a_thread_that_turns_while_it_works_is_not_late(dog: Watchdog, worker: Any) -> None:
    worker.begin()
    for _ in range(20):
        worker.turns.turn()
        dog.look()
        assert dog.stalled() == []
        time.sleep(0.01)


def test_what_is_logged_of_one_thread_is_bounded(dog: Watchdog, worker: Any, caplog: Any) -> None:
    worker.begin()
    for _ in range(3):
        worker.turns.turn()
        dog.look()
        wait_until(dog.stalled)
        dog.look()
        dog.look()
    assert caplog.text.count("has not turned") == 1


def test_a_thread_that_has_ended_is_not_looked_at(dog: Watchdog, worker: Any) -> None:
    worker.begin()
    dog.look()
    wait_until(dog.stalled)
    worker.turns.close()
    assert dog.stalled() == []
