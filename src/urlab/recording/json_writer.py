"""Recordings to JSON: one object whose ``Frames`` hold every joint by its full name."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from urlab.files import not_writable, replacing
from urlab.recording.recording import Recording

FORMAT_VERSION = 1

_NO_CAMERA = {
    "cameraPosition": {"x": 0.0, "y": 0.0, "z": 0.0},
    "cameraRotation": {"pitch": 0.0, "yaw": 0.0, "roll": 0.0},
    "bHasCameraData": False,
}


def write_json(recording: Recording, path: Path, metadata: Mapping[str, Any] | None = None) -> int:
    """Write all frames to ``path``, atomically, and return how many were written.

    Numbers keep every bit. ``metadata`` (versions, model hash: anything JSON can hold) goes under the top-level
    key ``urlab`` beside the joint order. JSON has no NaN or infinity: a frame with one is left out, and counted
    under ``urlab.left_out_non_finite``. PathNotWritable when no frame is left or the file cannot be written.
    """
    finite = _finite_frames(recording)
    if not finite.size:
        captured = recording.frame_count
        raise not_writable(path, f"the recording has no frames with finite numbers ({captured} captured)")
    with replacing(path) as file:
        file.write(b'{"urlab":' + _about(recording, len(finite), metadata or {}) + b',\n"Frames":[')
        separator = b"\n"
        for frame in _encoded_frames(recording, finite.tolist()):
            file.write(separator)
            file.write(frame)
            separator = b",\n"
        file.write(b"\n]}\n")
    return len(finite)


def _finite_frames(recording: Recording) -> np.ndarray[Any, np.dtype[np.intp]]:
    finite = np.isfinite(recording.times)
    for states in (recording.qpos, recording.qvel):
        finite &= np.isfinite(states).all(axis=1)
    return np.flatnonzero(finite)


def _about(recording: Recording, written: int, metadata: Mapping[str, Any]) -> bytes:
    about = {
        **metadata,
        "format": FORMAT_VERSION,
        "name": recording.name,
        "frame_count": written,
        "left_out_non_finite": recording.frame_count - written,
        "joints": [{"name": one.name, "qpos": one.qpos_dim, "qvel": one.qvel_dim} for one in recording.joints],
    }
    return msgspec.json.encode(about)


def _encoded_frames(recording: Recording, frames: list[int]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    columns = _columns(recording)
    for frame in frames:
        qpos, qvel = recording.qpos[frame].tolist(), recording.qvel[frame].tolist()
        states = {name: {"qPos": qpos[q], "qVel": qvel[v]} for name, q, v in columns}
        yield encode({"timestamp": float(recording.times[frame]), "jointStates": states, **_NO_CAMERA})


def _columns(recording: Recording) -> list[tuple[str, slice, slice]]:
    columns, q, v = [], 0, 0
    for joint in recording.joints:
        columns.append((joint.name, slice(q, q + joint.qpos_dim), slice(v, v + joint.qvel_dim)))
        q, v = q + joint.qpos_dim, v + joint.qvel_dim
    return columns
