"""Which core runs what. Two processes in lockstep may share a core or have one each, and the system moves them at will.

That decides more than what is measured: a bare echo whose four threads share a core takes half the time of one on two
cores. A comparison of two round trips is one only when both are placed alike.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_IS_LINUX = sys.platform == "linux"


def can_place() -> bool:
    """Whether this system lets processes be placed, and has a core for each of two."""
    return _IS_LINUX and len(os.sched_getaffinity(0)) > 1


@contextlib.contextmanager
def a_core_each(*far_pids: int) -> Iterator[None]:
    """This process on one core, those on another, while the block runs; where that cannot be, as the system likes."""
    if not can_place():
        yield
        return
    cores = os.sched_getaffinity(0)
    near, far = sorted(cores)[:2]
    try:
        _place(os.getpid(), {near})
        for pid in far_pids:
            _place(pid, {far})
        yield
    finally:
        for pid in (os.getpid(), *far_pids):
            _place(pid, cores)


def _place(pid: int, cores: set[int]) -> None:
    """Every thread of a process: those that are there have a placement of their own."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread that has just ended
            os.sched_setaffinity(int(thread.name), cores)
