"""Files that appear whole or not at all; among them the ready file, which tells that a server is up."""

import contextlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from urlab.errors import ConfigError, PathNotWritable

_BUFFER_BYTES = 1 << 20


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write into; when the block ends well it takes the place of ``path``, safe on disk.

    Missing parent folders are made. When anything fails, ``path`` is what it was before and nothing is left
    behind; what the operating system refuses becomes PathNotWritable with its reason.
    """
    made: list[Path] = []
    temporary = path.parent / f".{uuid.uuid4().hex}.part"
    try:
        _check_target(path)
        _make_parents(path, made)
        with temporary.open("xb", buffering=_BUFFER_BYTES) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as problem:
        _remove(temporary, made)
        if isinstance(problem, OSError):
            raise not_writable(path, problem.strerror or str(problem)) from problem
        raise
    _sync_folder(path.parent)


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


def _check_target(path: Path) -> None:
    if path.is_dir():
        raise not_writable(path, "it is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise not_writable(path, "it exists and is not a regular file")
    if path.exists() and not os.access(path, os.W_OK):
        raise not_writable(path, "it exists and is read-only")


def _make_parents(path: Path, made: list[Path]) -> None:
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        made.append(folder)


def _remove(temporary: Path, made: list[Path]) -> None:
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        for folder in reversed(made):
            folder.rmdir()


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut; some file systems cannot, and the file is there all the same."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
