"""The newest records of the log, in memory, for clients that follow it; and how many of a kind are told."""

import logging
import threading
import time
from collections import deque
from collections.abc import Hashable
from typing import NamedTuple

MAX_RECORDS = 1000
BURST, WINDOW_S = 50, 10.0
_OPS_BURST = 10
"""Of one op of one caller: a drag or a scrub sends many."""

_MAX_KINDS = 1000
_LONGEST_MESSAGE = 1000


class KindLimit:
    """Lets so many of one kind through per window, and counts those that it keeps back. Any thread may ask.

    What comes less often than a burst within the window is never kept back.
    """

    def __init__(self, burst: int = BURST, window_s: float = WINDOW_S) -> None:
        self._burst, self._window_s = burst, window_s
        self._lock = threading.Lock()
        self._counts: dict[Hashable, tuple[float, int]] = {}

    def admit(self, kind: Hashable) -> int | None:
        """None to keep it back; else how many of its kind were kept back before it."""
        now = time.monotonic()
        with self._lock:
            if len(self._counts) > _MAX_KINDS:
                self._counts.clear()
            since, count = self._counts.get(kind, (now, 0))
            kept_back = max(0, count - self._burst)
            if now - since > self._window_s:
                since, count = now, 0
            self._counts[kind] = (since, count + 1)
        if count >= self._burst:
            return None
        return kept_back if count == 0 else 0


class BufferedRecord(NamedTuple):
    """One record; ``time_s`` is in seconds since 1970. Of an op: who asked, in which session, and an error's code."""

    number: int
    time_s: float
    level: str
    logger: str
    message: str
    caller: str | None = None
    session: str | None = None
    op: str | None = None
    code: str | None = None


_LOGGER = logging.getLogger("urlab")


def _tell_as_without_handlers(record: logging.LogRecord) -> None:
    """What the standard library does with warnings where a program has set up no log: a handler alone would end it."""
    last_resort = logging.lastResort
    if last_resort is not None and record.levelno >= last_resort.level:
        last_resort.handle(record)


class LogBuffer(logging.Handler):
    """Keeps the newest records, numbered from 1. Any thread may add and read.

    It is a handler of the log, and takes as well what is no record of it: ops that changed the world.
    """

    def __init__(self) -> None:
        super().__init__()
        self._buffer_lock = threading.Lock()
        self._records: deque[BufferedRecord] = deque(maxlen=MAX_RECORDS)
        self._limit, self._ops_limit = KindLimit(), KindLimit(_OPS_BURST)
        self.last = 0
        """The number of the newest record."""

    def attach(self) -> None:
        """Take every record of ours from now on."""
        _LOGGER.addHandler(self)

    def detach(self) -> None:
        """Take no more."""
        _LOGGER.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record of the log."""
        if self._alone_hears():
            _tell_as_without_handlers(record)
        kept_back = self._limit.admit((record.name, str(record.msg)))
        if kept_back is None:
            return
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - a wrong format is its caller's fault, and no reason for anything to fail
            message = str(record.msg)
        failure = record.exc_info[1] if record.exc_info else None
        if failure is not None:
            message = f"{message} ({type(failure).__name__}: {failure})"
        self._add(record.levelname.lower(), record.name, message, kept_back, time_s=record.created)

    def note_op(self, op: str, caller: str, session: str | None, code: str | None = None, message: str = "") -> None:
        """Keep that an op was served, or refused with that code."""
        kept_back = self._ops_limit.admit((caller, session, op, code))
        if kept_back is None:
            return
        said = f"{op}: {message} [{code}]" if code is not None else op
        level = "info" if code is None else "warning"
        self._add(level, "urlab.ops", said, kept_back, caller=caller, session=session, op=op, code=code)

    def after(self, number: int) -> tuple[list[BufferedRecord], int]:
        """The records behind that number, in order, and the number of the newest.

        All of them for one that was never reached: it is from before a restart.
        """
        with self._buffer_lock:
            last, records = self.last, list(self._records)
        if number > last:
            return records, last
        return [one for one in records if one.number > number], last

    def _alone_hears(self) -> bool:
        """Whether no handler shows the records, and this is the first that keeps them."""
        here = _LOGGER.handlers
        is_shown = any(not isinstance(one, LogBuffer) for one in here)
        return here[:1] == [self] and not is_shown and not (_LOGGER.propagate and logging.root.handlers)

    def _add(
        self,
        level: str,
        logger: str,
        message: str,
        kept_back: int,
        *,
        time_s: float | None = None,
        caller: str | None = None,
        session: str | None = None,
        op: str | None = None,
        code: str | None = None,
    ) -> None:
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[:_LONGEST_MESSAGE]}..."
        if kept_back:
            message = f"{message} ({kept_back} more such lines were kept back)"
        at_s = time.time() if time_s is None else time_s
        with self._buffer_lock:
            self.last += 1
            self._records.append(
                BufferedRecord(self.last, at_s, level, logger, message, caller, session, op, code)
            )  # fmt: skip
