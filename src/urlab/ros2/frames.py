"""The frames of a scene: what they are called, how they hang together, and which of them never move.

Names. ``<robot>`` is a robot's prefix made legal for ROS, the same word as in its topics; everything else is MuJoCo's
short name (without ``<prefix>_``).

| frame | where | parent | in |
|---|---|---|---|
| ``world`` | MuJoCo's world: z up, metres | none | |
| ``<robot>/map``, ``<robot>/odom`` | the world (a free robot's) | ``world``, ``<robot>/map`` | tf_static |
| ``<robot>/base_link`` | the root body | ``<robot>/odom`` (free) or ``world`` | tf or tf_static |
| ``<robot>/<body>`` | the body | that of its parent body | tf (jointed) or tf_static |
| ``<robot>/<site>`` | a site with a sensor | its body | tf_static |
| ``<robot>/<site>_range_frame`` | a rangefinder: +x along the beam | its body | tf_static |
| ``<robot>/<camera>_optical_frame`` | +x right, +y down, +z ahead | its body | tf_static |
| ``<entity>`` | a body outside the robots | ``world``, or the entity that carries it | tf (free, mocap) or tf_static |
| ``<camera>_optical_frame`` | a camera that no robot owns | its body | tf_static |

A name that is taken gets ``_2``. A camera that follows something is not fixed to its body: its frame hangs on
``world`` and is published with each picture (`urlab.ros2.convert.cameras.camera_transform`).

Odometry is exact, so map, odom and world are one place (REP-105).

Links. A ROS link moves by one joint about an axis through its own origin; a MuJoCo body may have several joints, each
with an anchor elsewhere. So a body gets as many links as it needs: the last one is the body, with its name and frame,
those before it are named ``<body>_<joint>``. The pose of a link in its parent is ``origin`` followed by the joint's
motion at its ``qpos``: a turn about ``axis``, a way along it, or whatever a ball or free joint says. Joint values are
MuJoCo's own: a joint's ``ref`` is already in ``origin``.

``base_link`` is the frame of the robot's root body, whatever that body is called. It is

- the root of the tree, with the root body in it, where the root is free or fixed to the world;
- a frame in the root body, where the root has joints to the world. The root of the tree is then ``mount``, at the
  place of the root body in the model, which does not move.

A robot that has a body ``base_link`` keeps that one, and gets no other. Bodies that move freely beside the robot's
root hang on the world (``parent`` None), and so do the other bodies of the world's when the root is free. A mocap body
of a robot has a name here but no link: states do not tell where it is.

Links of a robot's URDF are called as here without ``<robot>/``: RViz wants ``<robot>`` as "TF Prefix", and
robot_state_publisher ``<robot>/`` as "frame_prefix".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from urlab.ros2.geometry import Array, RigidTransform, at, turned
from urlab.ros2.names import UniqueNames, legal_token, legal_tokens
from urlab_client import Joint, URLabArticulation, URLabClient

WORLD = "world"
BASE_LINK, MOUNT, MAP, ODOM = "base_link", "mount", "map", "odom"

FREE, BALL, SLIDE, HINGE = (
    int(getattr(mujoco.mjtJoint, f"mjJNT_{name}")) for name in ("FREE", "BALL", "SLIDE", "HINGE")
)

OPTICAL = at(quat_wxyz=(0.0, 1.0, 0.0, 0.0))
"""The optical frame in a camera of MuJoCo's, which looks along -z, +y up: half a turn about x."""

_OBJ = mujoco.mjtObj
_SITE = int(_OBJ.mjOBJ_SITE)
_RANGEFINDER = int(mujoco.mjtSensor.mjSENS_RANGEFINDER)
_FIXED_CAMERA = int(mujoco.mjtCamLight.mjCAMLIGHT_FIXED)

_BEAM = at(quat_wxyz=(1.0, 0.0, -1.0, 0.0))
"""A rangefinder looks along the site's +z; a quarter turn about -y takes +x there."""


# -- the links of a robot ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RobotLink:
    """One link. ``parent`` is None for what hangs on the world; ``joint`` is None for what is fixed to its parent.

    ``origin`` is the link's pose in its parent where the joint's value is 0; ``axis`` (3,) is that of a hinge or a
    slide, in the link. ``body_id`` is None for a link that is no body.
    """

    name: str
    parent: str | None
    origin: RigidTransform
    joint: Joint | None = None
    axis: Array | None = None
    body_id: int | None = None


class LinkTree:
    """The links of one robot, parents before children.

    ``root`` is the one link that everything in a URDF hangs on, ``base`` the one that is the root body's frame,
    ``of_body`` the link of each body by its id. Names are unique; ``names`` hands out more.
    """

    def __init__(self, model: Any, robot: URLabArticulation) -> None:
        self._model = model
        self._joints = _joints_by_body(robot)
        self._first = _root_body(model, robot)
        self._root_pose = at()
        self.is_free = robot.has_free_base
        self.names = UniqueNames((MAP, ODOM))
        ids = sorted((body.id, short) for short, body in robot.bodies.items())
        self.of_body = {body_id: self.names.claim(short) for body_id, short in ids}
        self.root = self.base = self.of_body.get(self._first, BASE_LINK)
        self.links: list[RobotLink] = []
        for body_id, _ in sorted(ids, key=lambda one: (one[0] != self._first, one[0])):
            self._add(body_id)

    def _add(self, body_id: int) -> None:
        parent_id, pose = int(self._model.body_parentid[body_id]), body_pose(self._model, body_id)
        if int(self._model.body_mocapid[body_id]) >= 0:
            return
        if body_id == self._first:
            self._add_root(body_id, pose)
        elif parent_id in self.of_body:
            self._add_body(body_id, self.of_body[parent_id], pose)
        elif self.is_free or self._is_free_body(body_id):
            self._add_body(body_id, None, pose)
        else:
            self._add_body(body_id, self.root, self._root_pose.inverse().then(pose))

    def _add_root(self, body_id: int, pose: RigidTransform) -> None:
        self._root_pose = pose
        has_base = BASE_LINK in self.of_body.values()
        is_jointed = bool(self._joints.get(body_id)) and not self._is_free_body(body_id)
        if is_jointed:
            self.root = self.names.claim(MOUNT)
            self.links.append(RobotLink(self.root, None, pose))
            self._add_body(body_id, self.root, at())
            if not has_base:
                self.base = self.names.claim(BASE_LINK)
                self.links.append(RobotLink(self.base, self.of_body[body_id], at()))
        elif has_base:
            self._add_body(body_id, None, pose)
        else:
            self.root = self.base = self.names.claim(BASE_LINK)
            free = self._joints[body_id][0] if self._is_free_body(body_id) else None
            self.links.append(RobotLink(self.root, None, at() if free else pose, free))
            self.links.append(RobotLink(self.of_body[body_id], self.root, at(), body_id=body_id))

    def _add_body(self, body_id: int, parent: str | None, place: RigidTransform) -> None:
        """Add a body that is at ``place`` in its parent in the model's own pose, with a link for each joint."""
        name = self.of_body[body_id]
        joints = self._joints.get(body_id, [])
        for joint in joints:
            origin, place, axis = _split(self._model, joint, place)
            is_body = joint is joints[-1] and place.is_identity
            link = name if is_body else self.names.claim(f"{name}_{joint.name}")
            self.links.append(RobotLink(link, parent, origin, joint, axis, body_id if is_body else None))
            parent = link
        if parent != name:
            self.links.append(RobotLink(name, parent, place, body_id=body_id))

    def _is_free_body(self, body_id: int) -> bool:
        return any(joint.jnt_type == FREE for joint in self._joints.get(body_id, ()))


def _root_body(model: Any, robot: URLabArticulation) -> int:
    """The body that carries the robot: the client's choice, but never one that is moved from outside."""
    ids = [robot.body_id, *sorted(body.id for body in robot.bodies.values() if not model.body_parentid[body.id])]
    return next((one for one in ids if one >= 0 and int(model.body_mocapid[one]) < 0), -1)


def body_pose(model: Any, body_id: int) -> RigidTransform:
    """The pose of a body in its parent, in the model's own pose."""
    return at(model.body_pos[body_id], model.body_quat[body_id])


def _joints_by_body(robot: URLabArticulation) -> dict[int, list[Joint]]:
    joints: dict[int, list[Joint]] = {}
    for joint in sorted(robot.joints.values(), key=lambda one: one.id):
        joints.setdefault(joint.body_id, []).append(joint)
    return joints


def _split(model: Any, joint: Joint, place: RigidTransform) -> tuple[RigidTransform, RigidTransform, Array | None]:
    """Put a joint at ``place``: the pose before its motion, the pose after it, and its axis.

    MuJoCo turns a body about an anchor by the joint's value less its ref: to the anchor, back by the ref, then the
    motion, then back from the anchor.
    """
    if joint.jnt_type == FREE:
        return at(), at(), None
    axis, anchor = np.array(model.jnt_axis[joint.id]), np.array(model.jnt_pos[joint.id])
    ref = float(model.qpos0[joint.qpos_offset])
    if joint.jnt_type == SLIDE:
        return place.then(at(-ref * axis)), at(), axis
    if joint.jnt_type == BALL:
        return place.then(at(anchor)), at(-anchor), None
    return place.then(at(anchor)).then(turned(axis, -ref)), at(-anchor), axis


# -- the frames of robots, entities and cameras ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StaticFrame:
    """A frame that never moves in its parent."""

    parent: str
    child: str
    pose: RigidTransform


@dataclass(frozen=True, eq=False)
class EntityFrame:
    """What tf knows of an entity: its frame, and the entity ``carrier`` in which it has the fixed pose ``place``.

    ``carrier`` is the entity itself where that moves, and None for what is fixed to the world: ``place`` is then that
    in the world. ``topic_name`` is its name made legal for ROS. ``is_robots``: a robot's own free body, whose frame is
    among those of the robot.
    """

    name: str
    topic_name: str
    frame_id: str
    carrier: str | None
    place: RigidTransform
    is_robots: bool = False

    @property
    def moves(self) -> bool:
        """Whether it moves by itself, and not with another body."""
        return self.carrier == self.name


class RobotFrames:
    """The frames of one robot. ``namespace`` is its legal name; ``links`` and ``root`` are those of `LinkTree`.

    Links have names without the namespace, everything else here is a frame id: ``base`` of the root body, ``odom`` of
    the frame that a free robot's base moves in (None for any other), ``bodies`` of each body by id, ``sites`` and
    ``beams`` of the sites that have sensors, or rangefinders, ``cameras`` of each optical frame by the camera's short
    name. ``static`` and ``following`` are as in `SceneFrames`.
    """

    def __init__(self, model: Any, robot: URLabArticulation, namespace: str) -> None:
        self.namespace = namespace
        self._tree = LinkTree(model, robot)
        self._model, self._prefix = model, robot.prefix
        self.links: list[RobotLink] = self._tree.links
        self.root = self._tree.root
        self.base = self.frame(self._tree.base)
        self.odom = self.frame(ODOM) if self._tree.is_free else None
        self.bodies = {0: WORLD} | {body: self.frame(link) for body, link in self._tree.of_body.items()}
        self.static = [*self._localised(), *self._fixed_links()]
        self.sites: dict[int, str] = {}
        self.beams: dict[int, str] = {}
        self._add_sites(robot)
        self.cameras = {short: self.frame(self._tree.names.claim(f"{short}_optical_frame")) for short in robot.cameras}
        compiled = {f"{robot.prefix}_{short}": frame for short, frame in self.cameras.items()}
        edges, self.following = optical_frames(model, compiled, self.bodies)
        self.static += edges

    def frame(self, name: str) -> str:
        """The frame id of a link's name."""
        return f"{self.namespace}/{name}"

    def ends(self, link: RobotLink) -> tuple[str, str]:
        """The frame ids of a link's parent and of the link."""
        if link.parent is not None:
            return self.frame(link.parent), self.frame(link.name)
        odom = self.odom if link.name == self.root else None
        return odom or WORLD, self.frame(link.name)

    def _localised(self) -> list[StaticFrame]:
        if self.odom is None:
            return []
        return [StaticFrame(WORLD, self.frame(MAP), at()), StaticFrame(self.frame(MAP), self.odom, at())]

    def _fixed_links(self) -> list[StaticFrame]:
        return [StaticFrame(*self.ends(link), link.origin) for link in self.links if link.joint is None]

    def _add_sites(self, robot: URLabArticulation) -> None:
        for sensor in robot.sensors.values():
            if int(self._model.sensor_objtype[sensor.id]) != _SITE:
                continue
            site = int(self._model.sensor_objid[sensor.id])
            if sensor.sensor_type == _RANGEFINDER:
                self._add_site(self.beams, site, "_range_frame", _BEAM)
            else:
                self._add_site(self.sites, site, "", at())

    def _add_site(self, table: dict[int, str], site: int, suffix: str, turn: RigidTransform) -> None:
        if site in table:
            return
        short = str(mujoco.mj_id2name(self._model, _OBJ.mjOBJ_SITE, site)).removeprefix(f"{self._prefix}_")
        table[site] = self.frame(self._tree.names.claim(f"{short}{suffix}"))
        pose = at(self._model.site_pos[site], self._model.site_quat[site]).then(turn)
        self.static.append(StaticFrame(self.bodies[int(self._model.site_bodyid[site])], table[site], pose))


class SceneFrames:
    """All frames of the scene that a client shows. Made from a handshake, and good for as long as that is.

    ``robots`` is keyed by prefix, ``entities`` by name, ``cameras`` (optical frames) by full name. ``static`` are the
    frames that never move in their parents; ``following`` the optical frames whose place comes with pictures.
    Never changes; any thread.
    """

    def __init__(self, client: URLabClient) -> None:
        model = client.model
        if model is None:
            raise ValueError("frames come from the client's model: discover() a playing server, with local_model=True")
        spaces = legal_tokens(client.articulations)
        self.robots = {
            prefix: RobotFrames(model, robot, spaces[prefix]) for prefix, robot in client.articulations.items()
        }
        self._bodies = {body: frame for one in self.robots.values() for body, frame in one.bodies.items()} | {0: WORLD}
        self.entities = self._entity_frames(model, client)
        self.static = [edge for robot in self.robots.values() for edge in robot.static] + self._fixed_entities()
        self.cameras = {
            f"{prefix}/{short}": frame for prefix, one in self.robots.items() for short, frame in one.cameras.items()
        }
        self.following = {frame for robot in self.robots.values() for frame in robot.following}
        names = UniqueNames(one.frame_id for one in self.entities.values())
        own = {camera: names.claim(f"{legal_token(camera)}_optical_frame") for camera in client.global_cameras}
        self.cameras |= own
        edges, following = optical_frames(model, own, self._bodies)
        self.static += edges
        self.following |= following

    def _entity_frames(self, model: Any, client: URLabClient) -> dict[str, EntityFrame]:
        bodies = {one.body_id: name for name, one in client.entities.items() if name not in client.articulations}
        words = legal_tokens((WORLD, *bodies.values()))
        made = {name: self._entity(model, body, bodies, words[name]) for body, name in bodies.items()}
        self._bodies |= {body: made[name].frame_id for body, name in bodies.items()}
        return made

    def _entity(self, model: Any, body: int, names: Mapping[int, str], word: str) -> EntityFrame:
        carrier_id, place = _carrier(model, body)
        carrier = names.get(carrier_id, names[body]) if carrier_id else None
        return EntityFrame(names[body], word, self._bodies.get(body, word), carrier, place, body in self._bodies)

    def _fixed_entities(self) -> list[StaticFrame]:
        return [
            StaticFrame(self.entities[one.carrier].frame_id if one.carrier else WORLD, one.frame_id, one.place)
            for one in self.entities.values()
            if not one.moves
        ]


def optical_frames(
    model: Any, frames: Mapping[str, str], bodies: Mapping[int, str]
) -> tuple[list[StaticFrame], set[str]]:
    """Where the optical frames of cameras (by compiled name) are in those of their bodies.

    Those that are not fixed to a body, because their cameras follow something, are in the set instead.
    """
    edges = [optical_edge(model, camera, frame, bodies) for camera, frame in frames.items()]
    following = {frame for frame, edge in zip(frames.values(), edges, strict=True) if edge is None}
    return [edge for edge in edges if edge is not None], following


def optical_edge(model: Any, camera: str, frame: str, bodies: Mapping[int, str]) -> StaticFrame | None:
    """Where the optical frame of a camera (compiled name) is in that of its body; None when it is not fixed to it."""
    index = mujoco.mj_name2id(model, _OBJ.mjOBJ_CAMERA, camera)
    if index < 0 or int(model.cam_mode[index]) != _FIXED_CAMERA or int(model.cam_bodyid[index]) not in bodies:
        return None
    pose = at(model.cam_pos[index], model.cam_quat[index]).then(OPTICAL)
    return StaticFrame(bodies[int(model.cam_bodyid[index])], frame, pose)


def _carrier(model: Any, body: int) -> tuple[int, RigidTransform]:
    """The first body at or above this one that can move (0: none), and the pose of this one in it."""
    place = at()
    while body and not int(model.body_jntnum[body]) and int(model.body_mocapid[body]) < 0:
        place = body_pose(model, body).then(place)
        body = int(model.body_parentid[body])
    return body, place
