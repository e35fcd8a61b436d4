"""Recordings as JSON: one object whose ``Frames`` hold every joint by its full name.

Read are our own files and those of other writers of the format, in any spelling of its keys.
"""

import re
from array import array
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from urlab.errors import known
from urlab.files import not_writable, replacing
from urlab.paths import FileKind
from urlab.recording.recording import (
    NO_SIGNALS,
    QVEL_DIM_OF_QPOS_DIM,
    RecordedJoint,
    RecordedSignals,
    Recording,
)

FORMAT_VERSION = 1

_BEGINNING = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"(urlab|frames)"\s*:', re.IGNORECASE)
RECORDING = FileKind("a recording", ".json", lambda head: _BEGINNING.match(head) is not None)
"""Known by how it begins, ours and those of other writers of the format."""

_NO_CAMERA = {
    "cameraPosition": {"x": 0.0, "y": 0.0, "z": 0.0},
    "cameraRotation": {"pitch": 0.0, "yaw": 0.0, "roll": 0.0},
    "bHasCameraData": False,
}


class _State(msgspec.Struct):
    q_pos: list[float] = msgspec.field(name="qPos")
    q_vel: list[float] = msgspec.field(name="qVel")


class _Frame(msgspec.Struct):
    timestamp: float
    joint_states: dict[str, _State] = msgspec.field(name="jointStates")
    ctrl: list[float] = []
    sensordata: list[float] = []


class _About(msgspec.Struct):
    """What our own files say of their controls and sensors."""

    controls: tuple[str, ...] = ()
    sensors: tuple[tuple[str, int], ...] = ()


_FRAME_KEYS = {"timestamp": "timestamp", "jointstates": "jointStates"}
_STATE_KEYS = {"qpos": "qPos", "qvel": "qVel"}
_FRAME = msgspec.json.Decoder(_Frame)


def parse_json(name: str, data: bytes) -> Recording:
    """The recording of that name in a JSON file's UTF-8; ValueError tells what is wrong and where.

    Frames without velocities get zeros. Other writers repeat frames: a frame equal to the one before it, timestamp
    included, is dropped, except in files that carry our ``urlab`` key, where every frame was one step.
    """
    try:
        raw_frames, signals = _raw_frames(data)
        recording = _recording(name, raw_frames, signals or NO_SIGNALS)
    except msgspec.DecodeError as problem:
        raise ValueError(_explained(str(problem), data)) from problem
    return recording.without_repeats() if signals is None else recording


def parse_lines(name: str, file: BinaryIO) -> Recording | None:
    """The recording of that name in a file as `write_json` lays it out, read line by line, however long it is.

    None when it is laid out otherwise, or broken: `parse_json` can say where.
    """
    try:
        return _recording_of_lines(name, _opening_signals(file), _frame_lines(file))
    except (ValueError, msgspec.DecodeError):
        return None


_OPENING, _FRAMES = b'{"urlab":', b'"Frames":[\n'
CLOSING = b"\n]}\n"
"""How a file of ours ends."""

_MAX_LINE_BYTES = 1 << 20


def opening_of(file: BinaryIO) -> bytes | None:
    """What a file of ours says of itself, as JSON; None when it is laid out otherwise."""
    if file.read(len(_OPENING)) != _OPENING:
        return None
    about, following = file.readline(_MAX_LINE_BYTES), file.read(len(_FRAMES))
    return about[:-2] if about.endswith(b",\n") and following == _FRAMES else None


def _opening_signals(file: BinaryIO) -> RecordedSignals:
    about = opening_of(file)
    if about is None:
        raise ValueError("it is laid out otherwise")
    return _signals(msgspec.json.decode(about, type=dict[str, msgspec.Raw]))


def _signals(about: Mapping[str, msgspec.Raw]) -> RecordedSignals:
    """What a file says of its controls and sensors; ValueError when that cannot be."""
    named = {key: about[key] for key in ("controls", "sensors") if key in about}
    said = msgspec.json.decode(msgspec.json.encode(named), type=_About)
    if any(dim < 0 for _, dim in said.sensors):
        raise ValueError("a sensor has less than no numbers")
    return RecordedSignals(said.controls, said.sensors)


def _frame_lines(file: BinaryIO) -> Iterator[msgspec.Raw]:
    line = file.readline(_MAX_LINE_BYTES)
    while line.endswith(b",\n"):
        yield msgspec.Raw(line[:-2])
        line = file.readline(_MAX_LINE_BYTES)
    yield msgspec.Raw(line.removesuffix(b"\n"))
    if line[-1:] + file.read(len(CLOSING)) != CLOSING:
        raise ValueError("it ends otherwise")


def _recording_of_lines(name: str, signals: RecordedSignals, lines: Iterator[msgspec.Raw]) -> Recording:
    times, qpos, qvel, ctrl, sensordata = (array("d") for _ in range(5))
    joints: tuple[RecordedJoint, ...] = ()
    for number, line in enumerate(lines):
        frame = _frame(line, number)
        joints = joints if number else _joints(frame)
        positions, velocities = _states(frame, joints, number)
        times.append(frame.timestamp)
        qpos.extend(positions)
        qvel.extend(velocities or [0.0] * sum(one.qvel_dim for one in joints))
        _check_signals(frame, signals, number)
        ctrl.extend(frame.ctrl)
        sensordata.extend(frame.sensordata)
    count = len(times)
    return Recording(
        name,
        joints,
        np.array(times),
        np.array(qpos).reshape(count, -1),
        np.array(qvel).reshape(count, -1),
        signals,
        np.array(ctrl).reshape(count, len(signals.controls)),
        np.array(sensordata).reshape(count, signals.sensor_dim),
    )


def _raw_frames(data: bytes) -> tuple[list[msgspec.Raw], RecordedSignals | None]:
    """The frames, still as text, and what else we wrote; None in a file of another writer."""
    top = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    raw = next((value for key, value in top.items() if key.lower() == "frames"), None)
    if raw is None:
        raise ValueError(f"it has no Frames; its keys are: {known(top)}")
    frames = msgspec.json.decode(raw, type=list[msgspec.Raw])
    if not frames:
        raise ValueError("its Frames are empty")
    if "urlab" not in top:
        return frames, None
    about = msgspec.json.decode(top["urlab"])
    return frames, _signals(msgspec.json.decode(top["urlab"], type=dict[str, msgspec.Raw])) if about else NO_SIGNALS


def _recording(name: str, raw_frames: list[msgspec.Raw], signals: RecordedSignals) -> Recording:
    joints = _joints(_frame(raw_frames[0], 0))
    nq, nv = sum(one.qpos_dim for one in joints), sum(one.qvel_dim for one in joints)
    count = len(raw_frames)
    times, qpos, qvel = np.empty(count), np.empty((count, nq)), np.zeros((count, nv))
    ctrl, sensordata = np.empty((count, len(signals.controls))), np.empty((count, signals.sensor_dim))
    for number, raw in enumerate(raw_frames):
        frame = _frame(raw, number)
        _check_signals(frame, signals, number)
        ctrl[number], sensordata[number] = frame.ctrl or 0.0, frame.sensordata or 0.0
        times[number] = frame.timestamp
        positions, velocities = _states(frame, joints, number)
        qpos[number] = positions
        if velocities:
            qvel[number] = velocities
    return Recording(name, joints, times, qpos, qvel, signals, ctrl, sensordata)


def _check_signals(frame: _Frame, signals: RecordedSignals, number: int) -> None:
    expected = {"ctrl": len(signals.controls), "sensordata": signals.sensor_dim}
    for key, count in expected.items():
        found = len(getattr(frame, key))
        if found != count:
            raise ValueError(f"frame {number} has {found} numbers in {key}, its first line names {count}")


def _frame(raw: msgspec.Raw, number: int) -> _Frame:
    try:
        try:
            return _FRAME.decode(raw)
        except msgspec.ValidationError:
            return msgspec.convert(_respelled(msgspec.json.decode(raw)), _Frame)
    except msgspec.DecodeError as problem:
        raise ValueError(f"frame {number}: {problem}") from problem


def _respelled(frame: Any) -> Any:
    """The frame with its keys spelled as we write them; another shape stays for the type check to refuse."""
    frame = _with_keys(frame, _FRAME_KEYS)
    states = frame.get("jointStates") if isinstance(frame, dict) else None
    if isinstance(states, dict):
        frame["jointStates"] = {name: _respelled_state(state) for name, state in states.items()}
    return frame


def _respelled_state(state: Any) -> Any:
    state = _with_keys(state, _STATE_KEYS)
    return {"qVel": []} | state if isinstance(state, dict) else state


def _with_keys(value: Any, spellings: dict[str, str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {spellings.get(key.lower(), key): inner for key, inner in value.items()}


def _joints(first: _Frame) -> tuple[RecordedJoint, ...]:
    joints = []
    for name, state in first.joint_states.items():
        qpos_dim = len(state.q_pos)
        if qpos_dim not in QVEL_DIM_OF_QPOS_DIM:
            raise ValueError(f"frame 0: joint {name!r} has {qpos_dim} positions; joints have 1, 4 or 7")
        joints.append(RecordedJoint(name, qpos_dim, QVEL_DIM_OF_QPOS_DIM[qpos_dim]))
    return tuple(joints)


def _states(frame: _Frame, joints: tuple[RecordedJoint, ...], number: int) -> tuple[list[float], list[float]]:
    """All positions and all velocities of a frame in joint order; no velocities at all is an empty list."""
    if len(frame.joint_states) != len(joints) or any(one.name not in frame.joint_states for one in joints):
        raise ValueError(_difference(frame, joints, number))
    states = [frame.joint_states[one.name] for one in joints]
    has_velocities = any(state.q_vel for state in states)
    for joint, state in zip(joints, states, strict=True):
        if len(state.q_pos) != joint.qpos_dim:
            raise ValueError(_wrong_length(number, joint.name, "qPos", len(state.q_pos), joint.qpos_dim))
        if has_velocities and len(state.q_vel) != joint.qvel_dim:
            raise ValueError(_wrong_length(number, joint.name, "qVel", len(state.q_vel), joint.qvel_dim))
    positions = list(chain.from_iterable(state.q_pos for state in states))
    return positions, list(chain.from_iterable(state.q_vel for state in states))


def _wrong_length(number: int, joint: str, key: str, found: int, expected: int) -> str:
    return f"frame {number}: joint {joint!r} has {found} numbers in {key}, expected {expected}"


def _difference(frame: _Frame, joints: tuple[RecordedJoint, ...], number: int) -> str:
    expected, found = {one.name for one in joints}, set(frame.joint_states)
    return (
        f"frame {number} has other joints than frame 0: "
        f"missing {known(expected - found)}; additional {known(found - expected)}"
    )


def _explained(problem: str, data: bytes) -> str:
    if "truncated" in problem:
        return f"its JSON ends in the middle, after {len(data)} bytes (half-written?)"
    place = re.search(r"\(byte (\d+)\)", problem)
    if place is None:
        return f"it is not a recording: {problem}"
    byte = int(place[1])
    line = data.count(b"\n", 0, byte) + 1
    if data[byte : byte + 3] in (b"NaN", b"Inf"):
        return f"line {line} has a number that is not finite (byte {byte})"
    return f"its JSON is broken in line {line}: {problem} (half-written?)"


# -- writing ------------------------------------------------------------------------------------------------------


def write_json(recording: Recording, path: Path, metadata: Mapping[str, Any] | None = None) -> int:
    """Write all frames to ``path``, atomically, and return how many were written.

    Numbers keep every bit. ``metadata`` (versions, model hash: anything JSON can hold) goes under the top-level
    key ``urlab`` beside the joint order. JSON has no NaN or infinity: a frame with one is left out, and counted
    under ``urlab.left_out_non_finite``. PathNotWritable when no frame is left or the file cannot be written.
    """
    arrays = (recording.times[:, None], recording.qpos, recording.qvel, recording.ctrl, recording.sensordata)
    finite = np.flatnonzero(np.logical_and.reduce([np.isfinite(one).all(axis=1) for one in arrays]))
    if not finite.size:
        captured = recording.frame_count
        raise not_writable(path, f"the recording has no frames with finite numbers ({captured} captured)")
    with replacing(path, RECORDING) as file:
        file.write(b'{"urlab":' + _about(recording, len(finite), metadata or {}) + b',\n"Frames":[')
        separator = b"\n"
        for frame in _encoded_frames(recording, finite.tolist()):
            file.write(separator)
            file.write(frame)
            separator = b",\n"
        file.write(CLOSING)
    return len(finite)


def _about(recording: Recording, written: int, metadata: Mapping[str, Any]) -> bytes:
    about = {
        **metadata,
        "format": FORMAT_VERSION,
        "name": recording.name,
        "frame_count": written,
        "left_out_non_finite": recording.frame_count - written,
        "joints": [{"name": one.name, "qpos": one.qpos_dim, "qvel": one.qvel_dim} for one in recording.joints],
        "controls": recording.signals.controls,
        "sensors": recording.signals.sensors,
    }
    return msgspec.json.encode(about)


def _encoded_frames(recording: Recording, frames: list[int]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    columns = _columns(recording)
    for frame in frames:
        qpos, qvel = recording.qpos[frame].tolist(), recording.qvel[frame].tolist()
        states = {name: {"qPos": qpos[q], "qVel": qvel[v]} for name, q, v in columns}
        signals = {"ctrl": recording.ctrl[frame].tolist(), "sensordata": recording.sensordata[frame].tolist()}
        kept = {key: numbers for key, numbers in signals.items() if numbers}
        yield encode({"timestamp": float(recording.times[frame]), "jointStates": states, **kept, **_NO_CAMERA})


def _columns(recording: Recording) -> list[tuple[str, slice, slice]]:
    columns, q, v = [], 0, 0
    for joint in recording.joints:
        columns.append((joint.name, slice(q, q + joint.qpos_dim), slice(v, v + joint.qvel_dim)))
        q, v = q + joint.qpos_dim, v + joint.qvel_dim
    return columns
