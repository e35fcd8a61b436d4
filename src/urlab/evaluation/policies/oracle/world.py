"""What a script knows: the task, where everything is now, the hands that it moves, and how they can grasp.

Hands come from above, and what looks the same after a turn can be held either way.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from urlab.evaluation.embodiments import TABLE_TOP_Z_M, Embodiment
from urlab.evaluation.policies.base import Action, Observation
from urlab.evaluation.policies.oracle.hand import Hand, measure_tools
from urlab.evaluation.simulation.kinematics import Array, Kinematics
from urlab.evaluation.tasks.layout import ObjectPoses
from urlab.evaluation.tasks.objects import TABLE_NAME, ObjectSpec, bounds_of
from urlab.evaluation.tasks.oracle_steps import Pick
from urlab.evaluation.tasks.parts import ObjectLink
from urlab.evaluation.tasks.shapes import BoxShape, CylinderShape, Plate, SphereShape
from urlab.evaluation.tasks.task import Task
from urlab.geometry import Pose, Quat, Vec3, multiply, rotate, wxyz_from_axis_angle

_SLIPPED_M = 0.03
_CLEARANCE_M = 0.03
_ON_M = 0.002
HOVER_M = 0.08
"""How far above a grasp the hand stops to look."""
_TABLE_CLEARANCE_M = 0.004
_UP = (0.0, 0.0, 1.0)
_DOWNWARDS = wxyz_from_axis_angle((1.0, 0.0, 0.0), math.pi)
_ANY_TURN = tuple(math.radians(degrees) for degrees in range(0, 360, 15))
Way = tuple[Pose, Pose]
"""A pose of the tool to stop at, and the one to end at."""


class OracleWorld:
    """One robot at one task. `see` is called with every observation, then the script moves on, then `action`."""

    def __init__(self, task: Task, embodiment: Embodiment, observation: Observation) -> None:
        self.task = task
        self._names = [*task.objects, TABLE_NAME]
        kinematics, tools = Kinematics(embodiment), measure_tools(embodiment)
        self._holds: dict[str, _Hold] = {}
        self._hands = [
            Hand(arm, tool, joints) for arm, tool, joints in zip(embodiment.arms, tools, kinematics.arms, strict=True)
        ]
        self._slots = [slot.joints for slot in embodiment.slots]
        for hand, ee_pose, joints in self._states(observation):
            hand.begin(ee_pose, joints)
        self.see(observation)

    def see(self, observation: Observation) -> None:
        """Take in where everything is."""
        privileged = observation["privileged"]
        poses = {name: Pose.of(one["pos"], one["quat_wxyz"]) for name, one in privileged["objects"].items()}
        self._placed = ObjectPoses(self.task.objects, poses, privileged["object_joints"])
        for hand, ee_pose, joints in self._states(observation):
            hand.see(ee_pose, joints)

    def action(self) -> Action:
        """The next action of the protocol: where all hands shall be, in absolute terms."""
        arms = [hand.action() for hand in self._hands]
        return {"control_type": "ee_pose", "action": arms[0] if len(arms) == 1 else arms, "is_rel": False}

    @property
    def hands(self) -> tuple[Hand, ...]:
        """In the order of the robot's arms."""
        return tuple(self._hands)

    def hand(self, name: str | None) -> Hand:
        """By the arm's name; None is the only one."""
        if name is None:
            return self._hands[0]
        return next(hand for hand in self._hands if hand.name == name)

    def spec(self, name: str) -> ObjectSpec:
        """What an object (or the table) is; a link's name gives the whole object."""
        return self._placed.spec(name)

    def pose(self, name: str) -> Pose:
        """Where an object (or one of its links, ``object/link``, or the table) is in the world."""
        return self._placed.pose(name)

    def joint(self, name: str, joint: str) -> float:
        """A joint's position, in radians or metres."""
        return self._placed.joint(name, joint)

    def hold(self, hand: Hand, step: Pick) -> None:
        """The hand has the object that the step names, as it is now."""
        self._holds[hand.name] = _Hold(step, self._in_tool(hand, step.object))

    def release(self, hand: Hand) -> None:
        """The hand is empty."""
        self._holds.pop(hand.name, None)

    def held(self, hand: Hand) -> Pick | None:
        """How the hand took what it is meant to have."""
        hold = self._holds.get(hand.name)
        return hold.step if hold else None

    def is_in(self, hand: Hand, name: str) -> bool:
        """Whether the object is still where the hand took hold of it."""
        hold = self._holds.get(hand.name)
        return hold is not None and math.dist(hold.in_tool, self._in_tool(hand, name)) < _SLIPPED_M

    def safe_z(self, hand: Hand) -> float:
        """The height at which a tool, and what it holds, passes over everything on the table."""
        held = self.held(hand)
        others = [top_z(self.spec(name), self.pose(name)) for name in self._names if not self._is_held(name)]
        below = hand.tool.longest_m
        if held is not None:
            below = max(below, hand.command.pos[2] - bottom_z(self.spec(held.object), self.pose(held.object)))
        return max((TABLE_TOP_Z_M, *others)) + below + _CLEARANCE_M

    def _is_held(self, name: str) -> bool:
        return any(hold.step.object == name for hold in self._holds.values())

    def _in_tool(self, hand: Hand, name: str) -> Vec3:
        return hand.measured.inverse().apply(self.pose(name)).pos

    def _states(self, observation: Observation) -> Iterator[tuple[Hand, Any, Array]]:
        """Per hand, its pose in the protocol's terms and the joints of its arm."""
        poses = observation["ee_pose_state"]
        joints = np.asarray(observation["joint_position_state"], dtype=np.float64)
        per_hand = [poses] if len(self._hands) == 1 else poses
        for hand, pose, slot in zip(self._hands, per_hand, self._slots, strict=True):
            yield hand, pose, joints[slot]


def top_z(spec: ObjectSpec, pose: Pose) -> float:
    """The height of its highest point in the world, joints at 0."""
    return max(corner[2] for corner in _corners(spec.bounds, pose))


def bottom_z(spec: ObjectSpec, pose: Pose) -> float:
    """The height of its lowest point in the world."""
    return min(corner[2] for corner in _corners(spec.bounds, pose))


def surface_z(link: ObjectLink, pose: Pose, x: float, y: float) -> float:
    """The height in the world of what carries things at (x, y): the highest part of the link there, or its top."""
    px, py, _ = pose.inverse().apply(Pose((x, y, pose.pos[2]))).pos
    boxes = [bounds_of(iter([part])) for part in link.parts]
    tops = [high[2] for low, high in boxes if _covers(low, high, px, py)]
    return pose.pos[2] + max(tops or [high[2] for _, high in boxes])


@dataclass(frozen=True)
class _Hold:
    """What a hand has: how it took it, and where the object was in the tool's frame then."""

    step: Pick
    in_tool: Vec3


def _covers(low: Vec3, high: Vec3, x: float, y: float) -> bool:
    return low[0] - _ON_M <= x <= high[0] + _ON_M and low[1] - _ON_M <= y <= high[1] + _ON_M


def _corners(bounds: tuple[Vec3, Vec3], pose: Pose) -> Iterator[Vec3]:
    low, high = bounds
    for x in (low[0], high[0]):
        for y in (low[1], high[1]):
            for z in (low[2], high[2]):
                yield pose.apply(Pose((x, y, z))).pos


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
