"""The way of a tool that drives the handle of a drawer or a door."""

import math

from urlab.evaluation.policies.oracle.grasps import HOVER_M, above_table, easiest, from_above, yaw_of
from urlab.evaluation.policies.oracle.hand import Hand
from urlab.evaluation.policies.oracle.world import World
from urlab.evaluation.tasks.oracle_steps import Operate
from urlab.evaluation.tasks.parts import Joint, Link, Part
from urlab.geometry import Pose, Vec3

_FINGER_M = 0.013
"""Half of what closed fingers measure."""
_SLACK_M = 0.006
"""Left between fingers and handle before they touch."""
_BELOW_M = 0.012
"""How far below the handle the fingertips go."""
_CLOSE_ENOUGH_M = 0.003
"""How much of the handle's way may be left."""
_TURNS = tuple(math.radians(degrees) for degrees in (90, -90, 0, 180))


class HandlePath:
    """Where the tool goes as the joint moves: beside the handle, opposite to where the handle is to go.

    So closed fingers drag an opening drawer from behind its bar, and push a closing one from before it. The handle is
    the last part of the joint's link.
    """

    def __init__(self, world: World, hand: Hand, step: Operate) -> None:
        spec = world.spec(step.object)
        self._hand, self._base_w = hand, world.pose(step.object)
        self._joint = spec.joints[step.joint]
        self._handle = _link(spec.links, step.joint).parts[-1]
        start, self._goal = world.joint(step.object, step.joint), self._joint.from_file(step.to)
        self.sign = math.copysign(1.0, self._goal - start)
        self._spot = self._touching()
        ways = [[self._pose(at, turn) for at in (start, self._goal)] for turn in _TURNS]
        best = easiest(hand, ways)
        self._turn = _TURNS[ways.index(list(best))]

    @property
    def clear_m(self) -> float:
        """How far up the fingers are clear of the handle."""
        return 2 * self._handle.size[2] + _BELOW_M + HOVER_M

    def left(self, at: float) -> float:
        """How far the joint still has to go; negative beyond the goal."""
        return self.sign * (self._goal - at)

    def is_done(self, at: float) -> bool:
        """Whether that is near enough to the goal."""
        return self.left(at) < self.angle(_CLOSE_ENOUGH_M)

    def tool(self, at: float) -> Pose:
        """Where the tool is when the joint is there."""
        return self._pose(at, self._turn)

    def angle(self, way_m: float) -> float:
        """How far the joint moves when the handle moves by that much."""
        if self._joint.kind == "slide":
            return way_m
        x, y = (a - b for a, b in zip(self._handle.pos[:2], self._joint.pos[:2], strict=True))
        return way_m / math.hypot(x, y)

    def _touching(self) -> Vec3:
        """A point in the link's frame beside the handle, opposite to where the handle goes."""
        way = _way(self._joint, self._handle, self.sign)
        off = _half(self._handle, way) + _FINGER_M + _SLACK_M
        x, y, z = (part - off * along for part, along in zip(self._handle.pos, way, strict=True))
        return x, y, z

    def _pose(self, at: float, turn: float) -> Pose:
        link_w = self._base_w.apply(self._joint.moved(at))
        x, y, z = link_w.apply(Pose(self._spot)).pos
        depth = z - self._handle.size[2] - _BELOW_M + self._hand.tool.reach_m(0.0)
        spot = above_table(self._hand, Pose((x, y, depth)))
        return from_above(spot.pos, yaw_of(link_w) + turn)


def _link(links: tuple[Link, ...], joint: str) -> Link:
    return next(link for link in links if link.joint is not None and link.joint.name == joint)


def _way(joint: Joint, handle: Part, sign: float) -> Vec3:
    """Which way the handle goes at first, a unit vector in the link's frame."""
    small = 1e-4
    moved = joint.moved(sign * small).apply(Pose(handle.pos)).pos
    x, y, z = (a - b for a, b in zip(moved, handle.pos, strict=True))
    length = math.hypot(x, y, z)
    return x / length, y / length, z / length


def _half(part: Part, way: Vec3) -> float:
    return sum(half * abs(along) for half, along in zip(part.size, way, strict=True))
