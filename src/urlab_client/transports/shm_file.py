"""The server's files of shared memory, as a client opens them. Not for Windows.

Our servers share memory whose size is sealed: it is mapped, for nothing can take it away. Any other file could be cut
short by another process, and to touch what is missing of a mapping ends a process by a signal. So such a file, as the
original's server makes it, is read and written by system calls.
"""

import contextlib
import mmap
import os
import stat
import struct
import sys
from pathlib import Path

from urlab_wire.shm import HEADER_BYTES, Buffer, PayloadTooLarge, Region, ShmError, region_shape

if sys.platform != "win32":
    import fcntl

LARGEST_STRIDE = 1 << 28
"""A region with larger slots is refused: no server needs them, and each payload is copied."""

_GET_SEALS, _SEAL_SHRINK = 1034, 0x2
_SIZE = struct.Struct("<I")
_INDEX = struct.Struct("<I")
_SEQUENCE = struct.Struct("<Q")
_SEQUENCE_OFFSET, _INDEX_OFFSET = 16, 24
_SEQUENCE_MASK = (1 << 64) - 1


class Unusable(Exception):
    """Shared memory cannot be used; the message says why."""


class InUse(Unusable):
    """Another client uses it now."""


class OpenedRegion:
    """A region in a file, from construction to `close`; ``region`` belongs to one thread.

    ``is_sealed`` says whether its size can never change.
    """

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        """`Unusable` when the file cannot be opened, or holds no region."""
        self._path = path
        with contextlib.ExitStack() as undo:
            try:
                self._descriptor = os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_NONBLOCK)
                undo.callback(os.close, self._descriptor)
                self.is_sealed = _is_sealed(self._descriptor)
                self.region = self._open_sealed(undo, writable) if self.is_sealed else FileRegion(self._descriptor)
                undo.callback(self.region.release)
            except OSError as refused:
                raise Unusable(_why(path, refused)) from refused
            except ValueError as broken:
                raise Unusable(f"{path} holds no region: {broken}") from broken
            self._undo = undo.pop_all()

    def _open_sealed(self, undo: contextlib.ExitStack, writable: bool) -> Region:
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        region = Region(undo.enter_context(mmap.mmap(self._descriptor, 0, access=access)))
        if region.stride > LARGEST_STRIDE:
            region.release()
            raise ShmError(f"its slots of {region.stride} bytes are larger than any server makes them")
        return region

    @property
    def is_current(self) -> bool:
        """Whether it is still what its name in the folder leads to."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    def reserve(self) -> None:
        """Keep other clients away until `close`, or until this process ends; `InUse` when one is there already."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse("another client uses it") from None
        except OSError as refused:
            raise Unusable(f"{self._path} cannot be locked: {refused.strerror or refused}") from refused

    def close(self) -> None:
        """Let go of everything. The region must not be used any more; once is enough."""
        self._undo.close()


class FileRegion(Region):
    """A region in a file that another process may cut short, by system calls: then ShmError, and no signal."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        """ShmError when the file holds no region; the descriptor stays the caller's."""
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ShmError("it is no file")
        self._descriptor = descriptor
        self.address = 0
        self.stride, self.n_buffers = region_shape(self._read(0, HEADER_BYTES), status.st_size)
        if self.stride > LARGEST_STRIDE:
            raise ShmError(f"its slots of {self.stride} bytes are larger than any server makes them")
        self.capacity = self.stride - _SIZE.size

    @property
    def sequence(self) -> int:
        """As `Region` has it."""
        return int(_SEQUENCE.unpack(self._read(_SEQUENCE_OFFSET, _SEQUENCE.size))[0])

    def write(self, payload: Buffer, number: int | None = None) -> int:
        """As `Region` has it, but for numbers: replies are numbered in sealed regions only."""
        size = len(payload)
        if number is not None or not 0 < size <= self.capacity:
            raise PayloadTooLarge(f"a payload of {size} bytes does not fit a slot, which holds {self.capacity}")
        sequence, index = struct.unpack("<QI", self._read(_SEQUENCE_OFFSET, 12))
        target, sequence = (index + 1) % self.n_buffers, (sequence + 1) & _SEQUENCE_MASK
        os.pwrite(self._descriptor, _SIZE.pack(size) + payload, HEADER_BYTES + target * self.stride)
        os.pwrite(self._descriptor, _INDEX.pack(target), _INDEX_OFFSET)
        os.pwrite(self._descriptor, _SEQUENCE.pack(sequence), _SEQUENCE_OFFSET)
        return int(sequence)

    def read(self, last_seen: int, number: int | None = None) -> tuple[int, bytes] | None:
        """As `Region` has it, but for numbers."""
        sequence, index = struct.unpack("<QI", self._read(_SEQUENCE_OFFSET, 12))
        if number is not None or sequence == last_seen or index >= self.n_buffers:
            return None
        start = HEADER_BYTES + index * self.stride
        (size,) = _SIZE.unpack(self._read(start, _SIZE.size))
        if not 0 < size <= self.capacity:
            return None
        payload = self._read(start + _SIZE.size, size)
        if (self.sequence - sequence) & _SEQUENCE_MASK > max(0, self.n_buffers - 2):
            return None
        return sequence, payload

    def release(self) -> None:
        """There is nothing to let go of."""

    def _read(self, start: int, size: int) -> bytes:
        found = os.pread(self._descriptor, size, start)
        if len(found) < size:
            raise ShmError("the file is too short: no region, or another process has cut it")
        return found


def _is_sealed(descriptor: int) -> bool:
    """Whether the file can never become shorter."""
    try:
        return bool(fcntl.fcntl(descriptor, _GET_SEALS) & _SEAL_SHRINK)
    except (OSError, NameError):  # no memory of this kind, or another system
        return False


def _why(path: Path, refused: OSError) -> str:
    if isinstance(refused, FileNotFoundError) and path.is_symlink():
        return f"{path} leads to a process that is not to be seen from here: is the server in another container?"
    if isinstance(refused, PermissionError) and path.is_symlink():
        return f"{path} may not be opened: has the server other rights (its user, its capabilities) than this program?"
    return f"{path}: {refused.strerror or refused}"
