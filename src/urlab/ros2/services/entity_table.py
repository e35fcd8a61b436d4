"""The entities of a scene as ROS knows them: names, poses, sizes, what they belong to, and the messages of their state.

Quaternions of ROS are x, y, z, w, those here w, x, y, z.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from urlab.ros2.frames import WORLD
from urlab.ros2.geometry import Array, RigidTransform, at, header, pose_message, time_of_s, vector3
from urlab.ros2.messages import make
from urlab.ros2.services.messages import PACKAGE, ResultCode, ServiceRefused
from urlab.ros2.services.simulation import SPAWNED_TAG, OperatorClient, playing, refresh
from urlab_client import SceneSnapshotActor, URLabArticulation, URLabEntity

OBJECT, ROBOT, MOVABLE, STATIC = 0, 1, 4, 5
"""Categories of simulation_interfaces: OBJECT (of which no more is known), ROBOT, DYNAMIC_OBJECT, STATIC_OBJECT."""

_NO_ENTITIES = ("AMjManager", "DirectionalLight", "PointLight", "SpotLight")

_SHORTEST = 1e-3
"""A quaternion that is shorter was forgotten, and not rounded."""

_CLOSE = 1e-9

BOX, SPHERE = 1, 3
"""Types of the message Bounds that can be filtered by; there are also none (0) and a convex hull (2)."""

_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)


@dataclass(frozen=True, eq=False)
class Entity:
    """One entity. ``pose`` and the velocities (m/s, rad/s) are of its topmost body, in the world.

    ``handle`` is None while nothing plays; then ``pose`` is the actor's. ``is_whole``: it stands for all of its actor,
    and can be deleted.
    """

    name: str
    actor: SceneSnapshotActor
    handle: URLabEntity | None
    category: int
    pose: RigidTransform
    linear: Array
    angular: Array
    is_whole: bool
    is_mocap: bool = False

    @property
    def is_free(self) -> bool:
        """Whether it moves freely."""
        return self.handle is not None and self.handle.has_free_base

    @property
    def tags(self) -> list[str]:
        """The words that its level has for it."""
        return list(self.actor.tags)

    @property
    def description(self) -> str:
        """What it is, in a sentence."""
        kind = {OBJECT: "object", ROBOT: "robot", MOVABLE: "movable body", STATIC: "static body"}[self.category]
        part = "" if self.is_whole else f", a part of {self.actor.name}"
        return f"{kind}{part}; actor {self.actor.name}, class {self.actor.actor_class}"


class EntityTable:
    """Every entity at one moment, by name."""

    def __init__(self, client: OperatorClient) -> None:
        self.is_playing = playing(client) is not None
        if self.is_playing:
            refresh(client)
        actors = client.scene.snapshot().actors
        self.actors = {one.name: one for one in actors if one.actor_class not in _NO_ENTITIES}
        found = self._running(client) if self.is_playing else self._authored()
        self.by_name = {one.name: one for one in found}

    def find(self, name: str) -> Entity:
        """The entity of that name, or of that actor_id or prefix of its actor; `ServiceRefused` when there is none."""
        whole = (one for one in self.by_name.values() if one.is_whole and name in (one.actor.actor_id, one.actor.name))
        entity = self.by_name.get(name) or next((one for one in whole if name), None)
        if entity is None:
            known = ", ".join(self.by_name) or "none"
            raise ServiceRefused(f"there is no entity {name!r}; there are: {known}", ResultCode.NOT_FOUND)
        return entity

    def is_taken(self, name: str) -> bool:
        """Whether some entity, actor or id is called that."""
        ids = {one.actor_id for one in self.actors.values()}
        return name in self.by_name or name in self.actors or name in ids

    def frame(self, name: str, code: int) -> RigidTransform:
        """Where a frame is in the world: the world's own, or an entity's. `ServiceRefused` with that code otherwise."""
        try:
            return at() if name in ("", WORLD) else self.find(name).pose
        except ServiceRefused as unknown:
            raise ServiceRefused(
                f"the frame {name!r} is neither 'world' nor an entity: {unknown.message}", code
            ) from unknown

    def require_playing(self) -> None:
        """`ServiceRefused` unless the level plays: before that no sizes are known."""
        if not self.is_playing:
            raise ServiceRefused(
                "bounds are known while the level plays: set the simulation to playing or paused first",
                ResultCode.INCORRECT_STATE,
            )

    def _authored(self) -> Iterator[Entity]:
        for actor in self.actors.values():
            x, y, z, w = actor.rotation_quat
            category = ROBOT if actor.urlab is not None else OBJECT
            name, still = _name(actor, actor.name), np.zeros(3)
            yield Entity(name, actor, None, category, at(actor.location, (w, x, y, z)), still, still, is_whole=True)

    def _running(self, client: OperatorClient) -> Iterator[Entity]:
        represented: set[str] = set()
        mocap_ids = client.model.body_mocapid
        for handle in _robots_first(client):
            actor = self._actor_of(handle.name)
            if actor is not None:
                is_mocap = bool(mocap_ids[handle.body_id] >= 0)
                yield _running_entity(actor, handle, is_mocap=is_mocap, is_whole=actor.name not in represented)
                represented.add(actor.name)

    def _actor_of(self, name: str) -> SceneSnapshotActor | None:
        owners = [one for one in self.actors if name == one or name.startswith(f"{one}_")]
        return self.actors[max(owners, key=len)] if owners else None


def _robots_first(client: OperatorClient) -> list[URLabEntity]:
    """Of an actor's entities the one that stands for it comes first."""
    return sorted(client.entities.values(), key=lambda one: not isinstance(one, URLabArticulation))


def _running_entity(actor: SceneSnapshotActor, handle: URLabEntity, *, is_mocap: bool, is_whole: bool) -> Entity:
    moves = handle.has_free_base or is_mocap
    category = ROBOT if isinstance(handle, URLabArticulation) else MOVABLE if moves else STATIC
    return Entity(
        name=_name(actor, handle.name) if is_whole else handle.name,
        actor=actor,
        handle=handle,
        category=category,
        pose=RigidTransform(handle.root_pos_w, handle.root_quat_w),
        linear=handle.root_lin_vel_w,
        angular=handle.root_ang_vel_w,
        is_whole=is_whole,
        is_mocap=is_mocap,
    )


def _name(actor: SceneSnapshotActor, own: str) -> str:
    """What was spawned has the name that was asked for, everything else its own."""
    return actor.actor_id if SPAWNED_TAG in actor.tags and actor.actor_id else own


# -- messages of their state -------------------------------------------------------------------------------------------


def entity_state(entity: Entity, time_s: float) -> Any:
    """EntityState in the world at a simulation time; accelerations are left at zero."""
    twist = make("geometry_msgs/msg/Twist", linear=vector3(entity.linear), angular=vector3(entity.angular))
    return make(
        f"{PACKAGE}/msg/EntityState",
        header=header(time_of_s(time_s), WORLD),
        pose=pose_message(entity.pose.pos, entity.pose.quat_wxyz),
        twist=twist,
    )


def read_pose(message: Any, code: int) -> RigidTransform:
    """A geometry_msgs/Pose; `ServiceRefused` with that code when it is none."""
    pos, turn = _numbers(message.position), message.orientation
    quat = (turn.w, turn.x, turn.y, turn.z)
    if not all(map(math.isfinite, (*pos, *quat))):
        raise ServiceRefused(f"the pose is not finite: position {pos}, orientation (x, y, z, w) {_xyzw(turn)}", code)
    if math.hypot(*quat) < _SHORTEST:
        raise ServiceRefused(f"the orientation (x, y, z, w) {_xyzw(turn)} has no length; none is (0, 0, 0, 1)", code)
    return at(pos, quat)


def read_twist(message: Any) -> tuple[Array, Array]:
    """Linear and angular velocity of a geometry_msgs/Twist; `ServiceRefused` when they are not finite."""
    linear, angular = _numbers(message.linear), _numbers(message.angular)
    if not all(map(math.isfinite, (*linear, *angular))):
        raise ServiceRefused(f"the twist is not finite: linear {linear}, angular {angular}")
    return np.array(linear), np.array(angular)


def rotated(vector: Array, quat_wxyz: Array, *, back: bool = False) -> Array:
    """A vector (3,) turned by a quaternion, or back."""
    out, turn = np.empty(3), quat_wxyz.copy()
    if back:
        mujoco.mju_negQuat(turn, quat_wxyz)
    mujoco.mju_rotVecQuat(out, vector, turn)
    return out


def _numbers(message: Any) -> tuple[float, float, float]:
    return float(message.x), float(message.y), float(message.z)


def _xyzw(turn: Any) -> tuple[float, float, float, float]:
    return float(turn.x), float(turn.y), float(turn.z), float(turn.w)


# -- where an actor has to stand for its topmost body to be at a pose --------------------------------------------------


def authored_pose(client: OperatorClient, name: str) -> RigidTransform:
    """Where the level puts an actor: the frame in which its model file is written, in the world."""
    row = next(one for one in client.outliner.list_actors() if one.name == name)
    x, y, z, w = row.rotation_quat
    return at(row.location, (w, x, y, z))


def needed_pose(client: OperatorClient, entity: Entity, wanted: RigidTransform) -> RigidTransform | None:
    """The pose of the actor that puts its body, when a play begins, at ``wanted``; None when that is so already.

    The level's pose of the actor must be the one with which the scene that plays was compiled.
    """
    assert entity.handle is not None
    body = client.model.body(entity.handle.body_id)
    start = at(body.pos, body.quat)
    off = start.inverse().then(wanted)
    if abs(off.pos).max() < _CLOSE and abs(off.quat_wxyz[1:]).max() < _CLOSE:
        return None
    in_actor = authored_pose(client, entity.actor.name).inverse().then(start)
    return wanted.then(in_actor.inverse())


def move_actor(client: OperatorClient, name: str, pose: RigidTransform) -> None:
    """Change where the level puts an actor."""
    w, x, y, z = (float(one) for one in pose.quat_wxyz)
    client.scene.set_actor_transform(name, by_name=True, location=pose.pos.tolist(), rotation_quat=(x, y, z, w))


# -- bounds: boxes around the geoms of their bodies --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AxisAlignedBox:
    """An axis-aligned box, metres; (3,) each."""

    lower: Array
    upper: Array


def box_in(client: OperatorClient, entity: Entity, frame: RigidTransform) -> AxisAlignedBox | None:
    """The box around an entity along the axes of a frame; None when it has no geom of finite size."""
    into = frame.inverse()
    corners = [*_corners(client, entity, into)]
    if not corners:
        return None
    points = np.concatenate(corners)
    return AxisAlignedBox(points.min(axis=0), points.max(axis=0))


def bounds_message(box: AxisAlignedBox) -> Any:
    """Bounds: the upper corner, then the lower one."""
    return make(f"{PACKAGE}/msg/Bounds", type=BOX, points=[vector3(box.upper), vector3(box.lower)])


def region_of(bounds: Any) -> Callable[[AxisAlignedBox | None], bool]:
    """Whether a box has a point in common with what a Bounds message asks for; `ServiceRefused` when this is unknown.

    An entity without a box is nowhere.
    """
    points = [np.array([one.x, one.y, one.z]) for one in bounds.points]
    if bounds.type == BOX and len(points) == 2:
        lower, upper = np.minimum(*points), np.maximum(*points)
        return lambda own: own is not None and bool((own.lower <= upper).all() and (lower <= own.upper).all())
    if bounds.type == SPHERE and len(points) == 2:
        centre, radius = points[0], float(points[1][0])
        return lambda own: own is not None and _distance(own, centre) <= radius
    if bounds.type in (BOX, SPHERE):
        raise ServiceRefused(f"bounds of a box or a sphere have two points, not {len(points)}")
    raise ServiceRefused(
        f"bounds of type {bounds.type} cannot be filtered by: ask for a box (1) or a sphere (3)",
        ResultCode.FEATURE_UNSUPPORTED,
    )


def _distance(box: AxisAlignedBox, point: Array) -> float:
    return float(np.linalg.norm(np.clip(point, box.lower, box.upper) - point))


def _corners(client: OperatorClient, entity: Entity, into: RigidTransform) -> Iterator[Array]:
    """The corners (8, 3) of the boxes of its geoms, in another frame."""
    model, data = client.model, client.data
    for geom in _geoms(model, entity):
        centre, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
        signs = np.array(np.meshgrid((-1, 1), (-1, 1), (-1, 1))).reshape(3, 8).T
        world = (centre + signs * half) @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, into.quat_wxyz)
        yield world @ turn.reshape(3, 3).T + into.pos


def _geoms(model: Any, entity: Entity) -> list[int]:
    """The geoms of an entity's body and of all that hangs on it; planes have no end and are left out."""
    assert entity.handle is not None
    inside = {entity.handle.body_id}
    for body in range(entity.handle.body_id + 1, model.nbody):  # a body comes after its parent
        if int(model.body_parentid[body]) in inside:
            inside.add(body)
    bodies, kinds = model.geom_bodyid, model.geom_type
    return [geom for geom in range(model.ngeom) if int(bodies[geom]) in inside and int(kinds[geom]) != _PLANE]
