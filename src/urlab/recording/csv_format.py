"""CSV to recordings: a header row, one row per frame, positions only."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from urlab.recording.recording import QVEL_DIM_OF_QPOS_DIM, FloatArray, RecordedJoint, Recording
from urlab.recording.text_file import not_readable, read_utf8

_TIME_COLUMNS = ("time", "timestamp")
_CAMERA_COLUMNS = {"cam_x", "cam_y", "cam_z", "cam_pitch", "cam_yaw", "cam_roll"}
_ROW_PERIOD_S = 0.002
_INDEXED = re.compile(r"(?P<name>.+)\[(?P<index>\d+)\]")


def read_csv(path: Path) -> Recording:
    """The recording in ``path``, named after the file; PathNotReadable tells what is wrong and where.

    ``time`` or ``timestamp`` is in seconds (without it, rows are 0.002 s apart); ``name[0]``, ``name[1]`` ... are
    one joint, any other column is a joint of its own, camera columns are ignored. Velocities are zero.
    """
    text = read_utf8(path).decode()
    try:
        header, table = _table(text)
        recording = _recording(path.stem, header, table)
    except (ValueError, csv.Error) as problem:
        raise not_readable(path, str(problem)) from problem
    return recording.without_repeats()


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
