"""Tells when a thread that others depend on does not turn: which, for how long, and what it is doing.

A thread that must turn has a `Turns`: it says when it begins to work and when it waits for work again, which costs
next to nothing. One thread of the process (`start`) looks at all of them a few times a second. What a thread is doing
is read off its stack when it is late, so that nothing has to be noted before. `stalled` is for other parts of the
process: the health endpoint.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

log = logging.getLogger("urlab.watchdog")

PERIOD_S = 0.25
LATE_S = 1.0
"""A thread that has worked for so long without a turn is late."""

_QUIET_S = 10.0
"""So long nothing more is logged of a thread that was late: clients can bring it about."""

_HANDLERS = "ops/handlers"


class Stall(NamedTuple):
    """A thread that does not turn: its name, for how many seconds, and what it is doing."""

    thread: str
    seconds: float
    doing: str


class Turns:
    """The turns of one thread. That thread calls `busy`, `turn` and `idle`; from `close` on it is not looked at."""

    __slots__ = ("_thread_id", "_watchdog", "count", "name")

    def __init__(self, name: str, watchdog: "Watchdog | None" = None) -> None:
        """``name`` is what the log calls it: that of the thread. Without a ``watchdog`` it is the process's."""
        self.name = name
        self._watchdog = watchdog or _watchdog
        self.count = 0
        """Odd while it works. It grows with every turn."""

        self._thread_id = 0

    def open(self) -> "Turns":
        """From now on the calling thread is looked at."""
        self._thread_id = threading.get_ident()
        self._watchdog.add(self)
        return self

    def close(self) -> None:
        """It has ended."""
        self._watchdog.remove(self)

    def busy(self) -> None:
        """There is work, and it begins."""
        self.count += 1

    def turn(self) -> None:
        """A piece of it is done, and there is more."""
        self.count += 2

    def idle(self) -> None:
        """It is done; the thread waits for more."""
        self.count += 1

    def doing(self) -> str:
        """What the thread does now, as its stack tells: the op, and the innermost function of ours."""
        frames = list(_frames(sys._current_frames().get(self._thread_id)))
        ours = [one for one in frames if "urlab" in Path(one.f_code.co_filename).parts]
        if not ours:
            return "unknown work"
        op = next((one.f_code.co_name for one in reversed(ours) if _HANDLERS in one.f_code.co_filename), "")
        inner = ours[0]
        place = f"{inner.f_code.co_qualname} ({Path(inner.f_code.co_filename).name}:{inner.f_lineno})"
        return f"op {op}, in {place}" if op else place


class _Watch:
    """What the watchdog knows of one thread."""

    __slots__ = ("count", "logged_s", "seen_s", "was_logged")

    def __init__(self, now: float) -> None:
        self.count = -1
        self.seen_s = now
        self.logged_s = -_QUIET_S
        self.was_logged = False


class Watchdog:
    """Looks at the turns of threads. One is there for the whole process; tests make their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict[Turns, _Watch] = {}
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look, on a thread of its own, which lives as long as the process. Once is enough."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="urlab-watchdog", daemon=True)
                self._thread.start()

    def add(self, turns: Turns) -> None:
        """Look at one more thread."""
        with self._lock:
            self._watched[turns] = _Watch(time.monotonic())

    def remove(self, turns: Turns) -> None:
        """Look at it no more."""
        with self._lock:
            self._watched.pop(turns, None)

    def forget(self) -> None:
        """In a forked process: it has none of the threads."""
        self._lock = threading.Lock()
        self._watched, self._thread = {}, None

    def stalled(self) -> list[Stall]:
        """The threads that are late now. Any thread may ask."""
        now = time.monotonic()
        with self._lock:
            late = [(one, now - watch.seen_s) for one, watch in self._watched.items() if _is_late(one, watch, now)]
        return [Stall(one.name, seconds, one.doing()) for one, seconds in late]

    def look(self) -> None:
        """Compare all threads with the last look; log those that have become late, and those that turn again."""
        now = time.monotonic()
        with self._lock:
            watched = list(self._watched.items())
        for turns, watch in watched:
            if turns.count != watch.count:
                self._note_turn(turns, watch, now)
            elif _is_late(turns, watch, now):
                self._note_late(turns, watch, now)

    def _note_turn(self, turns: Turns, watch: _Watch, now: float) -> None:
        if watch.was_logged:
            log.warning("thread %s turns again, after %.1f s", turns.name, now - watch.seen_s)
        watch.count, watch.seen_s, watch.was_logged = turns.count, now, False

    def _note_late(self, turns: Turns, watch: _Watch, now: float) -> None:
        if not watch.was_logged and now - watch.logged_s > _QUIET_S:
            seconds = now - watch.seen_s
            log.warning("thread %s has not turned for %.1f s: %s", turns.name, seconds, turns.doing())
            watch.was_logged, watch.logged_s = True, now

    def _run(self) -> None:
        while True:
            begin = time.monotonic()
            time.sleep(PERIOD_S)
            if (pause := time.monotonic() - begin - PERIOD_S) > LATE_S:
                log.warning("no thread of this process turned for %.1f s: it was stopped, or starved", pause)
            self.look()


def _is_late(turns: Turns, watch: _Watch, now: float) -> bool:
    return bool(turns.count & 1) and turns.count == watch.count and now - watch.seen_s > LATE_S


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A stack, the innermost frame first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


_watchdog = Watchdog()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watchdog.forget)


def start() -> None:
    """Begin to look at the threads of this process."""
    _watchdog.start()


def stalled() -> list[Stall]:
    """The threads of this process that do not turn."""
    return _watchdog.stalled()
