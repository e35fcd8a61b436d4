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
class ElementNode:
    """What a body has: a joint, geom, site or camera. ``position`` is in the body's frame, metres."""

    name: str
    kind: str
    position: Vec3


@dataclass(frozen=True)
class BodyNode:
    """A body with its elements and its children. ``pose_w`` is in world coordinates, metres."""

    name: str
    pose_w: Pose
    elements: tuple[ElementNode, ...] = ()
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

    def aabb(self, pose: Pose, *, colliding_only: bool = False, with_ground: bool = True) -> Aabb | None:
        """The box around its geometry when it stands at ``pose``, see `actor_aabb`; None when it has none."""
        return actor_aabb(self.model, self.data, pose, colliding_only=colliding_only, with_ground=with_ground)

    def tree(self, pose: Pose) -> BodyNode:
        """The model when it stands at ``pose``: its world body, which holds all others."""
        parents, elements = self.model.body_parentid.tolist(), self._elements()
        children: dict[int, list[int]] = {}
        for body in range(1, self.model.nbody):
            children.setdefault(parents[body], []).append(body)

        def node(body: int) -> BodyNode:
            here = Pose.of(self.data.xpos[body], self.data.xquat[body])
            below = tuple(node(child) for child in children.get(body, ()))
            return BodyNode(self.model.body(body).name, pose.apply(here), tuple(elements.get(body, ())), below)

        return node(0)

    def _elements(self) -> dict[int, list[ElementNode]]:
        """By body id: joints, then geoms, sites and cameras."""
        model = self.model
        kinds = (
            ("joint", model.njnt, model.jnt_bodyid, model.jnt_pos),
            ("geom", model.ngeom, model.geom_bodyid, model.geom_pos),
            ("site", model.nsite, model.site_bodyid, model.site_pos),
            ("camera", model.ncam, model.cam_bodyid, model.cam_pos),
        )
        found: dict[int, list[ElementNode]] = {}
        for kind, count, bodies, positions in kinds:
            for index in range(count):
                x, y, z = positions[index].tolist()
                free = kind == "joint" and int(model.jnt_type[index]) == int(mujoco.mjtJoint.mjJNT_FREE)
                name = getattr(model, kind)(index).name
                node = ElementNode(name, "free joint" if free else kind, (x, y, z))
                found.setdefault(int(bodies[index]), []).append(node)
        return found


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
