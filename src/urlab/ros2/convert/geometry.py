"""geometry_msgs out of numbers. MuJoCo's quaternions are w, x, y, z; those of ROS x, y, z, w."""

from collections.abc import Sequence
from typing import Any

from urlab.ros2.convert.pose import Array, Pose, unit
from urlab.ros2.convert.stamps import header
from urlab.ros2.messages import make, typestore

Vector3: Any = typestore.types["geometry_msgs/msg/Vector3"]
Quaternion: Any = typestore.types["geometry_msgs/msg/Quaternion"]
Transform: Any = typestore.types["geometry_msgs/msg/Transform"]
_TransformStamped: Any = typestore.types["geometry_msgs/msg/TransformStamped"]
"""Made often enough that the checks of `make` would show."""

Numbers = Sequence[float] | Array


def vector3(values: Numbers) -> Any:
    """geometry_msgs/Vector3."""
    x, y, z = values
    return Vector3(x=float(x), y=float(y), z=float(z))


def point(values: Numbers) -> Any:
    """geometry_msgs/Point."""
    x, y, z = values
    return make("geometry_msgs/msg/Point", x=float(x), y=float(y), z=float(z))


def quaternion(quat_wxyz: Numbers) -> Any:
    """geometry_msgs/Quaternion, of length 1: readers of tf refuse any other."""
    w, x, y, z = unit(quat_wxyz)
    return Quaternion(x=x, y=y, z=z, w=w)


def pose_message(pos: Numbers, quat_wxyz: Numbers) -> Any:
    """geometry_msgs/Pose."""
    return make("geometry_msgs/msg/Pose", position=point(pos), orientation=quaternion(quat_wxyz))


def transform_of(pose: Pose) -> Any:
    """geometry_msgs/Transform."""
    return make("geometry_msgs/msg/Transform", translation=vector3(pose.pos), rotation=quaternion(pose.quat_wxyz))


def transform_stamped(stamp: Any, parent: str, child: str, transform: Any) -> Any:
    """geometry_msgs/TransformStamped: where ``child`` is in ``parent``."""
    return _TransformStamped(header=header(stamp, parent), child_frame_id=child, transform=transform)
