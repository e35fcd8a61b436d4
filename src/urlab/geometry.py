"""Poses and quaternions in MuJoCo's frame: metres, right-handed, Z up; quaternions are w, x, y, z unless named."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Vec3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]

IDENTITY_WXYZ: Quat = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Pose:
    """Where something is: ``pos`` in metres, ``quat_wxyz`` of unit length."""

    pos: Vec3 = (0.0, 0.0, 0.0)
    quat_wxyz: Quat = IDENTITY_WXYZ

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
    """Reorder."""
    x, y, z, w = q
    return w, x, y, z


def xyzw_from_wxyz(q: Sequence[float]) -> Quat:
    """Reorder."""
    w, x, y, z = q
    return x, y, z, w


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
