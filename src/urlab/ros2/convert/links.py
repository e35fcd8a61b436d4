"""The links of a robot: its bodies and the joints between them, as ROS has them.

A ROS link moves by one joint about an axis through its own origin; a MuJoCo body may have several joints, each with an
anchor elsewhere. So a body gets as many links as it needs: the last one is the body, with its name and frame, those
before it are named ``<body>_<joint>``. The pose of a link in its parent is ``origin`` followed by the joint's motion
at its ``qpos``: a turn about ``axis``, a way along it, or whatever a ball or free joint says. Joint values are
MuJoCo's own: a joint's ``ref`` is already in ``origin``.

``base_link`` is the frame of the robot's root body, whatever that body is called. It is

- the root of the tree, with the root body in it, where the root is free or fixed to the world;
- a frame in the root body, where the root has joints to the world. The root of the tree is then ``mount``, at the
  place of the root body in the model, which does not move.

A robot that has a body ``base_link`` keeps that one, and gets no other.

Bodies that move freely beside the robot's root hang on the world (``parent`` None), and so do the other bodies of the
world's when the root is free. A mocap body of a robot has a name here but no link: states do not tell where it is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from urlab.ros2.convert.pose import Array, Pose, at, turned
from urlab_client import Joint, URLabArticulation

WORLD = "world"
BASE_LINK, MOUNT, MAP, ODOM = "base_link", "mount", "map", "odom"

FREE, BALL, SLIDE, HINGE = (
    int(getattr(mujoco.mjtJoint, f"mjJNT_{name}")) for name in ("FREE", "BALL", "SLIDE", "HINGE")
)


@dataclass(frozen=True, eq=False)
class Link:
    """One link. ``parent`` is None for what hangs on the world; ``joint`` is None for what is fixed to its parent.

    ``origin`` is the link's pose in its parent where the joint's value is 0; ``axis`` (3,) is that of a hinge or a
    slide, in the link. ``body_id`` is None for a link that is no body.
    """

    name: str
    parent: str | None
    origin: Pose
    joint: Joint | None = None
    axis: Array | None = None
    body_id: int | None = None


class Names:
    """Hands out names that differ: one that is taken gets ``_2``, ``_3`` and so on."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)

    def claim(self, wanted: str) -> str:
        """That name, or the first free one like it."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name


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
        self.names = Names((MAP, ODOM))
        ids = sorted((body.id, short) for short, body in robot.bodies.items())
        self.of_body = {body_id: self.names.claim(short) for body_id, short in ids}
        self.root = self.base = self.of_body.get(self._first, BASE_LINK)
        self.links: list[Link] = []
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

    def _add_root(self, body_id: int, pose: Pose) -> None:
        self._root_pose = pose
        has_base = BASE_LINK in self.of_body.values()
        is_jointed = bool(self._joints.get(body_id)) and not self._is_free_body(body_id)
        if is_jointed:
            self.root = self.names.claim(MOUNT)
            self._append(self.root, None, pose)
            self._add_body(body_id, self.root, at())
            if not has_base:
                self.base = self.names.claim(BASE_LINK)
                self._append(self.base, self.of_body[body_id], at())
        elif has_base:
            self._add_body(body_id, None, pose)
        else:
            self.root = self.base = self.names.claim(BASE_LINK)
            free = self._joints[body_id][0] if self._is_free_body(body_id) else None
            self._append(self.root, None, at() if free else pose, free)
            self._append(self.of_body[body_id], self.root, at(), body_id=body_id)

    def _add_body(self, body_id: int, parent: str | None, place: Pose) -> None:
        """Add a body that is at ``place`` in its parent in the model's own pose, with a link for each joint."""
        name = self.of_body[body_id]
        joints = self._joints.get(body_id, [])
        for joint in joints:
            origin, place, axis = _split(self._model, joint, place)
            is_body = joint is joints[-1] and place.is_identity
            link = name if is_body else self.names.claim(f"{name}_{joint.name}")
            self._append(link, parent, origin, joint, axis, body_id if is_body else None)
            parent = link
        if parent != name:
            self._append(name, parent, place, body_id=body_id)

    def _append(
        self,
        name: str,
        parent: str | None,
        origin: Pose,
        joint: Joint | None = None,
        axis: Array | None = None,
        body_id: int | None = None,
    ) -> None:
        self.links.append(Link(name, parent, origin, joint, axis, body_id))

    def _is_free_body(self, body_id: int) -> bool:
        return any(joint.jnt_type == FREE for joint in self._joints.get(body_id, ()))


def _root_body(model: Any, robot: URLabArticulation) -> int:
    """The body that carries the robot: the client's choice, but never one that is moved from outside."""
    ids = [robot.body_id, *sorted(body.id for body in robot.bodies.values() if not model.body_parentid[body.id])]
    return next((one for one in ids if one >= 0 and int(model.body_mocapid[one]) < 0), -1)


def body_pose(model: Any, body_id: int) -> Pose:
    """The pose of a body in its parent, in the model's own pose."""
    return at(model.body_pos[body_id], model.body_quat[body_id])


def _joints_by_body(robot: URLabArticulation) -> dict[int, list[Joint]]:
    joints: dict[int, list[Joint]] = {}
    for joint in sorted(robot.joints.values(), key=lambda one: one.id):
        joints.setdefault(joint.body_id, []).append(joint)
    return joints


def _split(model: Any, joint: Joint, place: Pose) -> tuple[Pose, Pose, Array | None]:
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
