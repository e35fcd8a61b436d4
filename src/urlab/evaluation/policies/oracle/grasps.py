"""How to grasp something and where to bring it.

Hands come from above, and what looks the same after a turn can be held either way.
"""

import math
from collections.abc import Iterable, Sequence

from urlab.evaluation.embodiments import TABLE_TOP_Z_M
from urlab.evaluation.policies.oracle.hand import Hand
from urlab.evaluation.policies.oracle.world import OracleWorld
from urlab.evaluation.tasks.objects import ObjectSpec
from urlab.evaluation.tasks.shapes import BoxShape, CylinderShape, Plate, SphereShape
from urlab.geometry import Pose, Quat, Vec3, multiply, rotate, wxyz_from_axis_angle

HOVER_M = 0.08
"""How far above a grasp the hand stops to look."""
_TABLE_CLEARANCE_M = 0.004
_UP = (0.0, 0.0, 1.0)
_DOWNWARDS = wxyz_from_axis_angle((1.0, 0.0, 0.0), math.pi)
_ANY_TURN = tuple(math.radians(degrees) for degrees in range(0, 360, 15))
Way = tuple[Pose, Pose]
"""A pose of the tool to stop at, and the one to end at."""


def from_above(pos: Vec3, closing_yaw_rad: float) -> Pose:
    """A tool that points straight down, whose fingers close along that direction."""
    return Pose(pos, multiply(yaw_quat(closing_yaw_rad + math.pi / 2), _DOWNWARDS))


def yaw_quat(angle_rad: float) -> Quat:
    """A turn about the vertical."""
    return wxyz_from_axis_angle(_UP, angle_rad)


def yaw_of(pose: Pose) -> float:
    """The direction of the x axis, seen from above."""
    x, y, _ = rotate(pose.quat_wxyz, (1.0, 0.0, 0.0))
    return math.atan2(y, x)


def grasps(pos: Vec3, closing_yaw_rad: float, *, any_quarter: bool = False) -> list[Pose]:
    """The ways to hold something there: two fingers can be swapped, and a square be held by either pair of sides."""
    step = math.pi / 2 if any_quarter else math.pi
    return [from_above(pos, closing_yaw_rad + step * number) for number in range(round(2 * math.pi / step))]


def symmetric_yaws(spec: ObjectSpec) -> Sequence[float]:
    """The turns about its own z axis after which an object looks the same."""
    shape = spec.shape
    if isinstance(shape, CylinderShape | SphereShape | Plate):
        return _ANY_TURN
    if isinstance(shape, BoxShape):
        quarters = 4 if math.isclose(shape.size[0], shape.size[1], rel_tol=1e-3) else 2
        return [2 * math.pi * number / quarters for number in range(quarters)]
    return (0.0,)


def easiest(hand: Hand, ways: Iterable[Sequence[Pose]]) -> Sequence[Pose]:
    """Of several ways, each a list of poses to go through, the one that bends the arm least; the first if none goes."""
    return min(ways, key=hand.effort)


def above_table(hand: Hand, pose: Pose) -> Pose:
    """The pose, raised if the fingers would touch the table there."""
    lowest_z = TABLE_TOP_Z_M + hand.tool.longest_m + _TABLE_CLEARANCE_M
    return pose.raised(max(0.0, lowest_z - pose.pos[2]))


def carry(world: OracleWorld, hand: Hand, name: str, to: Vec3, turn_rad: float) -> Pose:
    """The command of the tool that brings the object that it holds there, turned about the vertical.

    Reckoned from the hand's command, not from where it is: it will miss by as much then as now.
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
    return [(pose.raised(hover_m), pose) for pose in poses]
