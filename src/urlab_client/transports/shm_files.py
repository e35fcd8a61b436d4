"""Files of shared memory that a server made: opened, mapped, and let go of again. Not for Windows."""

import contextlib
import mmap
import os
import sys
from pathlib import Path

from urlab_wire.shm import OWNER_FILE, Region

if sys.platform != "win32":
    import fcntl


class Unusable(Exception):
    """Shared memory cannot be used; the message says why."""


class InUse(Unusable):
    """Another client uses it now."""


class MappedRegion:
    """A region in a file, from construction to `close`; ``region`` belongs to one thread."""

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        """`Unusable` when the file cannot be opened, or holds no region."""
        with contextlib.ExitStack() as undo:
            try:
                self._descriptor = os.open(path, os.O_RDWR if writable else os.O_RDONLY | os.O_NONBLOCK)
                undo.callback(os.close, self._descriptor)
                access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
                memory = undo.enter_context(mmap.mmap(self._descriptor, 0, access=access))
                self.region = Region(memory)
                undo.callback(self.region.release)
            except OSError as refused:
                raise Unusable(f"{path}: {refused.strerror or refused}") from refused
            except ValueError as broken:
                raise Unusable(f"{path} holds no region: {broken}") from broken
            self._undo = undo.pop_all()

    @property
    def is_current(self) -> bool:
        """Whether the file is still there; one that took its place is another file."""
        return os.fstat(self._descriptor).st_nlink > 0

    def reserve(self) -> None:
        """Keep other clients away until `close`, or until this process ends; `InUse` when one is there already."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse("another client uses it") from None
        except OSError as refused:
            raise Unusable(f"the request's file cannot be locked: {refused.strerror or refused}") from refused

    def close(self) -> None:
        """Let go of everything. Nobody may use the region any more; once is enough."""
        self._undo.close()


class ServerLife:
    """Tells whether the server of a folder lives. Where there is no lock to look at, it counts as alive."""

    def __init__(self, folder: Path) -> None:
        self._descriptor: int | None = None
        with contextlib.suppress(OSError):
            self._descriptor = os.open(folder / OWNER_FILE, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def is_told(self) -> bool:
        """Whether there is a lock to look at, as our servers have it."""
        return self._descriptor is not None

    def has_ended(self) -> bool:
        """Whether the lock is free: the system lets go of it when a process ends, however it ends."""
        if self._descriptor is None:
            return False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return True

    def close(self) -> None:
        """Look no more. Once is enough."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
