"""What a model holds, before anything plays: its elements, its bodies as a tree, the space that it takes."""

from dataclasses import dataclass, field
from typing import Any

import mujoco

from urlab.compile.blueprint import MUJOCO_ERRORS, Blueprint, compile_spec
from urlab.compile.bounds import Aabb, actor_aabb
from urlab.errors import EditError, known
from urlab.geometry import Pose, Vec3
from urlab.mujoco_versions import actuator_count


@dataclass(frozen=True)
class BodyNode:
    """A body with its children. ``position_w`` is in world coordinates, metres."""

    name: str
    position_w: Vec3
    children: tuple["BodyNode", ...] = ()


@dataclass
class Inspection:
    """One model, compiled alone, standing in its start pose. Names are those of the model file."""

    model: Any
    data: Any
    joints: list[str] = field(default_factory=list)
    actuators: list[str] = field(default_factory=list)
    sensors: list[str] = field(default_factory=list)
    cameras: list[str] = field(default_factory=list)

    def aabb(self, pose: Pose, *, colliding_only: bool = False) -> Aabb | None:
        """The box around its geometry when it stands at ``pose``; None when it has none."""
        return actor_aabb(self.model, self.data, pose, colliding_only=colliding_only)

    def bodies(self, pose: Pose) -> tuple[BodyNode, ...]:
        """Its bodies when it stands at ``pose``, as trees."""
        return self._children(0, pose)

    def _children(self, parent: int, pose: Pose) -> tuple[BodyNode, ...]:
        bodies = [body for body in range(1, self.model.nbody) if int(self.model.body_parentid[body]) == parent]
        places = [pose.apply(Pose(tuple(self.data.xpos[body].tolist()))).pos for body in bodies]
        return tuple(
            BodyNode(self.model.body(body).name, place, self._children(body, pose))
            for body, place in zip(bodies, places, strict=True)
        )


def inspect(blueprint: Blueprint, keyframe: str = "") -> Inspection:
    """Compile a model alone and put it in its start pose; EditError when there is no such keyframe."""
    try:
        model, _ = compile_spec(blueprint.spec.copy())
    except MUJOCO_ERRORS as refused:
        raise EditError(f"{blueprint.path}: {refused}") from refused
    data = mujoco.MjData(model)
    _start(model, data, keyframe)
    mujoco.mj_kinematics(model, data)
    return Inspection(
        model,
        data,
        joints=[model.joint(index).name for index in range(model.njnt)],
        actuators=[model.actuator(index).name for index in range(actuator_count(model))],
        sensors=[model.sensor(index).name for index in range(model.nsensor)],
        cameras=[model.camera(index).name for index in range(model.ncam)],
    )


def _start(model: Any, data: Any, keyframe: str) -> None:
    if not keyframe:
        return
    names = [model.key(index).name for index in range(model.nkey)]
    if keyframe not in names:
        raise EditError(f"there is no keyframe {keyframe!r}; the model has: {known(names)}")
    mujoco.mj_resetDataKeyframe(model, data, names.index(keyframe))
