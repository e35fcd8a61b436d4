"""Regions that this process makes: memory that no peer can shorten, and a link to it in the folder.

A process that maps a file is ended by a signal (SIGBUS) when another one cuts that file short, as every process may
that can open it. Anonymous memory (memfd) can be sealed against that, but has no name; so what stands in the folder is
a link to its descriptor in /proc. To open the link is to open the memory: clients see a file as the protocol describes
it. Links of a server that was killed lead nowhere, and its memory is gone with it.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from urlab_wire.shm import Region, format_region, region_bytes

_NO_EXEC_SEAL = 0x8
_ADD_SEALS = 1033
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW, _SEAL_FUTURE_WRITE = 0x1, 0x2, 0x4, 0x10
_PROT_READ_WRITE, _MAP_SHARED = 3, 1
_BUFFER_WRITABLE = 0x200
_FAILED = ctypes.c_void_p(-1).value


class OwnedRegion:
    """A region that this process has made. The link is gone after `close`; peers keep what they have mapped.

    Its size can never change. Unless ``peers_write``, other processes can only read it. Before it gets its name,
    ``on_made`` is called with the descriptor: what is watched from then on are the openings of others.
    """

    def __init__(
        self,
        path: Path,
        stride: int,
        n_buffers: int,
        *,
        peers_write: bool = False,
        on_made: Callable[[int], None] | None = None,
    ) -> None:
        self.path = path
        self.size = region_bytes(stride, n_buffers)
        self.descriptor = _make_memory(path.name)
        try:
            os.posix_fallocate(self.descriptor, 0, self.size)  # so that a lack of memory is an error, and that now
            self._memory = _Mapping(self.descriptor, self.size)
        except OSError:
            os.close(self.descriptor)
            raise
        try:
            format_region(self._memory.view, stride, n_buffers)
            _seal(self.descriptor, peers_write)
            self.region = Region(self._memory.view)
            if on_made is not None:
                on_made(self.descriptor)
            path.symlink_to(f"/proc/{Path('/proc/self').readlink()}/fd/{self.descriptor}")
        except OSError:
            self._let_go()
            raise

    def close(self) -> None:
        """Take the link away, and let go of the memory. The region must not be used any more."""
        self.path.unlink(missing_ok=True)
        self._let_go()

    def _let_go(self) -> None:
        if hasattr(self, "region"):
            self.region.release()
        self._memory.close()
        os.close(self.descriptor)


def _make_memory(name: str) -> int:
    """Memory without a name in any folder, for this user alone."""
    if not hasattr(os, "memfd_create"):
        raise OSError(errno.ENOSYS, "this system knows no memory that can be sealed (memfd)")
    try:
        descriptor = os.memfd_create(f"urlab-{name[:64]}", os.MFD_CLOEXEC | _NO_EXEC_SEAL)  # it may be sealed as well
    except OSError:  # a kernel before 6.3 knows no such flag
        descriptor = os.memfd_create(f"urlab-{name[:64]}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.fchmod(descriptor, 0o600)
    return descriptor


def _seal(descriptor: int, peers_write: bool) -> None:
    """Make its size final, and its content this process's own unless peers write it."""
    if not peers_write:
        with contextlib.suppress(OSError):  # a kernel before 5.1: processes of this user could write it
            fcntl.fcntl(descriptor, _ADD_SEALS, _SEAL_FUTURE_WRITE)
    fcntl.fcntl(descriptor, _ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW | _SEAL_SEAL)


class LockProbe:
    """Tells whether a client holds its lock (flock) on a region of this process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)  # locks belong to openings

    def is_locked(self) -> bool:
        """Whether another opening has the lock. Any thread."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return False

    def close(self) -> None:
        """Look no more."""
        os.close(self._descriptor)


class _Mapping:
    """Memory of a descriptor, to write. (Python's own mapping would keep a second descriptor open for each region.)"""

    def __init__(self, descriptor: int, size: int) -> None:
        address = _map(None, size, _PROT_READ_WRITE, _MAP_SHARED, descriptor, 0)
        if address == _FAILED:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        self._address, self._size = address, size
        self.view: memoryview = _view(address, size, _BUFFER_WRITABLE)

    def close(self) -> None:
        """Unmap it; no view of it may be in use."""
        self.view.release()
        _unmap(self._address, self._size)


_library = ctypes.CDLL(None, use_errno=True)
_map = _library.mmap
_map.restype = ctypes.c_void_p
_map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_unmap = _library.munmap
_unmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_view = ctypes.pythonapi.PyMemoryView_FromMemory
_view.restype = ctypes.py_object
_view.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
