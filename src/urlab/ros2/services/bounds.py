"""How much room an entity takes: boxes around the geoms of its bodies, from the client's own model."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from urlab.ros2.convert.geometry import vector3
from urlab.ros2.convert.pose import Array, Pose, at
from urlab.ros2.messages import make
from urlab.ros2.services.operating import OperatorClient
from urlab.ros2.services.results import Code, Refused
from urlab.ros2.services.things import Thing
from urlab.ros2.simulation_messages import PACKAGE

EMPTY, BOX, CONVEX_HULL, SPHERE = range(4)
"""Types of the message Bounds."""

_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)


@dataclass(frozen=True, eq=False)
class Box:
    """An axis-aligned box, metres; (3,) each."""

    lower: Array
    upper: Array

    def meets_box(self, other: "Box") -> bool:
        """Whether the two have a point in common."""
        return bool((self.lower <= other.upper).all() and (other.lower <= self.upper).all())

    def meets_sphere(self, centre: Array, radius: float) -> bool:
        """Whether a sphere has a point in common with it."""
        nearest = np.clip(centre, self.lower, self.upper)
        return bool(np.linalg.norm(nearest - centre) <= radius)


def box_in(client: OperatorClient, thing: Thing, frame: Pose) -> Box | None:
    """The box around an entity along the axes of a frame; None when it has no geom of finite size."""
    into = frame.inverse()
    corners = [*_corners(client, thing, into)]
    if not corners:
        return None
    points = np.concatenate(corners)
    return Box(points.min(axis=0), points.max(axis=0))


def bounds_message(box: Box) -> Any:
    """Bounds: the upper corner, then the lower one."""
    return make(f"{PACKAGE}/msg/Bounds", type=BOX, points=[vector3(box.upper), vector3(box.lower)])


def overlap(bounds: Any) -> "Overlap":
    """What a Bounds message asks for; `Refused` when this cannot be had."""
    points = [np.array([one.x, one.y, one.z]) for one in bounds.points]
    if bounds.type == BOX and len(points) == 2:
        box = Box(np.minimum(*points), np.maximum(*points))
        return Overlap(box=box)
    if bounds.type == SPHERE and len(points) == 2:
        return Overlap(centre=points[0], radius=float(points[1][0]))
    if bounds.type in (BOX, SPHERE):
        raise Refused(Code.OPERATION_FAILED, f"bounds of a box or a sphere have two points, not {len(points)}")
    raise Refused(
        Code.FEATURE_UNSUPPORTED,
        f"bounds of type {bounds.type} cannot be filtered by: ask for a box (1) or a sphere (3)",
    )


@dataclass(frozen=True, eq=False)
class Overlap:
    """A region of the world: a box, or a sphere."""

    box: Box | None = None
    centre: Array | None = None
    radius: float = 0.0

    def meets(self, client: OperatorClient, thing: Thing) -> bool:
        """Whether an entity reaches into it."""
        own = box_in(client, thing, at())
        if own is None:
            return False
        if self.box is not None:
            return own.meets_box(self.box)
        return self.centre is not None and own.meets_sphere(self.centre, self.radius)


def _corners(client: OperatorClient, thing: Thing, into: Pose) -> Iterator[Array]:
    """The corners (8, 3) of the boxes of its geoms, in another frame."""
    model, data = client.model, client.data
    for geom in _geoms(model, thing):
        centre, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
        signs = np.array(np.meshgrid((-1, 1), (-1, 1), (-1, 1))).reshape(3, 8).T
        world = (centre + signs * half) @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, into.quat_wxyz)
        yield world @ turn.reshape(3, 3).T + into.pos


def _geoms(model: Any, thing: Thing) -> list[int]:
    """The geoms of an entity's body and of all that hangs on it; planes have no end and are left out."""
    assert thing.handle is not None
    inside = {thing.handle.body_id}
    for body in range(thing.handle.body_id + 1, model.nbody):  # a body comes after its parent
        if int(model.body_parentid[body]) in inside:
            inside.add(body)
    bodies, kinds = model.geom_bodyid, model.geom_type
    return [geom for geom in range(model.ngeom) if int(bodies[geom]) in inside and int(kinds[geom]) != _PLANE]
