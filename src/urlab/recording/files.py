"""Recordings on disk: where one lives that a client names, and reading it in any format."""

import os.path
from collections.abc import Callable
from pathlib import Path

from urlab.errors import BadValue, PathNotReadable, PathNotWritable
from urlab.recording.csv_format import read_csv
from urlab.recording.json_format import read_json
from urlab.recording.recording import Recording

Allow = Callable[[Path], bool]
"""Judges a path with all symlinks resolved: may it be used?"""

DEFAULT_FILE = "recording.json"


def read_recording(path: Path) -> Recording:
    """Read ``path`` as CSV when its suffix says so, else as JSON; PathNotReadable with the reason."""
    return read_csv(path) if path.suffix.lower() == ".csv" else read_json(path)


def save_path(asked: str | None, replay_dir: Path, allow: Allow) -> Path:
    """Where to write: absolute, symlinks resolved, inside what ``allow`` permits; else PathNotWritable.

    An absolute path stays what it is; any other is under ``replay_dir`` and gets ``.json`` when it has no suffix.
    None is ``recording.json``.
    """
    path = _absolute(asked if asked is not None else DEFAULT_FILE, replay_dir)
    if path is None:
        raise PathNotWritable(_escape(asked, replay_dir, "--write-root"), absolute_path=asked)
    if path.suffix.lower() == ".csv":
        raise PathNotWritable(f"cannot write {path}: recordings are saved as .json", absolute_path=str(path))
    if not allow(path):
        raise PathNotWritable(_outside("write", path, "--write-root"), absolute_path=str(path))
    return path


def load_path(asked: str, replay_dir: Path, allow: Allow) -> Path:
    """Where to read, by the rules of ``save_path``; PathNotReadable when it is not allowed."""
    path = _absolute(asked, replay_dir)
    if path is None:
        raise PathNotReadable(_escape(asked, replay_dir, "--model-root"))
    if not allow(path):
        raise PathNotReadable(_outside("read", path, "--model-root"))
    return path


def _absolute(asked: str, replay_dir: Path) -> Path | None:
    """The path with symlinks resolved; None when a relative one leaves ``replay_dir``."""
    path = Path(os.path.normpath(asked))
    if not path.name:
        raise BadValue(f"path is {asked!r}; it must name a file")
    if path.is_absolute():
        return _resolved(Path(asked))
    if path.parts[0] == "..":
        return None
    return _resolved(replay_dir / (path if path.suffix else path.with_name(f"{path.name}.json")))


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (ValueError, OSError, RuntimeError) as problem:
        raise BadValue(f"path {str(path)!r} cannot be used: {problem}") from problem


def _escape(asked: str | None, replay_dir: Path, option: str) -> str:
    return f"path {asked!r} leaves the replay folder {replay_dir}; use an absolute path in a folder of {option}"


def _outside(verb: str, path: Path, option: str) -> str:
    return f"cannot {verb} {path}: it is outside the allowed folders; {option} {path.parent} would allow it"
