"""The files that an import reads: only inside the roots, only regular files, and only so many bytes."""

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from urlab.config import FileRoots
from urlab.errors import ImportFailed
from urlab.importing.limited_process import ProcessLimits

_MISSING = (errno.ENOENT, errno.ENOTDIR)
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""Opening a pipe would wait for its writer, should one have taken the file's place."""


@dataclass(frozen=True, slots=True)
class ImportLimits(ProcessLimits):
    """How much one import may cost: what its child process may take, and how many bytes are read."""

    file_bytes: int = 256 << 20
    total_bytes: int = 1024 << 20


DEFAULT_LIMITS = ImportLimits()


class SourceFiles:
    """Reads the files of one import. ``wanted_by`` in messages is what refers to a file."""

    def __init__(self, roots: FileRoots, limits: ImportLimits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._roots = roots
        self._total_bytes = 0

    def may_read(self, path: str) -> bool:
        """Whether it is inside the roots, links resolved."""
        return "\0" not in path and self._roots.may_read(Path(path))

    def exists(self, path: str, wanted_by: str) -> bool:
        """Whether there is that file; ImportFailed when it may not be read, or is no regular file."""
        if "\0" in path:
            raise ImportFailed(f"{wanted_by} names {path!r}, which has a NUL and is no path")
        if not self.may_read(path):
            raise ImportFailed(
                f"{path}, which {wanted_by} needs, is outside the folders that may be read. "
                f"Start the server with --model-root {Path(path).parent} to allow it"
            )
        try:
            found = Path(path).stat()
        except OSError as refused:
            if refused.errno in _MISSING:
                return False
            raise _unreadable(path, refused) from refused
        if not stat.S_ISREG(found.st_mode):
            kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or device"
            raise ImportFailed(f"{path}, which {wanted_by} needs, is {kind}, not a file")
        self._refuse_large(path, found.st_size)
        return True

    def read(self, path: str, wanted_by: str) -> bytes | None:
        """All of a file, or None when there is none; ImportFailed as `exists`, or when it is too large."""
        if not self.exists(path, wanted_by):
            return None
        try:
            with os.fdopen(os.open(path, _FLAGS), "rb") as file:
                content = file.read(self.limits.file_bytes + 1)
        except OSError as refused:
            raise _unreadable(path, refused) from refused
        self._count(path, len(content))
        return content

    def _refuse_large(self, path: str, length_bytes: int) -> None:
        if length_bytes > self.limits.file_bytes:
            raise ImportFailed(f"{path} has more than the {_size(self.limits.file_bytes)} that one file may have")

    def _count(self, path: str, length_bytes: int) -> None:
        self._refuse_large(path, length_bytes)
        self._total_bytes += length_bytes
        if self._total_bytes > self.limits.total_bytes:
            raise ImportFailed(f"with {path} the model has more than {_size(self.limits.total_bytes)} of files in all")


def _unreadable(path: str, refused: OSError) -> ImportFailed:
    return ImportFailed(f"cannot read {path}: {refused.strerror or refused}")


def _size(count_bytes: int) -> str:
    return f"{count_bytes / (1 << 20):g} MiB"
