"""Writing joint positions: whole robots, free roots, single joints."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from urlab.compile import CompiledArticulation
from urlab.compile.compiled_scene import JointSlot
from urlab.errors import BadValue, DimMismatch, NoJoints, UnknownArticulation, known

if TYPE_CHECKING:
    from urlab.manager.manager import Manager

_FREE_DIM, _FREE_SPEEDS = 7, 6


@dataclass(frozen=True, slots=True)
class QposTarget:
    """Something whose qpos can be set: a robot, or a free body. ``free_root`` is its first joint when that is free."""

    actor_name: str
    actor_id: str
    joints: tuple[JointSlot, ...]

    @property
    def dim(self) -> int:
        """How many numbers its qpos has."""
        return sum(joint.qpos.stop - joint.qpos.start for joint in self.joints)

    @property
    def free_root(self) -> JointSlot | None:
        """Its free root joint, if it has one."""
        first = self.joints[0] if self.joints else None
        return first if first is not None and first.kind == 0 else None


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
    found = _find(manager, target, by_name=by_name)
    values, speeds = _finite("qpos", numbers), _finite("qvel", velocities or [])
    only_speeds = velocities is not None and not numbers
    joints, shortcut = _fit_speeds(found, len(speeds)) if only_speeds else _fit(found, len(values))
    if velocities is not None:
        _check_speeds(found, joints, len(speeds))
    with manager.engine.locked():
        data = manager.engine.data
        if not only_speeds:
            _write(data.qpos, [joint.qpos for joint in joints], values)
        if velocities is not None:
            _write(data.qvel, [joint.qvel for joint in joints], speeds)
        manager.engine.forward()
        manager.engine.publish()
    return WrittenQpos(found, values.tolist(), shortcut)


def joint_write(robot: CompiledArticulation, name: str, numbers: list[float]) -> tuple[slice, Any]:
    """Where and what to write for one joint by short or compiled name; one number goes to its first slot."""
    joint = next((one for one in robot.joints if name in (one.short, one.name)), None)
    if joint is None:
        raise BadValue(f"{robot.prefix} has no joint {name!r}; it has: {known(one.short for one in robot.joints)}")
    width = joint.qpos.stop - joint.qpos.start
    if len(numbers) not in (1, width):
        raise DimMismatch(f"joint {name!r} of {robot.prefix} takes {width} numbers, but has {len(numbers)}")
    return slice(joint.qpos.start, joint.qpos.start + len(numbers)), _finite(f"joint {name!r}", numbers)


def _find(manager: "Manager", target: str, *, by_name: bool) -> QposTarget:
    targets = _targets(manager)
    found = None if by_name else next((one for one in targets if one.actor_id and one.actor_id == target), None)
    found = found or next((one for one in targets if one.actor_name == target), None)
    if found is None:
        names = {one.actor_name for one in targets} | (set() if by_name else {one.actor_id for one in targets})
        raise UnknownArticulation(f"there is no {target!r} whose qpos can be set; there are: {known(names - {''})}")
    return found


def _targets(manager: "Manager") -> list[QposTarget]:
    scene = manager.scene
    robots = [QposTarget(one.prefix, one.actor_id, one.joints) for one in scene.articulations]
    prefixes = {one.prefix for one in scene.articulations}
    things = [
        QposTarget(one.name if one.actor_name in prefixes else one.actor_name,
                   "" if one.actor_name in prefixes else one.actor_id,
                   (one.free_joint,) if one.free_joint else ())
        for one in scene.entities
    ]  # fmt: skip
    return [*robots, *things]


def _fit(target: QposTarget, count: int) -> tuple[tuple[JointSlot, ...], bool]:
    if not target.joints:
        raise NoJoints(f"{target.actor_name} has no joints, so it has no qpos")
    if count == target.dim:
        return target.joints, False
    if count == _FREE_DIM and target.free_root is not None:
        return (target.free_root,), True
    free = f", or {_FREE_DIM} for its free root" if target.free_root else ""
    raise DimMismatch(f"qpos of {target.actor_name} takes {target.dim} numbers{free}, but has {count}")


def _fit_speeds(target: QposTarget, count: int) -> tuple[tuple[JointSlot, ...], bool]:
    """The joints that so many velocities are of."""
    root = target.free_root
    if root is not None and count == _FREE_SPEEDS:
        return (root,), len(target.joints) > 1
    return _fit(target, target.dim)


def _check_speeds(target: QposTarget, joints: tuple[JointSlot, ...], count: int) -> None:
    wanted = sum(joint.qvel.stop - joint.qvel.start for joint in joints)
    if count != wanted:
        raise DimMismatch(f"qvel of {target.actor_name} takes {wanted} numbers with that qpos, but has {count}")


def _write(array: Any, slots: list[slice], values: NDArray[np.float64]) -> None:
    """Put the values into the slots, one after the other."""
    start = 0
    for slot in slots:
        width = slot.stop - slot.start
        array[slot] = values[start : start + width]
        start += width


def _finite(what: str, numbers: list[float]) -> NDArray[np.float64]:
    values = np.array(numbers, dtype=np.float64)
    if not np.isfinite(values).all():
        raise BadValue(f"{what} must be finite, but is {numbers}")
    return values
