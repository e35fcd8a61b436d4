"""Paths that requests name: what such a text means, and opening the file behind it within the allowed folders.

`read_path` is the one function that says what a text means. `FileRoots` judges it. `open_to_read` and `open_folder`
then walk from the root of the file system without following any link, so that a link which appears after the judgement
leads nowhere.
"""

import errno
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAX_PATH_BYTES = 4095
"""What Linux takes."""

READ_OPTION, WRITE_OPTION = "--model-root", "--write-root"

_GAME = "Game"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_FOLDER_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""Without O_NONBLOCK, opening a pipe would wait for its writer, should one have taken the file's place."""

_HEAD_BYTES = 4096
_SHOWN_LENGTH = 200
_LINK_ERRORS = (errno.ELOOP, errno.EMLINK)


class BadPath(ValueError):
    """A text that is no path which a request may name; the message says why, and can follow the text itself."""


class OutsideRoots(Exception):
    """A path that leads out of the allowed folders. Nothing behind it was looked at."""


@dataclass(frozen=True, slots=True)
class AskedPath:
    """What a request's text means: exactly one of the three is set.

    ``virtual`` are the names of the protocol's own path (``/Game/Levels/X``: "Levels" and "X"); ``file`` is absolute,
    as it was written; ``relative`` is neither, as a bare name, with single slashes and ``..`` only at its beginning.
    """

    virtual: tuple[str, ...] = ()
    file: Path | None = None
    relative: str = ""


def read_path(text: str) -> AskedPath:
    """What a text means as a path; BadPath when it is none.

    Whatever begins with ``/Game`` is the protocol's: only plain names follow, so nothing behind it is absolute.
    """
    _refuse_odd(text)
    names = [name for name in text.split("/") if name not in ("", ".")]
    if not names:
        raise BadPath("it names no file")
    if text.startswith("/") and names[0] == _GAME:
        if len(names) == 1 or ".." in names or "\\" in text:
            raise BadPath(f"behind /{_GAME}/ there are names, and nothing else")
        return AskedPath(virtual=tuple(names[1:]))
    if text.startswith("/"):
        return AskedPath(file=Path("/" + text.lstrip("/")))
    return AskedPath(relative=os.path.normpath(text))


def _refuse_odd(text: str) -> None:
    if "\0" in text:
        raise BadPath("it has a NUL")
    try:
        length_bytes = len(text.encode())
    except UnicodeEncodeError as odd:
        raise BadPath("it is not text in UTF-8") from odd
    if length_bytes > MAX_PATH_BYTES:
        raise BadPath(f"it has {length_bytes} bytes; a path has at most {MAX_PATH_BYTES}")
    if _SCHEME.match(text) or text.startswith("\\"):
        raise BadPath("it is a URL or a path of another system; name a file of the server's machine")
    if text == "~" or text.startswith("~/"):
        raise BadPath("~ stands for no folder here; give the whole path")


def shortened(text: str) -> str:
    """A text for a message."""
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}..."


def outside_words(done: str, path: Path, option: str) -> str:
    """Why a path may not be read or written ("written"); the same whether or not there is anything."""
    return f"it is outside the folders that may be {done} here; {option} {path.parent} would allow it"


# -- the allowed folders ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file that requests have written: ``name`` in messages, its suffix, and how one of ours begins."""

    name: str
    suffix: str
    is_ours: Callable[[bytes], bool]
    """Judges the first 4096 bytes of a file that exists: only one of ours may be replaced."""


@dataclass(frozen=True, slots=True)
class FileRoots:
    """The folders that file ops may read from and write to: absolute, links resolved.

    ``own_rights``: the requests come from this very process, whose user may read and write elsewhere without us.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    own_rights: bool = False

    def to_read(self, path: Path) -> Path:
        """An absolute path with all links resolved, inside the folders that may be read; else OutsideRoots."""
        real = Path(os.path.realpath(path))
        if self.own_rights or any(real.is_relative_to(root) for root in self.read):
            return real
        raise OutsideRoots

    def to_write(self, path: Path) -> Path:
        """Where to write a file that an absolute path names; OutsideRoots when it is outside the folders for that.

        Links above an allowed folder are resolved. Those below it are not, so that writing refuses them. BadPath when a
        name below it is hidden.
        """
        path = Path(os.path.normpath(path))
        if self.own_rights:
            return Path(os.path.realpath(path.parent)) / path.name
        path = self._below_a_root(path)
        root = max((one for one in self.write if path.is_relative_to(one)), key=lambda one: len(one.parts))
        if any(name.startswith(".") for name in path.relative_to(root).parts):
            raise BadPath("hidden files and folders are not written")
        return path

    def _below_a_root(self, path: Path) -> Path:
        """The same path, spelled from a folder that may be written."""
        if any(path.is_relative_to(root) for root in self.write):
            return path
        for folder in reversed(path.parents):
            real = Path(os.path.realpath(folder))
            if real in self.write:
                return real / path.relative_to(folder)
        raise OutsideRoots


# -- opening ------------------------------------------------------------------------------------------------------


def open_folder(folder: Path, *, made: list[Path] | None = None) -> int:
    """A descriptor of an absolute folder, no part of which is a link; OSError if it cannot be had.

    With ``made``, missing folders are created, and added to it.
    """
    reached, handle = Path(folder.anchor), os.open(folder.anchor, _FOLDER_FLAGS)
    try:
        for name in folder.parts[1:]:
            reached /= name
            if made is not None:
                _make(name, handle, reached, made)
            inner = _open_inner(name, handle)
            os.close(handle)
            handle = inner
    except BaseException:
        os.close(handle)
        raise
    return handle


def open_to_read(real: Path) -> BinaryIO:
    """The regular file of an absolute path, no part of which is a link, to be read; OSError if it cannot be had.

    BadPath when it is no regular file.
    """
    folder = open_folder(real.parent)
    try:
        return _open_regular(real.name, folder)
    finally:
        os.close(folder)


def _open_regular(name: str, folder: int) -> BinaryIO:
    handle = os.open(name, _FILE_FLAGS, dir_fd=folder)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise BadPath(f"it is {'a folder' if stat.S_ISDIR(mode) else 'a pipe or device'}, not a file")
    return os.fdopen(handle, "rb")


def why_not_replaced(name: str, folder: int, kind: FileKind) -> str:
    """Why what has that name in an open folder may not be replaced; nothing when it may, or there is none."""
    try:
        with _open_regular(name, folder) as file:
            is_ours = kind.is_ours(file.read(_HEAD_BYTES))
    except FileNotFoundError:
        return ""
    except BadPath as odd:
        return str(odd)
    except OSError as refused:
        is_link = refused.errno in _LINK_ERRORS
        return "it is a link, and links are not followed" if is_link else f"it exists: {refused.strerror}"
    if not is_ours:
        return f"it exists and is not {kind.name}, so it is kept"
    return "" if os.access(name, os.W_OK, dir_fd=folder) else "it exists and is read-only"


def _open_inner(name: str, parent: int) -> int:
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, f"{name!r} on the way is a link, and links are not followed") from None
        raise


def _make(name: str, parent: int, path: Path, made: list[Path]) -> None:
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:
        return
    made.append(path)
