"""The folder of one server's regions: private, on tmpfs, and gone when the server is.

A server that is killed cannot clean up after itself. So it holds a lock on a file in its folder, which the system lets
go of when the process ends, however it ends. A server that starts takes away the folders of its user whose lock is
free, and nothing else. No clock has a say in that: while a folder is being made, its maker holds a lock on the root.
"""

import contextlib
import errno
import fcntl
import logging
import os
import re
import resource
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from urlab.transport.shm.readers import Readers
from urlab.transport.shm.sealed import OwnedRegion
from urlab_wire.shm import OWNER_FILE, region_bytes

log = logging.getLogger("urlab.transport")

SHM_ROOT = Path("/dev/shm")
OWN_DESCRIPTORS = Path("/proc/self/fd")
_READY = re.compile(r"urlab-[0-9a-f]{16}")
_UNFINISHED = re.compile(r"\.urlab-[0-9a-f]{16}")
_MOST_REGIONS = 1024
_DESCRIPTORS_SHARE = 4
"""No more than one in so many of the descriptors that this process may have is spent on regions."""

_ROOT_LOCK_S = 0.3


class ShmUnavailable(Exception):
    """There is no shared memory to be had; the message says why and what to do."""


class ShmFolder:
    """Makes the folder, and regions in it.

    The memory of regions is not that of the root's file system; still they take no more than is free there, for that
    is how much shared memory the machine, or a container, is meant to use.
    """

    def __init__(self, root: Path = SHM_ROOT) -> None:
        """ShmUnavailable when ``root`` cannot be used."""
        self._sizes: dict[Path, int] = {}
        if not OWN_DESCRIPTORS.is_dir():
            raise ShmUnavailable(f"it needs {OWN_DESCRIPTORS}: is /proc not mounted?")
        try:
            reclaim(root)
            self.path, self._lock = _make_folder(root)
        except OSError as refused:
            raise _unavailable(root, refused) from refused

    def make_region(
        self, name: str, stride: int, n_buffers: int, *, peers_write: bool = False, readers: Readers | None = None
    ) -> OwnedRegion:
        """An empty region in a file of that name; ShmUnavailable when there is no room.

        ``readers`` counts the clients that open it.
        """
        path, size = self.path / name, region_bytes(stride, n_buffers)
        on_made = None if readers is None else lambda descriptor: readers.watch(name, descriptor)
        try:
            self._check_room(path, size)
            region = OwnedRegion(path, stride, n_buffers, peers_write=peers_write, on_made=on_made)
        except OSError as refused:
            raise _unavailable(self.path.parent, refused) from refused
        self._sizes[path] = size
        return region

    def close(self) -> None:
        """Take the folder away, with whatever is left in it. Once is enough."""
        _remove(self.path)
        with contextlib.suppress(OSError):
            os.close(self._lock)

    def _check_room(self, path: Path, size: int) -> None:
        """OSError unless there is room for one more region."""
        self._sizes = {one: taken for one, taken in self._sizes.items() if one != path and os.path.lexists(one)}
        if len(self._sizes) >= _most_regions():
            raise OSError(errno.EMFILE, f"a server makes at most {_most_regions()} regions")
        root = os.statvfs(self.path)
        if root.f_blocks and sum(self._sizes.values()) + size > root.f_bavail * root.f_frsize:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _most_regions() -> int:
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_REGIONS if allowed == resource.RLIM_INFINITY else min(_MOST_REGIONS, allowed // _DESCRIPTORS_SHARE)


def reclaim(root: Path) -> list[Path]:
    """Take away what servers of this user have left in ``root`` when they were killed; which folders that were."""
    with _root_lock(root, fcntl.LOCK_EX, patience_s=0.0) as none_is_made:
        found = [Path(entry.path) for entry in os.scandir(root) if _is_ours(entry)]
        stale = [path for path in found if _is_stale(path, none_is_made)]
        for path in stale:
            log.info("taking away what a server that was killed left behind: %s", path)
            _remove(path)
    return stale


def _is_ours(entry: "os.DirEntry[str]") -> bool:
    if not (_READY.fullmatch(entry.name) or _UNFINISHED.fullmatch(entry.name)):
        return False
    with contextlib.suppress(OSError):
        return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    return False


def _is_stale(folder: Path, none_is_made: bool) -> bool:
    """Whether no server holds the lock, and none is about to take it."""
    if folder.name.startswith(".") and not none_is_made:
        return False
    try:
        descriptor = os.open(folder / OWNER_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return True  # a folder has its name only when it has its lock
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _make_folder(root: Path) -> tuple[Path, int]:
    """A folder that appears under its name when its lock is held already."""
    token = secrets.token_hex(8)
    unfinished, ready = root / f".urlab-{token}", root / f"urlab-{token}"
    with _root_lock(root, fcntl.LOCK_SH, patience_s=_ROOT_LOCK_S):
        unfinished.mkdir(mode=0o700)
        try:
            lock = os.open(unfinished / OWNER_FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)  # a server that starts may be looking at it just now
            unfinished.rename(ready)
        except OSError:
            _remove(unfinished)
            raise
    return ready, lock


@contextlib.contextmanager
def _root_lock(root: Path, kind: int, patience_s: float) -> Iterator[bool]:
    """Hold a lock on the root itself; False if it cannot be had in time, as any user of the machine may hold it."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield _try_lock(descriptor, kind, patience_s)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, kind: int, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.002)
        else:
            return True


def _remove(folder: Path) -> None:
    """Take a folder away that holds regions and a lock, and no folders. Links in it are removed, never followed."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            with os.scandir(descriptor) as entries:
                names = [entry.name for entry in entries]
            for name in names:
                if name == OWNER_FILE or name.endswith(".shm"):
                    os.unlink(name, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        folder.rmdir()


def _unavailable(root: Path, refused: OSError) -> ShmUnavailable:
    if refused.errno in (errno.ENOSPC, errno.EDQUOT):
        return ShmUnavailable(
            f"{root} is full. Make room there (df {root}), or give a container more: docker run --shm-size=1g"
        )
    if refused.errno == errno.ENOMEM:
        return ShmUnavailable("there is not enough memory for it")
    if refused.errno in (errno.EMFILE, errno.ENFILE):
        return ShmUnavailable(f"too many descriptors or regions are open ({refused.strerror}): see ulimit -n")
    return ShmUnavailable(f"{root} cannot be used: {refused.strerror or refused}")
