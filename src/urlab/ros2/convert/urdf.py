"""A robot as URDF, made from the compiled model, for RViz and whatever else reads ``robot_description``.

Links and joints are called as in joint states and, after ``<robot>/``, in tf (see `urlab.ros2.frames`), and joint
values mean the same. What URDF cannot say: a ball joint is ``floating`` (tf has it), a free base is not there (the
root link is ``base_link``), bodies that move freely beside the robot are left out.

Shapes: what MuJoCo shows by default is visual, what can touch is collision. Boxes, spheres and cylinders are
themselves, a capsule is a cylinder and two spheres. Ellipsoids and meshes are the box around them: a URDF names mesh
files, and readers need not have any. Planes and heightfields are left out.
"""

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import mujoco
import numpy as np

from urlab.ros2.frames import BALL, SLIDE, RobotFrames, RobotLink
from urlab.ros2.geometry import RigidTransform, at, rpy
from urlab.ros2.messages import make
from urlab.ros2.names import UniqueNames
from urlab_client import Actuator, Joint, URLabArticulation

DESCRIPTION = "std_msgs/msg/String"

NO_LIMIT = 1e6
"""What stands for a limit that the model does not have: URDF wants a number."""

Shape = tuple[RigidTransform, str, dict[str, str]]
"""Where it is in its geom, the name of its element, and that element's attributes."""

_BOX, _SPHERE, _CYLINDER, _CAPSULE, _ELLIPSOID, _MESH = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}"))
    for name in ("BOX", "SPHERE", "CYLINDER", "CAPSULE", "ELLIPSOID", "MESH")
)
_SHOWN_GROUPS = 3
_PLAIN_RGBA = np.array([0.5, 0.5, 0.5, 1.0], np.float32)
"""The colour of a geom that leaves its colour to its material."""


def robot_description(model: Any, robot: URLabArticulation, frames: RobotFrames) -> Any:
    """std_msgs/String with the robot's URDF."""
    return make(DESCRIPTION, data=urdf(model, robot, frames))


def urdf(model: Any, robot: URLabArticulation, frames: RobotFrames) -> str:
    """The robot's URDF; the robot is called by its legal name."""
    return _UrdfWriter(model, robot, frames).text()


class _UrdfWriter:
    """Writes one robot."""

    def __init__(self, model: Any, robot: URLabArticulation, frames: RobotFrames) -> None:
        self._model, self._robot = model, robot
        self._names = UniqueNames(robot.joints)
        self._root = ET.Element("robot", name=frames.namespace)
        self._links = _hanging_on(frames.root, frames.links)

    def text(self) -> str:
        for link in self._links:
            self._add_link(link)
        for link in self._links[1:]:
            self._add_joint(link)
        ET.indent(self._root)
        return f'<?xml version="1.0"?>\n{ET.tostring(self._root, encoding="unicode")}\n'

    def _add_link(self, link: RobotLink) -> None:
        element = ET.SubElement(self._root, "link", name=link.name)
        if link.body_id is not None:
            self._add_inertial(element, link.body_id)
            _add_shapes(self._model, element, link.body_id)

    def _add_inertial(self, element: ET.Element, body_id: int) -> None:
        model, mass = self._model, float(self._model.body_mass[body_id])
        if mass <= 0.0:
            return
        inertial = ET.SubElement(element, "inertial")
        _add_origin(inertial, at(model.body_ipos[body_id], model.body_iquat[body_id]))
        ET.SubElement(inertial, "mass", value=_number(mass))
        ixx, iyy, izz = (_number(one) for one in model.body_inertia[body_id])
        ET.SubElement(inertial, "inertia", ixx=ixx, iyy=iyy, izz=izz, ixy="0", ixz="0", iyz="0")

    def _add_joint(self, link: RobotLink) -> None:
        joint = link.joint
        name = self._names.claim(f"{link.name}_fixed") if joint is None else joint.name
        element = ET.SubElement(self._root, "joint", name=name, type=_kind(joint))
        _add_origin(element, link.origin)
        ET.SubElement(element, "parent", link=str(link.parent))
        ET.SubElement(element, "child", link=link.name)
        if joint is not None and link.axis is not None:
            ET.SubElement(element, "axis", xyz=_numbers(link.axis))
            self._add_limits(element, joint)

    def _add_limits(self, element: ET.Element, joint: Joint) -> None:
        model, dof = self._model, joint.qvel_offset
        damping, friction = _number(model.dof_damping[dof]), _number(model.dof_frictionloss[dof])
        ET.SubElement(element, "dynamics", damping=damping, friction=friction)
        limit = ET.SubElement(element, "limit", effort=_number(self._effort(joint)), velocity=_number(NO_LIMIT))
        if joint.range is not None or joint.jnt_type == SLIDE:
            lower, upper = joint.range or (-NO_LIMIT, NO_LIMIT)
            limit.set("lower", _number(lower))
            limit.set("upper", _number(upper))

    def _effort(self, joint: Joint) -> float:
        """The most that actuators may do to a joint: its own limit, or that of the actuators that drive it."""
        if self._model.jnt_actfrclimited[joint.id]:
            return float(abs(self._model.jnt_actfrcrange[joint.id]).max())
        most = [_most(one) for one in self._robot.actuators.values() if one.joint == joint.name]
        return min(sum(most), NO_LIMIT) if most else NO_LIMIT


def _hanging_on(root: str, links: list[RobotLink]) -> list[RobotLink]:
    """The root and every link below it, parents first."""
    reached = {root}
    hanging = []
    for link in links:
        if link.name == root or link.parent in reached:
            reached.add(link.name)
            hanging.append(link)
    return hanging


def _kind(joint: Joint | None) -> str:
    if joint is None:
        return "fixed"
    if joint.jnt_type == BALL:
        return "floating"
    if joint.jnt_type == SLIDE:
        return "prismatic"
    return "continuous" if joint.range is None else "revolute"


def _most(actuator: Actuator) -> float:
    limits = actuator.forcerange
    return NO_LIMIT if limits is None else max(abs(one) for one in limits) * abs(float(actuator.gear[0]))


# -- shapes of a body --------------------------------------------------------------------------------------------------


def _add_shapes(model: Any, link: ET.Element, body_id: int) -> None:
    """Add the visual and collision shapes of a body to its link."""
    first = int(model.body_geomadr[body_id])
    for geom in range(first, first + int(model.body_geomnum[body_id])):
        place = at(model.geom_pos[geom], model.geom_quat[geom])
        for pose, kind, attributes in _shapes(model, geom):
            if int(model.geom_group[geom]) < _SHOWN_GROUPS:
                visual = _add(link, "visual", place.then(pose), kind, attributes)
                _add_colour(model, visual, geom)
            if int(model.geom_contype[geom]) or int(model.geom_conaffinity[geom]):
                _add(link, "collision", place.then(pose), kind, attributes)


def _add(link: ET.Element, role: str, pose: RigidTransform, kind: str, attributes: dict[str, str]) -> ET.Element:
    element = ET.SubElement(link, role)
    _add_origin(element, pose)
    ET.SubElement(ET.SubElement(element, "geometry"), kind, attributes)
    return element


def _add_colour(model: Any, visual: ET.Element, geom: int) -> None:
    rgba, material = model.geom_rgba[geom], int(model.geom_matid[geom])
    if material >= 0 and np.array_equal(rgba, _PLAIN_RGBA):
        rgba = model.mat_rgba[material]
    name = ",".join(f"{float(one):.3g}" for one in rgba)
    ET.SubElement(ET.SubElement(visual, "material", name=name), "color", rgba=_numbers(rgba))


def _shapes(model: Any, geom: int) -> Iterator[Shape]:
    """What a geom is made of."""
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    if kind == _BOX:
        yield at(), "box", {"size": _numbers(2 * size)}
    elif kind == _SPHERE:
        yield at(), "sphere", {"radius": _number(size[0])}
    elif kind in (_CYLINDER, _CAPSULE):
        yield at(), "cylinder", {"radius": _number(size[0]), "length": _number(2 * size[1])}
        for end in (size[1], -size[1]) if kind == _CAPSULE else ():
            yield at((0.0, 0.0, end)), "sphere", {"radius": _number(size[0])}
    elif kind in (_ELLIPSOID, _MESH):
        centre, half = model.geom_aabb[geom][:3], model.geom_aabb[geom][3:]
        yield at(centre), "box", {"size": _numbers(2 * half)}


# -- numbers and poses, every digit kept -------------------------------------------------------------------------------


def _number(value: Any) -> str:
    """A number."""
    return repr(float(value))


def _numbers(values: Any) -> str:
    """Several numbers."""
    return " ".join(_number(one) for one in values)


def _add_origin(element: ET.Element, pose: RigidTransform) -> None:
    """Say where something is in its link, or a link in its parent."""
    ET.SubElement(element, "origin", xyz=_numbers(pose.pos), rpy=_numbers(rpy(pose.quat_wxyz)))
