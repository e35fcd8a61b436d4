"""Recordings on disk: where one lives that a client names, and reading it, as JSON, CSV or MCAP."""

import codecs
import csv
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from urlab.errors import BadValue, ChildFailed, PathNotReadable, PathNotWritable
from urlab.files import not_writable
from urlab.importing.limited_process import LimitedProcess, ProcessLimits, python_module
from urlab.paths import (
    READ_OPTION,
    WRITE_OPTION,
    BadPath,
    FileKind,
    FileRoots,
    OutsideRoots,
    open_to_read,
    outside_words,
    read_path,
    shortened,
)
from urlab.recording.json_format import RECORDING, parse_json, parse_lines
from urlab.recording.mcap_frames import MCAP, read_mcap
from urlab.recording.recording import QVEL_DIM_OF_QPOS_DIM, FloatArray, RecordedJoint, RecordedSignals, Recording

DEFAULT_FILE = "recording.json"


CSV_SUFFIX = ".csv"
MAX_FILE_BYTES = 2 << 30
MAX_HEADER_BYTES = 64 << 20
_HEAD_BYTES = 4096
_SMALL_BYTES = 1 << 20
"""So much text of another writer is read in this process; it may take a hundred times the memory."""

_CHILD_LIMITS = ProcessLimits(written_bytes=MAX_FILE_BYTES)
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TIME_COLUMNS = ("time", "timestamp")
_CAMERA_COLUMNS = {"cam_x", "cam_y", "cam_z", "cam_pitch", "cam_yaw", "cam_roll"}
_ROW_PERIOD_S = 0.002
_INDEXED = re.compile(r"(?P<name>.+)\[(?P<index>\d+)\]")


def save_path(asked: str | None, replay_dir: Path, roots: FileRoots, kind: FileKind = RECORDING) -> Path:
    """Where to write: absolute, inside the folders for that; else PathNotWritable.

    An absolute path stays what it is; any other is under ``replay_dir`` and gets the kind's suffix when it has none.
    None is ``recording.json``. Whether something is there that must stay is seen when it is written.
    """
    path = _absolute(asked if asked is not None else DEFAULT_FILE, replay_dir, kind.suffix)
    if path is None:
        raise PathNotWritable(_escape(asked, replay_dir, WRITE_OPTION), absolute_path=asked)
    path = Path(os.path.normpath(path))
    if path.suffix.lower() != kind.suffix:
        raise not_writable(path, f"{kind.name} ends in {kind.suffix}" if kind.suffix else f"{kind.name} has no suffix")
    try:
        return roots.to_write(path)
    except OutsideRoots as outside:
        raise not_writable(path, outside_words("written", path, WRITE_OPTION)) from outside
    except BadPath as bad:
        raise not_writable(path, str(bad)) from bad


def load_path(asked: str, replay_dir: Path, roots: FileRoots) -> Path:
    """Where to read, by the rules of ``save_path``; links are resolved. PathNotReadable when it is not allowed."""
    path = _absolute(asked, replay_dir)
    if path is None:
        raise PathNotReadable(_escape(asked, replay_dir, READ_OPTION))
    try:
        return roots.to_read(path)
    except OutsideRoots as outside:
        raise _not_readable(path, outside_words("read", path, READ_OPTION)) from outside


def _absolute(asked: str, replay_dir: Path, suffix: str = RECORDING.suffix) -> Path | None:
    """The path that is meant; None when a relative one leaves ``replay_dir``."""
    try:
        path = read_path(asked)
    except BadPath as bad:
        raise BadValue(f"path {shortened(asked)!r} cannot be used: {bad}") from bad
    if path.virtual:
        raise BadValue(f"path {shortened(asked)!r} cannot be used: recordings are files, with paths of their own")
    if path.file is not None:
        return path.file
    name = Path(path.relative)
    if name.parts[0] == "..":
        return None
    return replay_dir / (name if name.suffix else name.with_name(f"{name.name}{suffix}"))


def _escape(asked: str | None, replay_dir: Path, option: str) -> str:
    return f"path {asked!r} leaves the replay folder {replay_dir}; use an absolute path in a folder of {option}"


# -- reading ------------------------------------------------------------------------------------------------------


def read_recording(path: Path) -> Recording:
    """The recording in ``path``, named after the file: CSV or MCAP when its suffix says so, else JSON.

    The path is absolute and has no links, as `load_path` gives it. Our own files are read frame by frame; large ones of
    other writers in a child process with limits on memory and time. PathNotReadable tells what is wrong and where.
    """
    try:
        with open_to_read(path) as file:
            return _read(path, file)
    except OSError as problem:
        raise _not_readable(path, problem.strerror or str(problem)) from problem
    except UnicodeError as problem:
        raise _not_readable(path, f"it is not text in UTF-8 or UTF-16 ({problem})") from problem
    except RecursionError as problem:
        raise _not_readable(path, "its JSON is nested too deeply") from problem
    except MemoryError as problem:
        raise _not_readable(path, "it does not fit into memory") from problem
    except (ValueError, csv.Error, ChildFailed) as problem:
        raise _not_readable(path, str(problem)) from problem


def _not_readable(path: Path, reason: str) -> PathNotReadable:
    return PathNotReadable(f"cannot read {path}: {reason}")


def _read(path: Path, file: BinaryIO) -> Recording:
    suffix, length_bytes = path.suffix.lower(), os.fstat(file.fileno()).st_size
    if length_bytes > MAX_FILE_BYTES:
        raise ValueError(f"it is too large: {length_bytes} bytes, the limit is {MAX_FILE_BYTES}")
    if suffix == MCAP.suffix:
        return read_mcap(path.stem, file)
    if suffix != CSV_SUFFIX:
        ours = parse_lines(path.stem, file)
        if ours is not None:
            return ours
    file.seek(0)
    if length_bytes <= _SMALL_BYTES:
        return parse_text(path.stem, suffix, file.read(_SMALL_BYTES + 1))
    return _read_in_child(path.stem, suffix, file)


def parse_text(name: str, suffix: str, data: bytes) -> Recording:
    """The recording of that name in the content of a file; ValueError or csv.Error tells what is wrong and where."""
    return (_parse_csv if suffix == CSV_SUFFIX else parse_json)(name, _utf8(data))


def _utf8(data: bytes) -> bytes:
    """The content as UTF-8 without a byte order mark; UTF-16 is recognised by its mark and converted."""
    if not data:
        raise ValueError("the file is empty (half-written?)")
    if data.startswith(_UTF16_MARKS):
        return data.decode("utf-16").encode()
    data = data.removeprefix(codecs.BOM_UTF8)
    data.decode()
    return data


# -- large files of other writers ---------------------------------------------------------------------------------


def _read_in_child(name: str, suffix: str, file: BinaryIO) -> Recording:
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    is_utf16 = head.startswith(_UTF16_MARKS)
    if suffix != CSV_SUFFIX and not is_utf16 and not head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{"):
        raise ValueError("it is not a recording: no JSON object begins there")
    command = python_module("urlab.recording.reading_child", suffix)
    return unpacked(name, LimitedProcess(command, file, _CHILD_LIMITS).result())


def packed(recording: Recording) -> bytes:
    """A recording without its name as bytes: a line of JSON, then its arrays."""
    header = {
        "frames": recording.frame_count,
        "joints": [[one.name, one.qpos_dim] for one in recording.joints],
        "controls": recording.signals.controls,
        "sensors": recording.signals.sensors,
    }
    arrays = (recording.times, recording.qpos, recording.qvel, recording.ctrl, recording.sensordata)
    return b"".join([msgspec.json.encode(header), b"\n", *(one.tobytes() for one in arrays)])


def unpacked(name: str, content: bytes) -> Recording:
    """The recording that was packed, under that name."""
    line, _, _ = content[:MAX_HEADER_BYTES].partition(b"\n")
    header = msgspec.json.decode(line)
    joints = tuple(RecordedJoint(one, dim, QVEL_DIM_OF_QPOS_DIM[dim]) for one, dim in header["joints"])
    numbers = np.frombuffer(content, offset=len(line) + 1).copy()
    signals = RecordedSignals(tuple(header["controls"]), tuple((one, dim) for one, dim in header["sensors"]))
    frames, widths = header["frames"], [sum(one.qpos_dim for one in joints), sum(one.qvel_dim for one in joints)]
    widths += [len(signals.controls), signals.sensor_dim]
    times, *parts = np.split(numbers, frames * np.cumsum([1, *widths[:-1]]))
    qpos, qvel, *rest = (one.reshape(frames, width) for one, width in zip(parts, widths, strict=True))
    return Recording(name, joints, times, qpos, qvel, signals, *rest)


# -- CSV: a header row, one row per frame, positions only ---------------------------------------------------------


def _parse_csv(name: str, data: bytes) -> Recording:
    """The recording of that name in a CSV file's UTF-8; ValueError or csv.Error tells what is wrong and where.

    ``time`` or ``timestamp`` is in seconds (without it, rows are 0.002 s apart); ``name[0]``, ``name[1]`` ... are
    one joint, any other column is a joint of its own, camera columns are ignored. Velocities are zero.
    """
    header, table = _table(data.decode())
    return _recording(name, header, table).without_repeats()


def _table(text: str) -> tuple[list[str], FloatArray]:
    reader = csv.reader(io.StringIO(text, newline=""))
    header = [name.strip() for name in next(reader, [])]
    rows = [_numbers(row, header, reader.line_num) for row in reader if row]
    if not rows:
        raise ValueError("it has no rows below its header")
    return header, np.stack(rows)


def _numbers(row: Sequence[str], header: Sequence[str], line: int) -> FloatArray:
    if len(row) != len(header):
        raise ValueError(f"line {line} has {len(row)} cells, the header has {len(header)} (half-written?)")
    try:
        numbers = np.array([float(cell) for cell in row])
    except ValueError as problem:
        raise ValueError(f"line {line}: {problem}") from problem
    if not np.isfinite(numbers).all():
        raise ValueError(f"line {line} has a number that is not finite")
    return numbers


def _recording(name: str, header: Sequence[str], table: FloatArray) -> Recording:
    time_column = next((column for column, title in enumerate(header) if title.lower() in _TIME_COLUMNS), None)
    row_times: FloatArray = np.arange(len(table), dtype=np.float64) * _ROW_PERIOD_S
    times = row_times if time_column is None else table[:, time_column]
    joints, columns = [], []
    for joint, indices in _columns_by_joint(header).items():
        joints.append(_joint(joint, sorted(indices)))
        columns += [indices[index] for index in sorted(indices)]
    qvel = np.zeros((len(table), sum(one.qvel_dim for one in joints)))
    return Recording(name, tuple(joints), times, table[:, columns], qvel)


def _columns_by_joint(header: Sequence[str]) -> dict[str, dict[int, int]]:
    """Joint name -> index of the number within the joint -> column."""
    columns: dict[str, dict[int, int]] = {}
    for column, title in enumerate(header):
        if title.lower() in (*_TIME_COLUMNS, *_CAMERA_COLUMNS):
            continue
        match = _INDEXED.fullmatch(title)
        joint, index = (match["name"], int(match["index"])) if match else (title, 0)
        if not joint or index in columns.setdefault(joint, {}):
            raise ValueError(f"column {column + 1} of the header is {'there twice' if joint else 'empty'}: {title!r}")
        columns[joint][index] = column
    if not columns:
        raise ValueError(f"its header names no joints: {', '.join(header)}")
    return columns


def _joint(name: str, indices: Sequence[int]) -> RecordedJoint:
    if list(indices) != list(range(len(indices))) or len(indices) not in QVEL_DIM_OF_QPOS_DIM:
        raise ValueError(f"joint {name!r} has columns {list(indices)}; joints have 1, 4 or 7, counted from 0")
    return RecordedJoint(name, len(indices), QVEL_DIM_OF_QPOS_DIM[len(indices)])
