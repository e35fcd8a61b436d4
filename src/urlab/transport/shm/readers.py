"""Which regions have readers. They subscribe to nothing; but they open a file, and that can be seen.

The system tells (inotify) when a region is opened, and when the last descriptor or mapping of an opening is gone, also
when its process was killed. Where it does not tell, everything counts as being read.
"""

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

log = logging.getLogger("urlab.transport")

_OPENED, _CLOSED_WRITABLE, _CLOSED_READ_ONLY = 0x20, 0x08, 0x10
_OVERFLOWED = 0x4000
_EVENT = struct.Struct("iIII")
_STOP_LIMIT_S = 3.0


class Readers:
    """Counts the openings of each region that it watches.

    Two openings at the very same moment may be reported as one. A reader that gets nothing should open the file again.

    ``on_change`` is called on a thread of its own when a file gets its first reader or loses its last.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._counts: Counter[str] = Counter()
        self._names: dict[int, str] = {}
        self._blind = False
        self._inotify = _begin()
        if self._inotify is None:
            self._blind = True
            return
        self._wake_in, self._wake_out = os.pipe()
        self._thread = threading.Thread(target=self._run, name="urlab-shm-readers", daemon=True)
        self._thread.start()

    def watch(self, name: str, descriptor: int) -> None:
        """Count openings of this memory, as those of a file of that name, from now on. Any thread.

        What was watched under that name before is so no more: a client that still has it reads nothing new.
        """
        if self._inotify is None:
            return
        self.unwatch(name)
        mask = _OPENED | _CLOSED_WRITABLE | _CLOSED_READ_ONLY
        watch: int = _library.inotify_add_watch(self._inotify, f"/proc/self/fd/{descriptor}".encode(), mask)
        if watch >= 0:
            self._names[watch] = name
        else:
            self._go_blind(f"inotify: {os.strerror(ctypes.get_errno())}")

    def unwatch(self, name: str) -> None:
        """Count openings of that file no more: it has no readers. Any thread."""
        for watch in [number for number, watched in self._names.copy().items() if watched == name]:
            self._names.pop(watch, None)
            _library.inotify_rm_watch(self._inotify, watch)
        self._counts[name] = 0

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
            watch, mask, _, length = _EVENT.unpack_from(events, position)
            position += _EVENT.size + length
            self._count(watch, mask)
        if before != self._read_files():
            self._on_change()

    def _read_files(self) -> set[str]:
        counts = list(self._counts.items())  # in one go, as other threads begin to watch files meanwhile
        return {name for name, count in counts if count > 0}

    def _count(self, watch: int, mask: int) -> None:
        if mask & _OVERFLOWED:
            self._go_blind("too many open and close them")
        elif mask & _OPENED and (name := self._names.get(watch)) is not None:
            self._counts[name] += 1
        elif mask & (_CLOSED_WRITABLE | _CLOSED_READ_ONLY) and (name := self._names.get(watch)) is not None:
            self._counts[name] = max(0, self._counts[name] - 1)

    def _go_blind(self, reason: str) -> None:
        if not self._blind:
            log.warning(_CANNOT_BE_SEEN, reason)
        self._blind = True


def _begin() -> int | None:
    """A descriptor that tells of files that are opened and closed; None when there is no such thing."""
    if sys.platform != "linux":
        return None
    inotify: int = _library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if inotify >= 0:
        return inotify
    log.warning(_CANNOT_BE_SEEN, f"inotify: {os.strerror(ctypes.get_errno() or errno.ENOSYS)}")
    return None


_CANNOT_BE_SEEN = "readers of shared memory cannot be seen (%s): every region is kept up to date"
_library = ctypes.CDLL(None, use_errno=True)
