"""Poses of mocap bodies."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from urlab.errors import BadValue, DimMismatch, MissingField, NotMocapBody, UnknownBody, known

if TYPE_CHECKING:
    from urlab.manager.manager import Manager


@dataclass(frozen=True, slots=True)
class MocapPose:
    """Metres; w, x, y, z."""

    pos: list[float]
    quat_wxyz: list[float]


def read_mocap_pose(manager: "Manager", body: str) -> MocapPose:
    """The pose of a mocap body, by compiled name."""
    index = _mocap_index(manager, body)
    with manager.engine.locked():
        return _read(manager, index)


def set_mocap_pose(manager: "Manager", body: str, pos: list[float] | None, quat_wxyz: list[float] | None) -> MocapPose:
    """Move a mocap body; what is not given stays."""
    index = _mocap_index(manager, body)
    if pos is None and quat_wxyz is None:
        raise MissingField("set_mocap_pose needs pos, quat or both")
    _check("pos", pos, 3)
    _check("quat", quat_wxyz, 4)
    if quat_wxyz is not None and not any(quat_wxyz):
        raise BadValue("quat must not be all zeros: that is no rotation")
    with manager.engine.locked():
        data = manager.engine.data
        if pos is not None:
            data.mocap_pos[index] = pos
        if quat_wxyz is not None:
            data.mocap_quat[index] = quat_wxyz
        manager.engine.publish()
        return _read(manager, index)


def _read(manager: "Manager", index: int) -> MocapPose:
    data = manager.engine.data
    return MocapPose(data.mocap_pos[index].tolist(), data.mocap_quat[index].tolist())


def _mocap_index(manager: "Manager", body: str) -> int:
    model = manager.engine.model
    body_id = manager.body_id(body)
    if not body:
        raise MissingField("body is empty; it takes the compiled name of a mocap body")
    names = [model.body(index).name for index in range(model.nbody)]
    movable = [name for index, name in enumerate(names) if model.body_mocapid[index] >= 0]
    if body_id is None:
        raise UnknownBody(f"there is no body {body!r}; mocap bodies are: {known(movable)}")
    if model.body_mocapid[body_id] < 0:
        raise NotMocapBody(f"body {body!r} is not a mocap body; those are: {known(movable)}")
    return int(model.body_mocapid[body_id])


def _check(field: str, numbers: list[float] | None, length: int) -> None:
    if numbers is None:
        return
    if len(numbers) != length:
        raise DimMismatch(f"{field} takes {length} numbers, but has {len(numbers)}")
    if not all(map(math.isfinite, numbers)):
        raise BadValue(f"{field} must be finite, but is {numbers}")
