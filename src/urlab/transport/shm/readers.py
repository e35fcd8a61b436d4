"""Which regions have readers. They subscribe to nothing; but they open a file, and that can be seen.

The system tells (inotify) when a file is opened, and when the last descriptor or mapping of an opening is gone, also
when its process was killed. Where it does not tell, everything counts as being read.
"""

import contextlib
import ctypes
import errno
import logging
import os
import select
import struct
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger("urlab.transport")

_OPENED, _CLOSED_WRITABLE, _CLOSED_READ_ONLY = 0x20, 0x08, 0x10
_CREATED = 0x100
_OVERFLOWED = 0x4000
_NOT_AFTER_REMOVAL = 0x04000000
_EVENT = struct.Struct("iIII")
_STOP_LIMIT_S = 3.0


class Readers:
    """Counts the openings of each file that appears in a folder from now on.

    Two openings at the very same moment may be reported as one. A reader that gets nothing should open the file again.

    ``on_change`` is called on a thread of its own when a file gets its first reader or loses its last.
    """

    def __init__(self, folder: Path, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._counts: Counter[str] = Counter()
        self._blind = False
        self._inotify = _watch(folder)
        if self._inotify is None:
            self._blind = True
            return
        self._wake_in, self._wake_out = os.pipe()
        self._thread = threading.Thread(target=self._run, name="urlab-shm-readers", daemon=True)
        self._thread.start()

    def reads(self, name: str) -> bool:
        """Whether a client has that file open. Any thread; it costs next to nothing."""
        return self._blind or self._counts[name] > 0

    def close(self) -> None:
        """End the thread. Once is enough."""
        if self._inotify is None:
            return
        os.close(self._wake_out)
        self._thread.join(_STOP_LIMIT_S)
        os.close(self._inotify)
        os.close(self._wake_in)
        self._inotify = None

    def _run(self) -> None:
        inotify = self._inotify
        while inotify is not None:
            ready, _, _ = select.select([inotify, self._wake_in], [], [])
            if self._wake_in in ready:
                return
            self._take(os.read(inotify, 1 << 16))

    def _take(self, events: bytes) -> None:
        before = self._read_files()
        position = 0
        while position < len(events):
            _, mask, _, length = _EVENT.unpack_from(events, position)
            position += _EVENT.size + length
            self._count(mask, events[position - length : position].rstrip(b"\0"))
        if before != self._read_files():
            self._on_change()

    def _read_files(self) -> set[str]:
        return {name for name, count in self._counts.items() if count > 0}

    def _count(self, mask: int, name: bytes) -> None:
        if mask & _OVERFLOWED:
            log.warning("too much happens in the folder of shared memory: from now on every region is kept up to date")
            self._blind = True
        elif mask & _CREATED:
            self._counts[os.fsdecode(name)] = 0  # a client that still has an older file of that name reads nothing new
        elif name:
            self._counts[os.fsdecode(name)] += 1 if mask & _OPENED else -1


def _watch(folder: Path) -> int | None:
    """A descriptor that tells of files that are opened and closed there; None when there is no such thing."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    inotify: int = library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    mask = _CREATED | _OPENED | _CLOSED_WRITABLE | _CLOSED_READ_ONLY | _NOT_AFTER_REMOVAL
    if inotify >= 0 and library.inotify_add_watch(inotify, os.fsencode(folder), mask) >= 0:
        return inotify
    reason = os.strerror(ctypes.get_errno() or errno.ENOSYS)
    log.warning("readers of shared memory cannot be seen (inotify: %s): every region is kept up to date", reason)
    if inotify >= 0:
        with contextlib.suppress(OSError):
            os.close(inotify)
    return None
