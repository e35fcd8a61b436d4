"""The folder of one server's regions: private, on tmpfs, and gone when the server is.

A server that is killed cannot clean up after itself. So it holds a lock on a file in its folder, which the system lets
go of when the process ends, however it ends. A server that starts takes away the folders of its user whose lock is
free, and nothing else.
"""

import contextlib
import errno
import fcntl
import logging
import mmap
import os
import re
import secrets
import time
from pathlib import Path

from urlab_wire.shm import OWNER_FILE, Region, format_region, region_bytes

log = logging.getLogger("urlab.transport")

SHM_ROOT = Path("/dev/shm")
_READY = re.compile(r"urlab-[0-9a-f]{16}")
_UNFINISHED = re.compile(r"\.urlab-[0-9a-f]{16}")
_UNFINISHED_S = 60.0
"""A folder without a lock is left alone for so long: its server may be about to take it."""


class ShmUnavailable(Exception):
    """There is no shared memory to be had; the message says why and what to do."""


class OwnedRegion:
    """A region that this process has made. The file is gone after `close`; peers keep what they have mapped.

    It is made without a name, and gets one when it is finished. So no client ever sees half a region, nothing is left
    of one when the process is killed meanwhile, and `Readers` sees no opening but those of others.
    """

    def __init__(self, path: Path, stride: int, n_buffers: int) -> None:
        size = region_bytes(stride, n_buffers)
        self.path = path
        descriptor = os.open(path.parent, os.O_RDWR | os.O_TMPFILE, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)  # without it, a full tmpfs would end the process by a signal
            self._memory = mmap.mmap(descriptor, size)
            format_region(self._memory, stride, n_buffers)
            _name(descriptor, path)
        finally:
            os.close(descriptor)
        self.region = Region(self._memory)

    def close(self) -> None:
        """Let go of the memory, and take the file away. The region must not be used any more."""
        self.path.unlink(missing_ok=True)
        self.region.release()
        self._memory.close()


def _name(descriptor: int, path: Path) -> None:
    """Give a file a name that has none. (Only with a folder does Python follow the link in /proc to the file.)"""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.link(f"/proc/self/fd/{descriptor}", path.name, dst_dir_fd=folder)
    finally:
        os.close(folder)


class ShmFolder:
    """Makes the folder, and regions in it."""

    def __init__(self, root: Path = SHM_ROOT) -> None:
        """ShmUnavailable when ``root`` cannot be used."""
        try:
            reclaim(root)
            self.path, self._lock = _make_folder(root)
        except OSError as refused:
            raise _unavailable(root, refused) from refused

    def make_region(self, name: str, stride: int, n_buffers: int) -> OwnedRegion:
        """An empty region in a file of that name; ShmUnavailable when there is no room."""
        try:
            return OwnedRegion(self.path / name, stride, n_buffers)
        except OSError as refused:
            raise _unavailable(self.path.parent, refused) from refused

    def close(self) -> None:
        """Take the folder away, with whatever is left in it. Once is enough."""
        _remove(self.path)
        with contextlib.suppress(OSError):
            os.close(self._lock)


def reclaim(root: Path) -> list[Path]:
    """Take away what servers of this user have left in ``root`` when they were killed; which folders that were."""
    found = [Path(entry.path) for entry in os.scandir(root) if _is_ours(entry)]
    stale = [path for path in found if _is_stale(path)]
    for path in stale:
        log.info("taking away what a server that was killed left behind: %s", path)
        _remove(path)
    return stale


def _is_ours(entry: "os.DirEntry[str]") -> bool:
    if not (_READY.fullmatch(entry.name) or _UNFINISHED.fullmatch(entry.name)):
        return False
    with contextlib.suppress(OSError):
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.getuid()
    return False


def _is_stale(folder: Path) -> bool:
    """Whether no server holds the lock."""
    try:
        descriptor = os.open(folder / OWNER_FILE, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return _age_s(folder) > _UNFINISHED_S
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return not folder.name.startswith(".") or _age_s(folder) > _UNFINISHED_S


def _age_s(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:  # it has gone meanwhile
        return 0.0


def _make_folder(root: Path) -> tuple[Path, int]:
    """A folder that appears under its name when its lock is held already."""
    token = secrets.token_hex(8)
    unfinished, ready = root / f".urlab-{token}", root / f"urlab-{token}"
    unfinished.mkdir(mode=0o700)
    try:
        lock = os.open(unfinished / OWNER_FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)  # a server that starts may be looking at it just now
        unfinished.rename(ready)
    except OSError:
        _remove(unfinished)
        raise
    return ready, lock


def _remove(folder: Path) -> None:
    """Take a folder away that holds regions and a lock, and no folders."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name == OWNER_FILE or entry.name.endswith(".shm"):
                Path(entry.path).unlink()
        folder.rmdir()


def _unavailable(root: Path, refused: OSError) -> ShmUnavailable:
    if refused.errno in (errno.ENOSPC, errno.EDQUOT):
        return ShmUnavailable(
            f"{root} is full. Make room there (df {root}), or give a container more: docker run --shm-size=1g"
        )
    return ShmUnavailable(f"{root} cannot be used: {refused.strerror or refused}")
