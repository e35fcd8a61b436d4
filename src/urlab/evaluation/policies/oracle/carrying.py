"""Where a hand goes to bring what it holds somewhere."""

import math
from collections.abc import Iterable

from urlab.evaluation.policies.oracle.grasps import easiest, yaw_quat
from urlab.evaluation.policies.oracle.hand import Hand
from urlab.evaluation.policies.oracle.poses import raised
from urlab.evaluation.policies.oracle.world import World
from urlab.geometry import Pose, Vec3, multiply, rotate

Way = tuple[Pose, Pose]
"""A pose of the tool to stop at, and the one to end at."""


def carry(world: World, hand: Hand, name: str, to: Vec3, turn_rad: float) -> Pose:
    """Where the tool must be told to go for the object that it holds to come there, turned about the vertical.

    Reckoned from where the hand was told to be, not from where it is: it will miss by as much then as now.
    """
    in_tool = hand.command.inverse().apply(world.pose(name)).pos
    quat = multiply(yaw_quat(turn_rad), hand.command.quat_wxyz)
    x, y, z = (goal - arm for goal, arm in zip(to, rotate(quat, in_tool), strict=True))
    return Pose((x, y, z), quat)


def first_that_goes(hand: Hand, poses: Iterable[Pose], hover_m: float) -> Pose:
    """The first pose that the arm reaches, and from above; the very first if there is none."""
    ways = _ways(poses, hover_m)
    return next((way for way in ways if hand.effort(way) < math.inf), ways[0])[-1]


def easiest_of(hand: Hand, poses: Iterable[Pose], hover_m: float) -> Pose:
    """The pose that bends the arm least when it comes from above."""
    return easiest(hand, _ways(poses, hover_m))[-1]


def _ways(poses: Iterable[Pose], hover_m: float) -> list[Way]:
    return [(raised(pose, hover_m), pose) for pose in poses]
