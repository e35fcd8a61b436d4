"""Files that appear whole or not at all; among them the ready file, which tells that a server is up.

What a killed process leaves behind (`.part` files, folders of temporary work) has that process in its name; `sweep`
removes it once the process is gone.
"""

import contextlib
import fcntl
import json
import logging
import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from urlab.errors import ConfigError, PathNotWritable
from urlab.paths import FileKind, open_folder, why_not_replaced

_log = logging.getLogger("urlab.files")

_BUFFER_BYTES = 1 << 20
_FOLDER_FLAGS = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o666
PART_SUFFIX = ".part"
_OWNER = re.compile(r"urlab-(?P<pid>\d+)-(?P<start>\d+)-")
_START_COLUMN = 19
"""Of /proc/<pid>/stat, counted from behind the command's name: when the process began, in ticks since the boot."""


@contextlib.contextmanager
def replacing(path: Path, kind: FileKind | None = None) -> Iterator[BinaryIO]:
    """A file to write into; when the block ends well it takes the place of ``path``, safe on disk.

    Missing parent folders are made. When anything fails, ``path`` is what it was before and nothing is left
    behind; what the operating system refuses becomes PathNotWritable with its reason.

    With a ``kind`` the path was named by a client: it is absolute, no part of it may be a link, and only a file of
    that kind is replaced.
    """
    made: list[Path] = []
    with _refusals(path), contextlib.ExitStack() as cleanup:
        cleanup.callback(_remove_folders, made)
        folder = _open_parent(path, made) if kind is None else open_folder(path.parent, made=made)
        cleanup.callback(os.close, folder)
        if kind is not None:
            _refuse_foreign(path, folder, kind)
        temporary = part_name()
        cleanup.callback(_unlink, temporary, folder)
        with os.fdopen(os.open(temporary, _OPEN_FLAGS, _MODE, dir_fd=folder), "wb", _BUFFER_BYTES) as file:
            with contextlib.suppress(OSError):  # not every file system has locks
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if kind is None or not _placed_as_new(temporary, path.name, folder):
                if kind is not None:
                    _refuse_foreign(path, folder, kind)
                os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        made.clear()
        _sync_folder(folder)


def check_replaceable(path: Path, kind: FileKind) -> None:
    """PathNotWritable when something has that path, or a folder on the way, that `replacing` would leave alone."""
    with _refusals(path):
        try:
            folder = open_folder(path.parent)
        except FileNotFoundError:
            return
        try:
            _refuse_foreign(path, folder, kind)
        finally:
            os.close(folder)


def not_writable(path: Path, reason: str) -> PathNotWritable:
    """The error for ``path`` and its reason."""
    return PathNotWritable(f"cannot write {path}: {reason}", absolute_path=str(path))


def write_ready_file(path: Path | None, content: Mapping[str, object]) -> None:
    """Write ``content`` as one JSON object to the file that ``--ready-file`` names; None = the option was not given."""
    if path is None:
        return
    try:
        with replacing(path) as file:
            file.write(json.dumps(content).encode())
    except PathNotWritable as refused:
        raise ConfigError(f"--ready-file: {refused.message}") from refused


def remove_ready_file(path: Path | None) -> None:
    """Remove the ready file: this server's, or one that a killed server left behind."""
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


# -- what killed processes leave behind ---------------------------------------------------------------------------


def part_name() -> str:
    """A hidden name for what is not whole yet, with the process that makes it."""
    return f".{owned_name()}{uuid.uuid4().hex}{PART_SUFFIX}"


def owned_name() -> str:
    """How a name begins that `sweep` knows: with this process."""
    return f"urlab-{os.getpid()}-{_start_of(os.getpid()) or 0}-"


def sweep(folders: Iterable[Path], pattern: str = f".urlab-*{PART_SUFFIX}") -> int:
    """Remove what processes that are gone have left in these folders; how many files and folders.

    Only what has the name of such work, belongs to this user, and is not locked by a process that still writes it.
    """
    found = [one for folder in folders for one in _entries(folder, pattern) if _is_left_over(one)]
    gone = [one for one in found if _removed(one)]
    if gone:
        _log.info("removed %d left-overs of processes that were killed, in %s", len(gone), gone[0].parent)
    return len(gone)


def _entries(folder: Path, pattern: str) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.glob(pattern))
    return []


def _is_left_over(path: Path) -> bool:
    owner = _OWNER.match(path.name.removeprefix("."))
    if owner is None:
        return False
    try:
        is_own = path.lstat().st_uid == os.geteuid()
    except OSError:
        return False
    return is_own and not path.is_symlink() and not _runs(int(owner["pid"]), int(owner["start"])) and not _locked(path)


def _runs(pid: int, start: int) -> bool:
    if start:
        return _start_of(pid) == start
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start_of(pid: int) -> int | None:
    """When a process began, in a unit of the system; None when there is no such process, or it cannot be told."""
    if sys.platform != "linux":
        return None
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[_START_COLUMN])


def _locked(path: Path) -> bool:
    """Whether a process writes it still, as one of another container may whose number means nothing here."""
    if path.is_dir():
        return False
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _removed(path: Path) -> bool:
    try:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as refused:
        _log.warning("%s is left over and cannot be removed: %s", path, refused.strerror)
        return False
    return True


# -- inside -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise not_writable(path, problem.strerror or str(problem)) from problem


def _open_parent(path: Path, made: list[Path]) -> int:
    """The folder of a path that this user named: links are followed, and missing folders made."""
    if path.is_dir():
        raise not_writable(path, "it is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise not_writable(path, "it exists and is not a regular file")
    if path.exists() and not os.access(path, os.W_OK):
        raise not_writable(path, "it exists and is read-only")
    for folder in reversed([one for one in path.parents if not one.exists()]):
        folder.mkdir(exist_ok=True)
        made.append(folder)
    return os.open(path.parent, _FOLDER_FLAGS)


def _refuse_foreign(path: Path, folder: int, kind: FileKind) -> None:
    reason = why_not_replaced(path.name, folder, kind)
    if reason:
        raise not_writable(path, reason)


def _placed_as_new(temporary: str, name: str, folder: int) -> bool:
    """Give a file its name unless there is one of that name; False then, and where the file system cannot do it."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _remove_folders(made: list[Path]) -> None:
    with contextlib.suppress(OSError):
        for folder in reversed(made):
            folder.rmdir()


def _unlink(name: str, folder: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _sync_folder(folder: int) -> None:
    """Make the new name last through a power cut; some file systems cannot, and the file is there all the same."""
    with contextlib.suppress(OSError):
        handle = os.open(".", os.O_RDONLY, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
