"""A zip file that a client sent. All of it is judged before anything is written: names, links, how much it becomes."""

import io
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from urlab.errors import UploadFailed
from urlab.importing.sources import DEFAULT_LIMITS
from urlab.paths import shortened
from urlab.scene.names import file_name_problem

_CHUNK_BYTES = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1
_RESOURCES = "__MACOSX"
"""The folder that macOS adds, with what other systems have no use for."""

_END = struct.Struct("<4s4H2LH")
_END_MARK, _END_64_MARK = b"PK\5\6", b"PK\6\7"
_LOCATOR_64_BYTES = 20
_LONGEST_COMMENT = (1 << 16) - 1
_BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, OverflowError, RuntimeError,
)  # fmt: skip
"""What Python's reader raises about a file that is none, or not a whole one."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """What a zip file may hold, and what it may become: at most ``ratio`` times its own size, above ``small_bytes``."""

    files: int = 4096
    depth: int = 32
    directory_bytes: int = 2 << 20
    file_bytes: int = DEFAULT_LIMITS.file_bytes
    total_bytes: int = DEFAULT_LIMITS.total_bytes
    ratio: int = 200
    small_bytes: int = 16 << 20


DEFAULT_ARCHIVE_LIMITS = ArchiveLimits()


class Archive:
    """The files of a zip file, by their paths in it. Hidden files are left out.

    UploadFailed when it is none, or anything about it will not do; ``name`` is what messages call it.
    """

    def __init__(self, name: str, data: bytes, limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS) -> None:
        self._name = name
        self._limits = limits
        _refuse_large_directory(name, data, limits)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _BROKEN as broken:
            raise UploadFailed(f"{name} is no zip file that can be read: {broken}") from broken
        self._files = self._judged_files()
        self._refuse_bomb(len(data))

    @property
    def paths(self) -> list[str]:
        """Of all files that it holds, with single slashes."""
        return sorted(self._files)

    def unpack(self, folder: Path) -> None:
        """Write all files into a folder of their own; UploadFailed when one is damaged."""
        for path, info in self._files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                try:
                    with self._zip.open(info) as source:
                        while chunk := source.read(_CHUNK_BYTES):
                            file.write(chunk)
                except _BROKEN as broken:
                    raise self._refusal(path, f"is damaged: {broken}") from broken

    def _judged_files(self) -> dict[str, zipfile.ZipInfo]:
        entries = self._zip.infolist()
        if len(entries) > self._limits.files:
            raise UploadFailed(f"{self._name} holds {len(entries)} files; an upload has at most {self._limits.files}")
        files: dict[str, zipfile.ZipInfo] = {}
        for info in entries:
            path = self._judged_path(info)
            if path is None or info.is_dir():
                continue
            self._refuse_odd(path, info)
            if path in files:
                raise self._refusal(path, "is there twice")
            files[path] = info
        for path in files:
            if any(str(parent) in files for parent in PurePosixPath(path).parents):
                raise self._refusal(path, "is in a folder that is a file as well")
        return files

    def _judged_path(self, info: zipfile.ZipInfo) -> str | None:
        """Where a file shall be; None when it is left out."""
        asked = info.orig_filename
        parts = [part for part in asked.removesuffix("/").split("/") if part != "."]
        if asked.startswith("/") or ".." in parts or not parts:
            raise self._refusal(asked, "leads out of the upload")
        if len(parts) > self._limits.depth:
            raise self._refusal(asked, f"is deeper than {self._limits.depth} folders")
        if parts[0] == _RESOURCES or any(part.startswith(".") for part in parts):
            return None
        for part in parts:
            problem = file_name_problem(part)
            if problem is not None:
                raise self._refusal(asked, f"is no name for a file here: {problem}")
        return "/".join(parts)

    def _refuse_odd(self, path: str, info: zipfile.ZipInfo) -> None:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise self._refusal(path, "is a link" if kind == stat.S_IFLNK else "is no regular file")
        if info.flag_bits & _ENCRYPTED:
            raise self._refusal(path, "is encrypted")
        if info.compress_type not in _METHODS:
            raise self._refusal(path, "is packed in a way that is not known here; deflate is")
        if info.file_size > self._limits.file_bytes:
            most = _size(self._limits.file_bytes)
            raise self._refusal(path, f"has {_size(info.file_size)}; a file has at most {most}")

    def _refuse_bomb(self, packed_bytes: int) -> None:
        total_bytes = sum(info.file_size for info in self._files.values())
        if total_bytes > self._limits.total_bytes:
            raise UploadFailed(
                f"{self._name} holds {_size(total_bytes)}; unpacked, an upload has at most "
                f"{_size(self._limits.total_bytes)}"
            )
        if total_bytes > max(self._limits.small_bytes, self._limits.ratio * packed_bytes):
            raise UploadFailed(
                f"{self._name} would become {_size(total_bytes)}, more than {self._limits.ratio} times its own size"
            )

    def _refusal(self, path: str, reason: str) -> UploadFailed:
        return UploadFailed(f"{self._name}: {shortened(path)!r} {reason}; nothing of it was kept")


def _refuse_large_directory(name: str, data: bytes, limits: ArchiveLimits) -> None:
    """The list of files is read at once, and takes many times its size: it is told at the file's end how long it is."""
    start = len(data) - _END.size
    if start < 0 or data[start : start + 4] != _END_MARK or data[-2:] != b"\0\0":
        start = data.rfind(_END_MARK, max(0, start - _LONGEST_COMMENT))
    if start < 0 or start + _END.size > len(data):
        raise UploadFailed(f"{name} is no zip file, or not a whole one")
    directory_bytes = _END.unpack_from(data, start)[5]
    at_64 = start - _LOCATOR_64_BYTES
    if directory_bytes > limits.directory_bytes or (at_64 >= 0 and data[at_64 : at_64 + 4] == _END_64_MARK):
        raise UploadFailed(f"{name} is a zip file of more than {limits.files} files, or of several GiB")


def _size(count_bytes: int) -> str:
    return f"{count_bytes / (1 << 20):.4g} MiB"
