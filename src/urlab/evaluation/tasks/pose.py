"""Poses of objects in the world: metres, +Z up, quaternions w, x, y, z."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from urlab.geometry import Pose, Quat, normalised

__all__ = ["Pose", "angle_quat", "pose_of", "rotation_matrix", "rounded"]

DECIMALS = 6
"""Layouts are rounded to this, so that the last bits of a machine's arithmetic do not show."""


def angle_quat(axis: Sequence[float], angle_rad: float) -> Quat:
    """The turn by an angle about a unit axis."""
    sine = math.sin(angle_rad / 2)
    return math.cos(angle_rad / 2), axis[0] * sine, axis[1] * sine, axis[2] * sine


def pose_of(pos: Sequence[float], quat_wxyz: Sequence[float]) -> Pose:
    """A pose from any numbers (arrays too); ValueError when the quaternion is no rotation."""
    x, y, z = (float(part) for part in pos)
    return Pose((x, y, z), normalised([float(part) for part in quat_wxyz]))


def rotation_matrix(quat_wxyz: Sequence[float]) -> NDArray[np.float64]:
    """(3, 3): its columns are the turned axes."""
    w, x, y, z = quat_wxyz
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def rounded(pose: Pose) -> Pose:
    """The pose to `DECIMALS` places, without negative zeros."""
    x, y, z = (round(part, DECIMALS) + 0.0 for part in pose.pos)
    w, i, j, k = (round(part, DECIMALS) + 0.0 for part in pose.quat_wxyz)
    return Pose((x, y, z), (w, i, j, k))
