"""Between entities and messages of their state. Pure. Quaternions of ROS are x, y, z, w, those here w, x, y, z."""

import math
from typing import Any

import mujoco
import numpy as np

from urlab.ros2.convert.geometry import pose_message, vector3
from urlab.ros2.convert.pose import Array, Pose, at
from urlab.ros2.convert.stamps import header, time_of_s
from urlab.ros2.messages import make
from urlab.ros2.services.results import Refused
from urlab.ros2.services.things import Thing
from urlab.ros2.simulation_messages import PACKAGE

WORLD = "world"
_SHORTEST = 1e-3
"""A quaternion that is shorter was forgotten, and not rounded."""


def entity_state(thing: Thing, time_s: float) -> Any:
    """EntityState in the world at a simulation time; accelerations are not told."""
    twist = make("geometry_msgs/msg/Twist", linear=vector3(thing.linear), angular=vector3(thing.angular))
    return make(
        f"{PACKAGE}/msg/EntityState",
        header=header(time_of_s(time_s), WORLD),
        pose=pose_message(thing.pose.pos, thing.pose.quat_wxyz),
        twist=twist,
    )


def read_pose(message: Any, code: int) -> Pose:
    """A geometry_msgs/Pose; `Refused` with that code when it is none."""
    pos, turn = _numbers(message.position), message.orientation
    quat = (turn.w, turn.x, turn.y, turn.z)
    if not all(map(math.isfinite, (*pos, *quat))):
        raise Refused(code, f"the pose is not finite: position {pos}, orientation (x, y, z, w) {_xyzw(turn)}")
    if math.hypot(*quat) < _SHORTEST:
        raise Refused(code, f"the orientation (x, y, z, w) {_xyzw(turn)} has no length; none is (0, 0, 0, 1)")
    return at(pos, quat)


def read_twist(message: Any, code: int) -> tuple[Array, Array]:
    """Linear and angular velocity of a geometry_msgs/Twist; `Refused` with that code when they are none."""
    linear, angular = _numbers(message.linear), _numbers(message.angular)
    if not all(map(math.isfinite, (*linear, *angular))):
        raise Refused(code, f"the twist is not finite: linear {linear}, angular {angular}")
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
