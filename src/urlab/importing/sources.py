"""The files that an import reads: only inside the roots, only regular files, and only so many bytes."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from urlab.errors import ImportFailed
from urlab.importing.limited_process import ProcessLimits
from urlab.paths import READ_OPTION, BadPath, FileRoots, OutsideRoots, open_to_read

_MISSING = (errno.ENOENT, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class ImportLimits(ProcessLimits):
    """How much one import may cost: what its child process may take, and how many bytes are read.

    ``text_bytes`` are those of XML. Beyond ``text_bytes_here`` it is read in a child process.
    """

    file_bytes: int = 256 << 20
    total_bytes: int = 1024 << 20
    text_bytes: int = 64 << 20
    text_bytes_here: int = 512 << 10


DEFAULT_LIMITS = ImportLimits()


class TooMuchText(Exception):
    """There is more XML than this process may read."""


class SourceFiles:
    """Reads the files of one import. ``wanted_by`` in messages is what refers to a file.

    Every file is judged, then opened without following links: one that appears in between leads nowhere.
    """

    def __init__(self, roots: FileRoots, limits: ImportLimits = DEFAULT_LIMITS, *, is_child: bool = False) -> None:
        self.limits = limits
        self.roots = roots
        self._is_child = is_child
        self._total_bytes = 0
        self._text_bytes = 0

    def may_read(self, path: str) -> bool:
        """Whether it is inside the roots, links resolved."""
        return self._real(path) is not None

    def exists(self, path: str, wanted_by: str) -> bool:
        """Whether there is that file; ImportFailed when it may not be read, or is no regular file."""
        file = self._open(path, wanted_by)
        if file is None:
            return False
        with file:
            self._refuse_large(path, os.fstat(file.fileno()).st_size)
        return True

    def read(self, path: str, wanted_by: str, *, is_text: bool = False) -> bytes | None:
        """All of a file, or None when there is none; ImportFailed as `exists`, or when it is too large.

        TooMuchText when there is more XML than this process may read.
        """
        file = self._open(path, wanted_by)
        if file is None:
            return None
        with file:
            length_bytes = os.fstat(file.fileno()).st_size
            self._refuse_large(path, length_bytes)
            if is_text:
                self.take_text(path, length_bytes)
            try:
                content = file.read(min(length_bytes, self.limits.file_bytes) + 1)  # it takes that memory at once
            except OSError as refused:
                raise _unreadable(path, refused) from refused
        self._refuse_large(path, len(content))
        self._total_bytes += len(content)
        if self._total_bytes > self.limits.total_bytes:
            raise ImportFailed(f"with {path} the model has more than {_size(self.limits.total_bytes)} of files in all")
        return content

    def take_text(self, path: str, length_bytes: int) -> None:
        """Count so many bytes as XML of this import."""
        self._text_bytes += length_bytes
        if self._text_bytes > self.limits.text_bytes:
            raise ImportFailed(f"with {path} the model has more than {_size(self.limits.text_bytes)} of XML in all")
        if self._text_bytes > self.limits.text_bytes_here and not self._is_child:
            raise TooMuchText

    def _open(self, path: str, wanted_by: str) -> BinaryIO | None:
        if "\0" in path:
            raise ImportFailed(f"{wanted_by} names {path!r}, which has a NUL and is no path")
        real = self._real(path)
        if real is None:
            raise ImportFailed(
                f"{path}, which {wanted_by} needs, is outside the folders that may be read. "
                f"Start the server with {READ_OPTION} {Path(path).parent} to allow it"
            )
        try:
            return open_to_read(real)
        except OSError as refused:
            if refused.errno in _MISSING:
                return None
            raise _unreadable(path, refused) from refused
        except BadPath as odd:
            raise ImportFailed(f"{path}, which {wanted_by} needs, cannot be read: {odd}") from odd

    def _real(self, path: str) -> Path | None:
        try:
            return self.roots.to_read(Path(path))
        except (OutsideRoots, ValueError):
            return None

    def _refuse_large(self, path: str, length_bytes: int) -> None:
        if length_bytes > self.limits.file_bytes:
            raise ImportFailed(f"{path} has more than the {_size(self.limits.file_bytes)} that one file may have")


def _unreadable(path: str, refused: OSError) -> ImportFailed:
    return ImportFailed(f"cannot read {path}: {refused.strerror or refused}")


def _size(count_bytes: int) -> str:
    return f"{count_bytes / (1 << 20):g} MiB"
