"""The keyframes of a compiled model."""

from collections.abc import Iterable
from typing import Any

from urlab.errors import UnknownKeyframe, known
from urlab_wire.ops.runtime import KeyframeBlock


def list_keyframes(model: Any) -> list[KeyframeBlock]:
    """All keyframes, arrays in compiled order."""
    return [_block(model, index) for index in range(model.nkey)]


def find_keyframe(model: Any, name: str, prefixes: Iterable[str]) -> int:
    """The id of a keyframe by compiled name, or by the name without its prefix when only one robot has it."""
    names = keyframe_names(model)
    if name in names:
        return names.index(name)
    full = [f"{prefix}_{name}" for prefix in prefixes if f"{prefix}_{name}" in names]
    if len(full) == 1:
        return names.index(full[0])
    if full:
        raise UnknownKeyframe(f"keyframe {name!r} is ambiguous: {known(full)}")
    raise UnknownKeyframe(f"there is no keyframe {name!r}; there are: {known(names)}")


def keyframe_names(model: Any) -> list[str]:
    """Compiled names, by id."""
    return [model.key(index).name for index in range(model.nkey)]


def _block(model: Any, index: int) -> KeyframeBlock:
    return KeyframeBlock(
        name=model.key(index).name,
        time=float(model.key_time[index]),
        qpos=model.key_qpos[index].tolist(),
        qvel=model.key_qvel[index].tolist(),
        ctrl=model.key_ctrl[index].tolist(),
        mocap_pos=model.key_mpos[index].reshape(-1).tolist(),
        mocap_quat=model.key_mquat[index].reshape(-1).tolist(),
    )
