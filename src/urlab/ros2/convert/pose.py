"""Poses as MuJoCo counts them: metres, quaternions w, x, y, z. For what is worked out once per scene."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SAME_M = 1e-12
"""Lengths and quaternion parts below this are rounding."""


class Pose(NamedTuple):
    """Where a frame is in another one: ``pos`` (3,) metres, ``quat_wxyz`` (4,), of length 1."""

    pos: Array
    quat_wxyz: Array

    def then(self, inner: "Pose") -> "Pose":
        """The pose in the outer frame of what has the pose ``inner`` in this one."""
        pos, quat = np.empty(3), np.empty(4)
        mujoco.mju_mulPose(pos, quat, self.pos, self.quat_wxyz, inner.pos, inner.quat_wxyz)
        return Pose(pos, quat)

    def inverse(self) -> "Pose":
        """The pose of the outer frame in this one."""
        pos, quat = np.empty(3), np.empty(4)
        mujoco.mju_negPose(pos, quat, self.pos, self.quat_wxyz)
        return Pose(pos, quat)

    @property
    def is_identity(self) -> bool:
        """Whether both frames are the same."""
        return bool(np.abs(self.pos).max() < _SAME_M and np.abs(self.quat_wxyz[1:]).max() < _SAME_M)


def at(
    pos: Sequence[float] | Array = (0.0, 0.0, 0.0), quat_wxyz: Sequence[float] | Array = (1.0, 0.0, 0.0, 0.0)
) -> Pose:
    """A pose of those numbers; the quaternion is brought to length 1."""
    return Pose(np.array(pos, dtype=np.float64), np.array(unit(quat_wxyz), dtype=np.float64))


def turned(axis: Array, angle_rad: float) -> Pose:
    """A turn about an axis (3,) of length 1 through the origin."""
    quat = np.empty(4)
    mujoco.mju_axisAngle2Quat(quat, axis, angle_rad)
    return Pose(np.zeros(3), quat)


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
