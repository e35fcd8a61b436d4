"""Poses of frames, and the messages that carry them: times, headers, vectors, quaternions, transforms.

Poses are as MuJoCo counts them: metres, quaternions w, x, y, z. Those of ROS are x, y, z, w. Every stamp is the
simulation time of the state or the picture that is shown.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.ros2.messages import make, typestore
from urlab_wire.ops.stepping import ClockBlock, split_s

Array = NDArray[np.float64]

_SAME_M = 1e-12
"""Lengths and quaternion parts below this are rounding."""


class RigidTransform(NamedTuple):
    """Where a frame is in another one: ``pos`` (3,) metres, ``quat_wxyz`` (4,), of length 1."""

    pos: Array
    quat_wxyz: Array

    def then(self, inner: "RigidTransform") -> "RigidTransform":
        """The pose in the outer frame of what has the pose ``inner`` in this one."""
        pos, quat = np.empty(3), np.empty(4)
        mujoco.mju_mulPose(pos, quat, self.pos, self.quat_wxyz, inner.pos, inner.quat_wxyz)
        return RigidTransform(pos, quat)

    def inverse(self) -> "RigidTransform":
        """The pose of the outer frame in this one."""
        pos, quat = np.empty(3), np.empty(4)
        mujoco.mju_negPose(pos, quat, self.pos, self.quat_wxyz)
        return RigidTransform(pos, quat)

    @property
    def is_identity(self) -> bool:
        """Whether both frames are the same."""
        return bool(np.abs(self.pos).max() < _SAME_M and np.abs(self.quat_wxyz[1:]).max() < _SAME_M)


def at(
    pos: Sequence[float] | Array = (0.0, 0.0, 0.0), quat_wxyz: Sequence[float] | Array = (1.0, 0.0, 0.0, 0.0)
) -> RigidTransform:
    """A pose of those numbers; the quaternion is brought to length 1."""
    return RigidTransform(np.array(pos, dtype=np.float64), np.array(unit(quat_wxyz), dtype=np.float64))


def turned(axis: Array, angle_rad: float) -> RigidTransform:
    """A turn about an axis (3,) of length 1 through the origin."""
    quat = np.empty(4)
    mujoco.mju_axisAngle2Quat(quat, axis, angle_rad)
    return RigidTransform(np.zeros(3), quat)


def unit(quat: Sequence[float] | Array) -> tuple[float, float, float, float]:
    """A quaternion of any order brought to length 1, as MuJoCo does it: (1, 0, 0, 0) where there is no length."""
    a, b, c, d = (float(one) for one in quat)
    length = math.sqrt(a * a + b * b + c * c + d * d)
    if length < mujoco.mjMINVAL:
        return 1.0, 0.0, 0.0, 0.0
    return a / length, b / length, c / length, d / length


def rpy(quat_wxyz: Array) -> tuple[float, float, float]:
    """Roll, pitch and yaw (rad) about the fixed x, y and z axes: R = Rz Ry Rx. Exact where pitch is 90 degrees too."""
    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, quat_wxyz)
    m = flat.reshape(3, 3)
    yaw = math.atan2(m[1, 0], m[0, 0])
    pitch = math.atan2(-m[2, 0], math.hypot(m[0, 0], m[1, 0]))
    sin, cos = math.sin(yaw), math.cos(yaw)
    roll = math.atan2(sin * m[0, 2] - cos * m[1, 2], cos * m[1, 1] - sin * m[0, 1])
    return roll, pitch, yaw


_Time: Any = typestore.types["builtin_interfaces/msg/Time"]
_Header: Any = typestore.types["std_msgs/msg/Header"]
"""Made often enough that the checks of `make` would show."""

_LAST_S = 2**31 - 1
"""ROS counts seconds in 32 bits with a sign; later times stand still."""


def time_message(clock: ClockBlock) -> Any:
    """builtin_interfaces/Time."""
    return _time(clock.sec, clock.nsec)


def time_of_s(seconds: float) -> Any:
    """builtin_interfaces/Time of seconds, split as the server splits those of its states."""
    return _time(*split_s(seconds))


def header(stamp: Any, frame_id: str) -> Any:
    """std_msgs/Header."""
    return _Header(stamp=stamp, frame_id=frame_id)


def _time(sec: int, nsec: int) -> Any:
    return _Time(sec=min(max(sec, -_LAST_S), _LAST_S), nanosec=nsec)


def clock_message(now: ClockBlock) -> Any:
    """rosgraph_msgs/Clock: a simulation time."""
    return make("rosgraph_msgs/msg/Clock", clock=time_message(now))


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


def transform_of(pose: RigidTransform) -> Any:
    """geometry_msgs/Transform."""
    return make("geometry_msgs/msg/Transform", translation=vector3(pose.pos), rotation=quaternion(pose.quat_wxyz))


def transform_stamped(stamp: Any, parent: str, child: str, transform: Any) -> Any:
    """geometry_msgs/TransformStamped: where ``child`` is in ``parent``."""
    return _TransformStamped(header=header(stamp, parent), child_frame_id=child, transform=transform)
