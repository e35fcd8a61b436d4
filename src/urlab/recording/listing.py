"""The recordings that are saved in a folder, told from the beginnings of their files, however large these are."""

import codecs
import itertools
import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from urlab.errors import PathNotReadable
from urlab.paths import READ_OPTION, FileRoots, OutsideRoots, open_to_read, outside_words
from urlab.recording.files import CSV_SUFFIX
from urlab.recording.json_format import CLOSING, RECORDING, opening_of
from urlab.recording.mcap_frames import MCAP, read_about

MAX_LISTED = 1000
_MAX_DEPTH = 8
_MAX_ENTRIES = 100_000
"""Of all kinds: so many names are looked at."""

_HEAD_BYTES = 4096
_BEFORE_TEXT = codecs.BOM_UTF8 + codecs.BOM_UTF16_LE + codecs.BOM_UTF16_BE + b"\0 \t\r\n"
_SUFFIXES = (RECORDING.suffix, CSV_SUFFIX, MCAP.suffix)


class RecordingHeader(msgspec.Struct):
    """What the first line of a file of ours says of it, as far as it does. ``level`` is what it is a recording of."""

    frame_count: Annotated[int, msgspec.Meta(ge=0, lt=2**53)] | None = None
    timestep: float | None = None
    level: Annotated[str, msgspec.Meta(max_length=4096)] | None = None

    @property
    def sim_duration_s(self) -> float | None:
        """One timestep per frame."""
        if self.frame_count is None or self.timestep is None:
            return None
        duration_s = self.frame_count * self.timestep
        return duration_s if math.isfinite(duration_s) else None


_NO_HEADER = RecordingHeader()


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """One file. ``name`` is what loads it: its path below the folder. ``written_s`` is in seconds since 1970.

    ``problem`` says why it cannot be read, where that shows at once; one of another writer tells nothing of its frames.
    """

    name: str
    size_bytes: int
    written_s: float
    format: str
    header: RecordingHeader = _NO_HEADER
    problem: str | None = None


def list_recordings(folder: Path, roots: FileRoots) -> tuple[list[RecordingFile], bool]:
    """The recordings below a folder, the newest first, and whether there are more than are listed.

    Links are passed over, and so is what is hidden. PathNotReadable when the folder may not be read.
    """
    try:
        real = roots.to_read(folder)
    except OutsideRoots as outside:
        raise PathNotReadable(f"cannot read {folder}: {outside_words('read', folder, READ_OPTION)}") from outside
    try:
        seen = list(itertools.islice(_recordings_below(real), _MAX_ENTRIES))
    except FileNotFoundError:
        return [], False
    except OSError as refused:
        raise PathNotReadable(f"cannot read {folder}: {refused.strerror}") from refused
    found = sorted((one for one in seen if one is not None), key=lambda one: (-one.written_s, one.name))
    is_cut = len(seen) == _MAX_ENTRIES or len(found) > MAX_LISTED
    return [_looked_into(real, one) for one in found[:MAX_LISTED]], is_cut


def read_header(path: Path) -> RecordingHeader:
    """What the first line of a file says of it; nothing where it is not one of ours, or cannot be read."""
    try:
        with path.open("rb") as file:
            return _mcap_header(file) if path.suffix.lower() == MCAP.suffix else _header(file)
    except (OSError, ValueError):
        return _NO_HEADER


def _recordings_below(folder: Path) -> Iterator[RecordingFile | None]:
    """Every file below a folder, None for those that are no recordings."""
    for path, folders, names, handle in os.fwalk(folder):
        below = Path(path).relative_to(folder)
        folders[:] = [name for name in folders if not name.startswith(".") and len(below.parts) < _MAX_DEPTH]
        for name in names:
            yield _recording_file(str(below / name), name, handle)


def _recording_file(path: str, name: str, folder: int) -> RecordingFile | None:
    suffix = Path(name).suffix.lower()
    if name.startswith(".") or suffix not in _SUFFIXES or not _is_text(path):
        return None
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISREG(about.st_mode):
        return None
    return RecordingFile(path, about.st_size, about.st_mtime, suffix.removeprefix("."))


def _is_text(path: str) -> bool:
    """Whether a reply can tell it: not every name of a file is text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _looked_into(folder: Path, listed: RecordingFile) -> RecordingFile:
    """The same, with what the beginning and the end of the file tell."""
    try:
        with open_to_read(folder / listed.name) as file:
            if listed.format == MCAP.suffix.removeprefix("."):
                return replace(listed, header=_mcap_header(file))
            if listed.format != RECORDING.suffix.removeprefix("."):
                return listed
            header = _header(file)
            if header is not _NO_HEADER:
                _check_end(file)
            return replace(listed, header=header)
    except OSError as refused:
        return replace(listed, problem=refused.strerror or str(refused))
    except ValueError as wrong:
        return replace(listed, problem=str(wrong))


def _header(file: BinaryIO) -> RecordingHeader:
    """ValueError when this is no recording; nothing is known of those of other writers."""
    first = opening_of(file)
    if first is not None:
        try:
            return msgspec.json.decode(first, type=RecordingHeader)
        except msgspec.DecodeError as wrong:
            raise ValueError(f"its first line is not as we write it: {wrong}") from wrong
    file.seek(0)
    head = file.read(_HEAD_BYTES)
    if not head:
        raise ValueError("the file is empty (half-written?)")
    if not head.lstrip(_BEFORE_TEXT).startswith(b"{"):
        raise ValueError("it is not a recording: no JSON object begins there")
    return _NO_HEADER


def _mcap_header(file: BinaryIO) -> RecordingHeader:
    try:
        return msgspec.convert(read_about(file), RecordingHeader)
    except msgspec.ValidationError as wrong:
        raise ValueError(f"its metadata is not as we write it: {wrong}") from wrong


def _check_end(file: BinaryIO) -> None:
    file.seek(-len(CLOSING), os.SEEK_END)
    if file.read() != CLOSING:
        raise ValueError("it ends in the middle (half-written?)")
