"""Poses and quaternions in MuJoCo's frame: metres, right-handed, Z up; quaternions are w, x, y, z unless named."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vec3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]

IDENTITY_WXYZ: Quat = (1.0, 0.0, 0.0, 0.0)

_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Pose:
    """Where something is: ``pos`` in metres, ``quat_wxyz`` of unit length."""

    pos: Vec3 = (0.0, 0.0, 0.0)
    quat_wxyz: Quat = IDENTITY_WXYZ

    @classmethod
    def of(cls, pos: Sequence[float], quat_wxyz: Sequence[float]) -> "Pose":
        """A pose from any numbers (arrays too), the quaternion normalised; ValueError when it is no rotation."""
        x, y, z = (float(part) for part in pos)
        return cls((x, y, z), normalised([float(part) for part in quat_wxyz]))

    @property
    def is_identity(self) -> bool:
        """Whether this pose moves nothing."""
        return self == Pose()

    def apply(self, inner: "Pose") -> "Pose":
        """The pose of something that sits at ``inner`` inside this pose's frame."""
        x, y, z = rotate(self.quat_wxyz, inner.pos)
        px, py, pz = self.pos
        return Pose((px + x, py + y, pz + z), multiply(self.quat_wxyz, inner.quat_wxyz))

    def inverse(self) -> "Pose":
        """The pose that undoes this one."""
        w, x, y, z = self.quat_wxyz
        back: Quat = (w, -x, -y, -z)
        px, py, pz = rotate(back, self.pos)
        return Pose((-px, -py, -pz), back)

    def raised(self, by_m: float) -> "Pose":
        """The pose that much higher."""
        x, y, z = self.pos
        return Pose((x, y, z + by_m), self.quat_wxyz)

    def towards(self, end: "Pose", share: float) -> "Pose":
        """The pose on the straight way to ``end``, that share of it done, turning the shorter way round."""
        x, y, z = (a + (b - a) * share for a, b in zip(self.pos, end.pos, strict=True))
        return Pose((x, y, z), slerp(self.quat_wxyz, end.quat_wxyz, share))

    def distance_m(self, other: "Pose") -> float:
        """Between the two origins."""
        return math.dist(self.pos, other.pos)

    def angle_rad(self, other: "Pose") -> float:
        """Of the turn between the two orientations, 0 to pi."""
        dot = abs(sum(a * b for a, b in zip(self.quat_wxyz, other.quat_wxyz, strict=True)))
        return 2 * math.acos(min(1.0, dot))


def multiply(a: Quat, b: Quat) -> Quat:
    """The rotation b followed by a."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def rotate(q: Quat, v: Sequence[float]) -> Vec3:
    """The vector v turned by q."""
    w, x, y, z = q
    _, rx, ry, rz = multiply(multiply(q, (0.0, v[0], v[1], v[2])), (w, -x, -y, -z))
    return rx, ry, rz


def normalised(q: Sequence[float]) -> Quat:
    """The unit quaternion along q; ValueError when q is zero or not finite."""
    length = math.hypot(*q)
    if not 1e-12 <= length < math.inf:
        raise ValueError(f"a quaternion of length {length:g} is no rotation")
    w, x, y, z = (part / length for part in q)
    return w, x, y, z


def wxyz_from_xyzw(q: Sequence[float]) -> Quat:
    """A quaternion in x, y, z, w as w, x, y, z."""
    x, y, z, w = q
    return w, x, y, z


def xyzw_from_wxyz(q: Sequence[float]) -> Quat:
    """A quaternion in w, x, y, z as x, y, z, w."""
    w, x, y, z = q
    return x, y, z, w


def wxyz_from_axis_angle(axis: Sequence[float], angle_rad: float) -> Quat:
    """The turn by an angle about a unit axis."""
    sine = math.sin(angle_rad / 2)
    return math.cos(angle_rad / 2), axis[0] * sine, axis[1] * sine, axis[2] * sine


def wxyz_from_rotation_vector(turn: Sequence[float]) -> Quat:
    """The rotation of an axis times an angle in radians."""
    angle = math.hypot(*turn)
    scale = math.sin(angle / 2) / angle if angle > _TINY else 0.5
    return math.cos(angle / 2), float(scale * turn[0]), float(scale * turn[1]), float(scale * turn[2])


def rotation_vector(q: Quat) -> Vec3:
    """Axis times angle, the angle from 0 to a whole turn: more than half a turn where w is negative."""
    w, x, y, z = q
    sine = math.hypot(x, y, z)
    scale = 2 * math.atan2(sine, w) / sine if sine > _TINY else 0.0
    return scale * x, scale * y, scale * z


def slerp(start: Quat, end: Quat, share: float) -> Quat:
    """The rotation on the shorter way from ``start`` to ``end``, that share of it done."""
    w, x, y, z = start
    turn = multiply(end, (w, -x, -y, -z))
    sign = 1.0 if turn[0] >= 0 else -1.0
    angle = 2 * math.acos(min(1.0, sign * turn[0]))
    sine = math.sin(angle / 2)
    if sine < _TINY:
        return end
    part = sign * math.sin(angle * share / 2) / sine
    step: Quat = (math.cos(angle * share / 2), turn[1] * part, turn[2] * part, turn[3] * part)
    return normalised(multiply(step, start))


def rotation_matrix(q: Sequence[float]) -> NDArray[np.float64]:
    """(3, 3): its columns are the turned axes."""
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def wxyz_from_euler_deg(rpy: Sequence[float]) -> Quat:
    """Roll, pitch, yaw in degrees about the fixed x, y, z axes: R = Rz Ry Rx."""
    half = [math.radians(angle) / 2 for angle in rpy]
    roll: Quat = (math.cos(half[0]), math.sin(half[0]), 0.0, 0.0)
    pitch: Quat = (math.cos(half[1]), 0.0, math.sin(half[1]), 0.0)
    yaw: Quat = (math.cos(half[2]), 0.0, 0.0, math.sin(half[2]))
    return multiply(multiply(yaw, pitch), roll)


def euler_deg_from_wxyz(q: Quat) -> Vec3:
    """Roll, pitch, yaw in degrees, such that R = Rz Ry Rx; at a pitch of ±90 degrees the yaw is 0."""
    w, x, y, z = q
    sine = max(-1.0, min(1.0, 2 * (w * y - z * x)))
    if abs(sine) > 1 - 1e-12:
        up = math.copysign(1.0, sine)
        roll = math.atan2(up * 2 * (x * y - w * z), up * 2 * (x * z + w * y))
        return math.degrees(roll), 90.0 * up, 0.0
    roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return math.degrees(roll), math.degrees(math.asin(sine)), math.degrees(yaw)


def all_finite(numbers: Sequence[float]) -> bool:
    """Whether every one of them is a number."""
    return all(math.isfinite(number) for number in numbers)
