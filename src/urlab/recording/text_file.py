"""The bytes of a file that a client asks to replay, checked before any of it is parsed."""

import codecs
import stat
from pathlib import Path

from urlab.errors import PathNotReadable

MAX_FILE_BYTES = 2 << 30

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_utf8(path: Path) -> bytes:
    """The file as UTF-8 without a byte order mark; UTF-16 is recognised by its mark and converted."""
    data = _read(path)
    try:
        if data.startswith(_UTF16_MARKS):
            return data.decode("utf-16").encode()
        data = data.removeprefix(codecs.BOM_UTF8)
        data.decode()
    except UnicodeError as problem:
        raise not_readable(path, f"it is not text in UTF-8 or UTF-16 ({problem})") from problem
    return data


def not_readable(path: Path, reason: str) -> PathNotReadable:
    """The error for ``path`` and its reason."""
    return PathNotReadable(f"cannot read {path}: {reason}")


def _read(path: Path) -> bytes:
    try:
        _check(path)
        data = path.read_bytes()
    except OSError as problem:
        raise not_readable(path, problem.strerror or str(problem)) from problem
    if not data:
        raise not_readable(path, "the file is empty (half-written?)")
    return data


def _check(path: Path) -> None:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise not_readable(path, "it is a folder; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise not_readable(path, "it is not a regular file")
    if status.st_size > MAX_FILE_BYTES:
        raise not_readable(path, f"it is too large: {status.st_size} bytes, the limit is {MAX_FILE_BYTES}")
