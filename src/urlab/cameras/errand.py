"""A piece of work that one thread does for another."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Errand(Generic[T]):
    """What a Future is, with less to it: every picture is an errand, and a Future takes twice as long to hand over."""

    __slots__ = ("_failure", "_given_up", "_result", "_under_way", "_work")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._result: T | None = None
        self._failure: BaseException | None = None
        self._given_up = False
        self._under_way = threading.Lock()
        self._under_way.acquire()

    def run(self) -> None:
        """Do it, unless it was given up. To be called once, and nothing is raised: that is for whoever asked."""
        if self._given_up:
            return
        try:
            self._result = self._work()
        except BaseException as failed:  # noqa: BLE001 - it belongs to whoever asked
            self._failure = failed
        self._under_way.release()

    def fail(self, failure: BaseException) -> None:
        """It will not be done, for this reason; instead of `run`."""
        self._failure = failure
        self._under_way.release()

    def give_up(self) -> None:
        """Nobody wants it any more: it is not begun. If it has begun, it ends by itself."""
        self._given_up = True

    def done(self) -> bool:
        """Whether it has ended, either way."""
        return not self._under_way.locked()

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end; False when that has not come in time. One thread may wait."""
        ended = self._under_way.acquire(timeout=timeout_s)
        if ended:
            self._under_way.release()
        return ended

    def result(self, timeout_s: float) -> T:
        """What it returned, or raise what it raised; TimeoutError when it does not end in time."""
        if not self.wait(timeout_s):
            raise TimeoutError(f"it did not end within {timeout_s:g} s")
        if self._failure is not None:
            raise self._failure
        return cast("T", self._result)
