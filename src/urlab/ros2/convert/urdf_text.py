"""Numbers and poses as URDF writes them, every digit kept."""

from typing import Any
from xml.etree import ElementTree as ET

from urlab.ros2.convert.pose import Pose, rpy


def number(value: Any) -> str:
    """A number."""
    return repr(float(value))


def numbers(values: Any) -> str:
    """Several numbers."""
    return " ".join(number(one) for one in values)


def add_origin(element: ET.Element, pose: Pose) -> None:
    """Say where something is in its link, or a link in its parent."""
    ET.SubElement(element, "origin", xyz=numbers(pose.pos), rpy=numbers(rpy(pose.quat_wxyz)))
