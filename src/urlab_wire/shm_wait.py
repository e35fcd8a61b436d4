"""Waiting until a peer writes a region of shared memory, for the server and for clients.

On Linux the low word of a region's sequence is a futex: `wake`, after a write, ends the waits of the threads that sleep
on it, in this process or another. A peer that never calls `wake` is served as well, for no sleep is long: as long as
its changes are found by looking, the sleeps between looks are short. Other systems only look, and so does a client at a
region that it has not mapped. (Windows has named events for this, which the protocol knows and this module leaves out.)
"""

import ctypes
import errno
import math
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import Any, Protocol

from urlab_wire.shm import Region

SPIN_S = 200e-6
"""For how long a wait may begin by looking again and again, if that has been worth it lately. A client in lockstep
that does little between its steps comes back sooner; to spin for longer would lower the median a little further, and
cost its slowest requests more, where there are few cores."""

_LONGEST_S = 0.1
_ACTIVE_S = 0.5
_IDLE_SHARE = 1 / 25
_HIGHEST_SCORE = 8

_SEQUENCE_OFFSET = 16
_LOW_WORD = 0xFFFFFFFF
_FUTEX_NUMBERS = {"x86_64": 202, "aarch64": 98}
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1
_ALL_WAITERS = 0x7FFFFFFF


def wake(region: Region) -> None:
    """End the waits for this region's sequence, in every process. Call it after a write; it never blocks."""
    if _FUTEX_NUMBER is not None and region.address:
        _wake_call(*_wake_arguments(region.address + _SEQUENCE_OFFSET))


# It lets go of the interpreter, and that at every look: to do it now and then is not enough. A thread that waits for
# the interpreter takes longer to awake than it would stay free, and would find it taken again, time after time.
_give_way: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))


class AdaptiveSpin:
    """Whether a wait should begin by looking again and again for ``spin_s`` (``active``), or sleep at once.

    A thread that sleeps is woken by the kernel, and runs on a cold processor: together that costs more than serving a
    small request. So while events follow each other closely, it pays to spin. One thread uses it.
    """

    def __init__(self, spin_s: float = SPIN_S) -> None:
        self.spin_s = spin_s
        self.active = False
        self._score = 0

    def learn(self, soon: bool) -> None:
        """Learn from one wait: whether its event came within ``spin_s``."""
        if not soon:
            self._score = max(0, self._score - 2)
            self.active = self._score > 0
        elif self._score < _HIGHEST_SCORE:
            self._score += 1
            self.active = True


class SequenceWaiter:
    """Waits for a change of one region. One thread waits, and any thread may `stop` it: before the region is released.

    While changes follow each other closely, a wait begins with looking (`AdaptiveSpin`). It then sleeps until it is
    woken or it is time to look.
    """

    def __init__(self, region: Region, *, spin_s: float = SPIN_S) -> None:
        self._region = region
        self._spin = AdaptiveSpin(spin_s)
        self._stopped = False
        self._resting = False
        self._reported: tuple[int, int] | None = None
        self._to_note: tuple[tuple[int, int], float] | None = None
        self._sleeper: _Sleeper = _Polling() if _FUTEX_NUMBER is None or not region.address else _Futex(region)

    @property
    def stopped(self) -> bool:
        """Whether `stop` has been called."""
        return self._stopped

    def stop(self) -> None:
        """End the wait of the other thread at once, and all that it may begin later."""
        self._stopped = True
        for _ in range(20):  # what comes in the instant before the other falls asleep is lost
            self._sleeper.interrupt()
            if not self._resting:
                return
            time.sleep(0.001)

    def wait(self, seen: int, timeout_s: float | None = None) -> bool:
        """Wait until the sequence is another than ``seen``; False when time is up, or when stopped.

        A change that was reported to the caller, who did not take it because the payload cannot be read, is reported
        again only after a pause. So a loop around `wait` and `Region.read` does not spin on a slot that holds rubbish.
        """
        if self._stopped:
            return False
        if self._to_note is not None:
            self._note(*self._to_note)
        begin = time.perf_counter()
        deadline = math.inf if timeout_s is None else begin + timeout_s
        spin = self._spin
        if self._reported == (seen, self._region.sequence):
            self._rest(self._reported[1], deadline - begin)
        elif spin.active and (found := self._look(seen, min(deadline, begin + spin.spin_s))) is not None:
            self._to_note = (seen, found), time.perf_counter() - begin  # that can wait, the caller is in a hurry
            return not self._stopped
        if self._sleep(seen, deadline) and not self._stopped:
            self._note((seen, self._region.sequence), time.perf_counter() - begin)
            return True
        spin.learn(False)
        return False

    def _note(self, change: tuple[int, int], took_s: float) -> None:
        """Learn from a change, from which sequence to which, that was reported after so long."""
        self._to_note = None
        self._spin.learn(took_s < self._spin.spin_s)
        if self._reported != change:
            self._reported = change
            self._sleeper.pace.shorten()

    def _look(self, seen: int, until: float) -> int | None:
        """Look until then for another sequence. Between any two looks others get their turn: threads and processes."""
        region = self._region
        while (found := region.sequence) == seen:
            if self._stopped or time.perf_counter() >= until:
                return None
            _give_way()
        return found

    def _sleep(self, seen: int, deadline: float) -> bool:
        region = self._region
        while region.sequence == seen:
            left = deadline - time.perf_counter()
            if left <= 0 or self._stopped:
                return False
            self._rest(seen, left)
        return True

    def _rest(self, seen: int, at_most_s: float) -> None:
        """Sleep until woken, for as long as the pace has it at most."""
        sleeper = self._sleeper
        self._resting = True
        try:
            if self._stopped or at_most_s <= 0:
                return
            ended = sleeper.sleep(seen, min(at_most_s, sleeper.pace.rest_s))
        finally:
            self._resting = False
        sleeper.pace.note(ended, changed=self._region.sequence != seen)
        if ended is _Ended.NEVER_BEGAN:
            self._sleeper = _Polling()


class _Ended(Enum):
    """Why a sleep is over."""

    WOKEN = "a peer called wake"
    CUT_SHORT = "the sequence had changed already, or a signal came"
    TIME_UP = "the time is up"
    NEVER_BEGAN = "the system does not let us sleep on this memory"


class _Pace:
    """How long to sleep at most, in seconds, before the next look (``rest_s``).

    A peer that wakes us needs no looking. Otherwise, for half a second after a change, rests grow from ``first_s`` to
    ``active_s`` only. Later they go on to double, up to a share of the time since then: a peer that comes back has
    waited little for us, compared with how long we waited for it. Each look of an idle processor costs over 0.1 ms.
    """

    def __init__(self, first_s: float, active_s: float) -> None:
        self._first_s = first_s
        self._active_s = active_s
        self._last_change = time.perf_counter() - _ACTIVE_S
        self._peer_wakes = False
        self.rest_s = first_s

    def note(self, ended: _Ended, *, changed: bool) -> None:
        """Learn from one sleep."""
        if ended is _Ended.WOKEN and changed:
            self._peer_wakes, self.rest_s = True, _LONGEST_S
        elif ended is _Ended.TIME_UP and changed:
            self._peer_wakes = False
            self.shorten()
        elif ended is _Ended.TIME_UP and not self._peer_wakes:
            idle_s = time.perf_counter() - self._last_change
            longest_s = self._active_s if idle_s < _ACTIVE_S else min(_LONGEST_S, idle_s * _IDLE_SHARE)
            self.rest_s = min(self.rest_s * 2, longest_s)

    def shorten(self) -> None:
        """There was a change: look often for a while, unless the peer wakes us."""
        if not self._peer_wakes:
            self.rest_s = self._first_s
            self._last_change = time.perf_counter()


class _Sleeper(Protocol):
    """A way to sleep while the sequence is ``seen``."""

    pace: _Pace

    def sleep(self, seen: int, timeout_s: float) -> _Ended:
        """Sleep for so long at most. The thread that waits calls this."""

    def interrupt(self) -> None:
        """End the sleep. Any thread calls this."""


class _Polling:
    """Sleeps that only `interrupt` ends."""

    def __init__(self) -> None:
        self.pace = _Pace(first_s=50e-6, active_s=2e-3)
        self._interrupted = threading.Event()

    def sleep(self, seen: int, timeout_s: float) -> _Ended:  # noqa: ARG002 (only a futex looks at it)
        if timeout_s <= 2e-3:
            time.sleep(timeout_s)  # finer than an event's timeout, and soon over anyhow
        else:
            self._interrupted.wait(timeout_s)
        return _Ended.TIME_UP

    def interrupt(self) -> None:
        self._interrupted.set()


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


class _Futex:
    """Sleeps on the low word of the sequence. The mapping may be read-only."""

    def __init__(self, region: Region) -> None:
        self.pace = _Pace(first_s=200e-6, active_s=200e-6)
        self._region = region
        self._expected = ctypes.c_ulong()
        self._timeout = _Timespec()
        word = ctypes.c_void_p(region.address + _SEQUENCE_OFFSET)
        operation = ctypes.c_long(_FUTEX_WAIT)
        self._arguments = _FUTEX_NUMBER, word, operation, self._expected, ctypes.byref(self._timeout)

    def sleep(self, seen: int, timeout_s: float) -> _Ended:
        self._expected.value = seen & _LOW_WORD
        self._timeout.nanoseconds = int(timeout_s * 1e9)  # no rest is as long as a second
        if _wait_call(*self._arguments) == 0:
            return _Ended.WOKEN
        return _ENDED.get(ctypes.get_errno(), _Ended.NEVER_BEGAN)

    def interrupt(self) -> None:
        wake(self._region)


_ENDED = {
    errno.EAGAIN: _Ended.CUT_SHORT,
    errno.EINTR: _Ended.CUT_SHORT,
    errno.ETIMEDOUT: _Ended.TIME_UP,
}


def _futex_number() -> ctypes.c_long | None:
    """The number of the system call; None where there is none that we know."""
    number = _FUTEX_NUMBERS.get(platform.machine())
    if sys.platform != "linux" or number is None or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    return ctypes.c_long(number)


def _system_call(library: Any) -> Callable[..., int]:
    return library.syscall  # type: ignore[no-any-return]


@lru_cache(maxsize=256)
def _wake_arguments(word: int) -> tuple[Any, ...]:
    return _FUTEX_NUMBER, ctypes.c_void_p(word), ctypes.c_long(_FUTEX_WAKE), ctypes.c_long(_ALL_WAITERS)


_FUTEX_NUMBER = _futex_number()
if _FUTEX_NUMBER is not None:
    _wait_call = _system_call(ctypes.CDLL(None, use_errno=True))  # others run while this one sleeps
    _wake_call = _system_call(ctypes.PyDLL(None))  # over before another thread could take the interpreter
