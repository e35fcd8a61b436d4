"""A robot as URDF, made from the compiled model, for RViz and whatever else reads ``robot_description``.

Links and joints are called as in joint states and, after ``<robot>/``, in tf (see `urlab.ros2.frames`), and joint
values mean the same. What URDF cannot say: a ball joint is ``floating`` (tf tells it), a free base is not there (the
root link is ``base_link``), bodies that move freely beside the robot are left out.
"""

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from urlab.ros2.convert.links import BALL, SLIDE, Link, Names
from urlab.ros2.convert.pose import at
from urlab.ros2.convert.urdf_shapes import add_shapes
from urlab.ros2.convert.urdf_text import add_origin, number, numbers
from urlab.ros2.messages import make
from urlab_client import Actuator, Joint, URLabArticulation

if TYPE_CHECKING:
    from urlab.ros2.frames import RobotFrames

DESCRIPTION = "std_msgs/msg/String"

NO_LIMIT = 1e6
"""What stands for a limit that the model does not have: URDF wants a number."""


def robot_description(model: Any, robot: URLabArticulation, frames: "RobotFrames") -> Any:
    """std_msgs/String with the robot's URDF."""
    return make(DESCRIPTION, data=urdf(model, robot, frames))


def urdf(model: Any, robot: URLabArticulation, frames: "RobotFrames") -> str:
    """The robot's URDF; the robot is called by its legal name."""
    return _Writer(model, robot, frames).text()


class _Writer:
    """Writes one robot."""

    def __init__(self, model: Any, robot: URLabArticulation, frames: "RobotFrames") -> None:
        self._model, self._robot = model, robot
        self._names = Names(robot.joints)
        self._root = ET.Element("robot", name=frames.namespace)
        self._links = _hanging_on(frames.root, frames.links)

    def text(self) -> str:
        for link in self._links:
            self._add_link(link)
        for link in self._links[1:]:
            self._add_joint(link)
        ET.indent(self._root)
        return f'<?xml version="1.0"?>\n{ET.tostring(self._root, encoding="unicode")}\n'

    def _add_link(self, link: Link) -> None:
        element = ET.SubElement(self._root, "link", name=link.name)
        if link.body_id is not None:
            self._add_inertial(element, link.body_id)
            add_shapes(self._model, element, link.body_id)

    def _add_inertial(self, element: ET.Element, body_id: int) -> None:
        model, mass = self._model, float(self._model.body_mass[body_id])
        if mass <= 0.0:
            return
        inertial = ET.SubElement(element, "inertial")
        add_origin(inertial, at(model.body_ipos[body_id], model.body_iquat[body_id]))
        ET.SubElement(inertial, "mass", value=number(mass))
        ixx, iyy, izz = (number(one) for one in model.body_inertia[body_id])
        ET.SubElement(inertial, "inertia", ixx=ixx, iyy=iyy, izz=izz, ixy="0", ixz="0", iyz="0")

    def _add_joint(self, link: Link) -> None:
        joint = link.joint
        name = self._names.claim(f"{link.name}_fixed") if joint is None else joint.name
        element = ET.SubElement(self._root, "joint", name=name, type=_kind(joint))
        add_origin(element, link.origin)
        ET.SubElement(element, "parent", link=str(link.parent))
        ET.SubElement(element, "child", link=link.name)
        if joint is not None and link.axis is not None:
            ET.SubElement(element, "axis", xyz=numbers(link.axis))
            self._add_limits(element, joint)

    def _add_limits(self, element: ET.Element, joint: Joint) -> None:
        model, dof = self._model, joint.qvel_offset
        damping, friction = number(model.dof_damping[dof]), number(model.dof_frictionloss[dof])
        ET.SubElement(element, "dynamics", damping=damping, friction=friction)
        limit = ET.SubElement(element, "limit", effort=number(self._effort(joint)), velocity=number(NO_LIMIT))
        if joint.range is not None or joint.jnt_type == SLIDE:
            lower, upper = joint.range or (-NO_LIMIT, NO_LIMIT)
            limit.set("lower", number(lower))
            limit.set("upper", number(upper))

    def _effort(self, joint: Joint) -> float:
        """The most that actuators may do to a joint: its own limit, or that of the actuators that drive it."""
        if self._model.jnt_actfrclimited[joint.id]:
            return float(abs(self._model.jnt_actfrcrange[joint.id]).max())
        most = [_most(one) for one in self._robot.actuators.values() if one.joint == joint.name]
        return min(sum(most), NO_LIMIT) if most else NO_LIMIT


def _hanging_on(root: str, links: list[Link]) -> list[Link]:
    """The root and every link below it, parents first."""
    reached = {root}
    kept = []
    for link in links:
        if link.name == root or link.parent in reached:
            reached.add(link.name)
            kept.append(link)
    return kept


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
