"""Changes of a running scene that are no steps: joint positions, poses of mocap bodies, physics options."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from urlab.compile import CompiledArticulation
from urlab.compile.compiled_scene import JointSlot
from urlab.errors import (
    BadValue,
    DimMismatch,
    MissingField,
    NoJoints,
    NotMocapBody,
    UnknownArticulation,
    UnknownBody,
    did_you_mean,
    known,
)
from urlab.numbers import finite_numbers
from urlab.physics import Engine, max_worker_threads
from urlab.physics.options import check_options, read_options, try_options

if TYPE_CHECKING:
    from urlab.manager.manager import Manager

_FREE = 0
"""The ``kind`` of a free joint."""

_FREE_DIM, _FREE_SPEEDS = 7, 6

_PositionAndQuat = tuple[list[float], list[float]]
"""A pose in the world frame: metres, and w, x, y, z."""


@dataclass(frozen=True, slots=True)
class QposTarget:
    """Something whose qpos can be set: a robot, or a free body. ``free_root`` is its first joint when that is free."""

    actor_name: str
    actor_id: str
    joints: tuple[JointSlot, ...]
    robot: CompiledArticulation | None = None

    @property
    def dim(self) -> int:
        """How many numbers its qpos has."""
        return sum(joint.qpos.stop - joint.qpos.start for joint in self.joints)

    @property
    def free_root(self) -> JointSlot | None:
        """Its free root joint, if it has one; free objects may stand before a robot in its file."""
        if self.robot is not None:
            return self.robot.root_joint
        first = self.joints[0] if self.joints else None
        return first if first is not None and first.kind == _FREE else None


@dataclass(frozen=True, slots=True)
class WrittenQpos:
    """What set_qpos did."""

    target: QposTarget
    qpos: list[float]
    free_base_shortcut: bool


def set_qpos(
    manager: "Manager", target: str, numbers: list[float], velocities: list[float] | None = None, *, by_name: bool
) -> WrittenQpos:
    """Write a target's qpos, or only its free root when seven numbers are given; then mj_forward.

    ``velocities`` are those of the same joints. With them ``numbers`` may be empty: then the joints stay where they
    are, and all of them are meant, or by six velocities the free root.
    """
    found = _find_target(manager, target, by_name=by_name)
    values, speeds = finite_numbers("qpos", numbers), finite_numbers("qvel", velocities or [])
    only_speeds = velocities is not None and not numbers
    joints, shortcut = _joints_of_speeds(found, len(speeds)) if only_speeds else _joints_of(found, len(values))
    if velocities is not None:
        wanted = sum(joint.qvel.stop - joint.qvel.start for joint in joints)
        if len(speeds) != wanted:
            there = f"but has {len(speeds)}"
            raise DimMismatch(f"qvel of {found.actor_name} takes {wanted} numbers with that qpos, {there}")
    with manager.engine.locked():
        data = manager.engine.data
        if not only_speeds:
            _write(data.qpos, [joint.qpos for joint in joints], values)
        if velocities is not None:
            _write(data.qvel, [joint.qvel for joint in joints], speeds)
        manager.engine.forward()
        manager.engine.jump()
        manager.engine.publish()
    return WrittenQpos(found, values.tolist(), shortcut)


def joint_write(robot: CompiledArticulation, name: str, numbers: list[float]) -> tuple[slice, Any]:
    """Where and what to write for one joint, by its short or compiled name, or by an actuator's that drives it.

    A free joint takes one number too, for its first slot.
    """
    joint = _joint_of(robot, name)
    width = joint.qpos.stop - joint.qpos.start
    if len(numbers) != width and not (len(numbers) == 1 and joint.kind == _FREE):
        raise DimMismatch(f"joint {name!r} of {robot.prefix} takes {width} numbers, but has {len(numbers)}")
    return slice(joint.qpos.start, joint.qpos.start + len(numbers)), finite_numbers(f"joint {name!r}", numbers)


def _joint_of(robot: CompiledArticulation, name: str) -> JointSlot:
    found = next((one for one in robot.joints if name in (one.short, one.name)), None)
    if found is None:
        driven = (one.joint for one in robot.actuators if name in (one.short, one.name))
        found = next((joint for joint in driven if joint is not None), None)
    if found is None:
        names = [one.short for one in robot.joints]
        raise BadValue(f"{robot.prefix} has no joint {name!r}{did_you_mean(name, names)}; it has: {known(names)}")
    return found


def _find_target(manager: "Manager", target: str, *, by_name: bool) -> QposTarget:
    """By actor_id, by the actor's name, or by that of an entity."""
    actors, entities = _actor_targets(manager), _entity_targets(manager)
    found = None if by_name else next((one for one in actors if one.actor_id and one.actor_id == target), None)
    found = found or next((one for one in (*actors, *entities) if one.actor_name == target), None)
    if found is None:
        names = {one.actor_name for one in (*actors, *entities)}
        names |= set() if by_name else {one.actor_id for one in actors}
        hint = did_you_mean(target, names)
        raise UnknownArticulation(
            f"there is no {target!r} whose qpos can be set{hint}; there are: {known(names - {''})}"
        )
    return found


def _actor_targets(manager: "Manager") -> list[QposTarget]:
    """Robots with their joints; of every other actor its free bodies, together."""
    scene = manager.scene
    robots = [QposTarget(one.prefix, one.actor_id, one.joints, one) for one in scene.articulations]
    prefixes = {one.prefix for one in scene.articulations}
    things: dict[str, QposTarget] = {}
    for one in scene.entities:
        if one.actor_name not in prefixes:
            joints = things[one.actor_name].joints if one.actor_name in things else ()
            free = (one.free_joint,) if one.free_joint else ()
            things[one.actor_name] = QposTarget(one.actor_name, one.actor_id, (*joints, *free))
    return [*robots, *things.values()]


def _entity_targets(manager: "Manager") -> list[QposTarget]:
    return [QposTarget(one.name, "", (one.free_joint,) if one.free_joint else ()) for one in manager.scene.entities]


def _joints_of(target: QposTarget, count: int) -> tuple[tuple[JointSlot, ...], bool]:
    if not target.joints:
        raise NoJoints(f"{target.actor_name} has no joints, so it has no qpos")
    if count == target.dim:
        return target.joints, False
    if count == _FREE_DIM and target.free_root is not None:
        return (target.free_root,), True
    free = f", or {_FREE_DIM} for its free root" if target.free_root else ""
    raise DimMismatch(f"qpos of {target.actor_name} takes {target.dim} numbers{free}, but has {count}")


def _joints_of_speeds(target: QposTarget, count: int) -> tuple[tuple[JointSlot, ...], bool]:
    """The joints that so many velocities are of."""
    root = target.free_root
    if root is not None and count == _FREE_SPEEDS:
        return (root,), len(target.joints) > 1
    return _joints_of(target, target.dim)


def _write(array: Any, slots: list[slice], values: NDArray[np.float64]) -> None:
    """Put the values into the slots, one after the other."""
    start = 0
    for slot in slots:
        width = slot.stop - slot.start
        array[slot] = values[start : start + width]
        start += width


# -- mocap bodies -------------------------------------------------------------------------------------------------


def read_mocap_pose(manager: "Manager", body: str) -> _PositionAndQuat:
    """The pose of a mocap body, by compiled name."""
    index, snapshot = _mocap_index(manager, body), manager.engine.snapshot
    return snapshot.mocap_pos[index].tolist(), snapshot.mocap_quat[index].tolist()


def set_mocap_pose(
    manager: "Manager", body: str, pos: list[float] | None, quat_wxyz: list[float] | None
) -> _PositionAndQuat:
    """Move a mocap body; what is not given stays."""
    index = _mocap_index(manager, body)
    if pos is None and quat_wxyz is None:
        raise MissingField("set_mocap_pose needs pos, quat or both")
    if pos is not None:
        finite_numbers("pos", pos, 3)
    if quat_wxyz is not None:
        finite_numbers("quat", quat_wxyz, 4)
    if quat_wxyz is not None and not any(quat_wxyz):
        raise BadValue("quat must not be all zeros: that is no rotation")
    with manager.engine.locked():
        data = manager.engine.data
        if pos is not None:
            data.mocap_pos[index] = pos
        if quat_wxyz is not None:
            data.mocap_quat[index] = quat_wxyz
        manager.engine.publish()
        return data.mocap_pos[index].tolist(), data.mocap_quat[index].tolist()


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


# -- options ------------------------------------------------------------------------------------------------------


def set_sim_options(manager: "Manager", patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a patch as a whole or not at all; returns every option in force. An empty one only reads."""
    checked, engine = check_options(patch), manager.engine
    if not checked:
        with engine.model_lock:
            return _options_in_force(engine)
    with engine.locked(), engine.model_lock:
        try_options(engine.model, checked)
        engine.options_changed()
        if "num_worker_threads" in checked:
            engine.set_worker_threads(checked["num_worker_threads"])
        return _options_in_force(engine)


def _options_in_force(engine: Engine) -> dict[str, Any]:
    return {
        **read_options(engine.model.opt),
        "num_worker_threads": engine.worker_threads,
        "max_worker_threads": max_worker_threads(),
    }
