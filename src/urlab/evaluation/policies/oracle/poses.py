"""Poses between others, above them, and how far they are apart."""

import math

from urlab.geometry import Pose, Quat, multiply, normalised


def raised(pose: Pose, by_m: float) -> Pose:
    """The pose that much higher."""
    x, y, z = pose.pos
    return Pose((x, y, z + by_m), pose.quat_wxyz)


def between(start: Pose, end: Pose, share: float) -> Pose:
    """A pose on the way, the share of it done."""
    x, y, z = (a + (b - a) * share for a, b in zip(start.pos, end.pos, strict=True))
    return Pose((x, y, z), _slerp(start.quat_wxyz, end.quat_wxyz, share))


def distance_m(one: Pose, other: Pose) -> float:
    """How far apart two origins are."""
    return math.dist(one.pos, other.pos)


def angle_rad(one: Pose, other: Pose) -> float:
    """How far apart two directions are."""
    dot = abs(sum(a * b for a, b in zip(one.quat_wxyz, other.quat_wxyz, strict=True)))
    return 2 * math.acos(min(1.0, dot))


def _slerp(start: Quat, end: Quat, share: float) -> Quat:
    """The shorter way round."""
    w, x, y, z = start
    turn = multiply(end, (w, -x, -y, -z))
    sign = 1.0 if turn[0] >= 0 else -1.0
    angle = 2 * math.acos(min(1.0, sign * turn[0]))
    sine = math.sin(angle / 2)
    if sine < 1e-9:
        return end
    part = sign * math.sin(angle * share / 2) / sine
    step: Quat = (math.cos(angle * share / 2), turn[1] * part, turn[2] * part, turn[3] * part)
    return normalised(multiply(step, start))
