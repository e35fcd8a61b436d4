"""Processes are put on cores, and back."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from urlab.cli.bench.placement import a_core_each, can_place

pytestmark = pytest.mark.skipif(not can_place(), reason="needs Linux and two cores")


@pytest.fixture
def far() -> Iterator[int]:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield child.pid
    child.communicate()


def cores_of(pid: int) -> list[frozenset[int]]:
    """The cores of every thread of a process."""
    return [frozenset(os.sched_getaffinity(int(one.name))) for one in Path(f"/proc/{pid}/task").iterdir()]


def test_this_process_and_the_far_one_have_a_core_each(far: int) -> None:
    with a_core_each(far):
        near_cores, far_cores = set(cores_of(os.getpid())), set(cores_of(far))
    assert [len(cores) for cores in (*near_cores, *far_cores)] == [1, 1]
    assert near_cores != far_cores


def test_threads_that_run_already_are_placed_too(far: int) -> None:
    done = threading.Event()
    waiting = threading.Thread(target=done.wait)
    waiting.start()
    try:
        with a_core_each(far):
            assert len(cores_of(os.getpid())) > 1
            assert len(set(cores_of(os.getpid()))) == 1
    finally:
        done.set()
        waiting.join()


def test_both_have_all_cores_again_afterwards_even_after_an_error(far: int) -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(RuntimeError), a_core_each(far):
        raise RuntimeError
    assert {*cores_of(os.getpid()), *cores_of(far)} == {frozenset(before)}
