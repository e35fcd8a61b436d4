"""What a hand can do: one function for each step of the task files' ``[[oracle]]``.

A skill is a function of the world and the step that yields once per control step (see `Motion`). It checks the result
and tries again a few times before it gives up; giving up is silent, as the goal of the task shows it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from urlab.evaluation.embodiments import TABLE_TOP_Z_M
from urlab.evaluation.policies.oracle.hand import (
    CAREFUL_M_S,
    CONTROL_HZ,
    Hand,
    Motion,
    arrive,
    grip,
    move,
    together,
    travel,
    wait,
)
from urlab.evaluation.policies.oracle.world import (
    HOVER_M,
    OracleWorld,
    above_table,
    carry,
    easiest,
    easiest_of,
    first_that_goes,
    from_above,
    grasps,
    surface_z,
    symmetric_yaws,
    yaw_of,
    yaw_quat,
)
from urlab.evaluation.tasks.oracle_steps import (
    HandOver,
    Home,
    LiftTogether,
    Offset,
    Operate,
    OracleStep,
    Pick,
    Place,
    Wait,
)
from urlab.evaluation.tasks.parts import ObjectJoint, ObjectLink, Part
from urlab.geometry import Pose, Vec3, rotate

TRIES = 3
_LIFT_SHARE = 0.5
"""An object that rose by less than this share of the lift was not grasped."""
_STRAY_M = 0.06
"""An object that came to rest farther than this from where it was put has rolled away or was dropped."""
_OTHER_TURNS = tuple(math.radians(degrees) for turn in range(15, 180, 15) for degrees in (turn, -turn))
_DRAG_M_S = 0.08
_PRESS_M = 0.05
"""How far beyond its goal a hand may be commanded: motors yield to what they push."""
_FINGER_M = 0.013
"""Half of what closed fingers measure."""
_SLACK_M = 0.006
"""Left between fingers and handle before they touch."""
_BELOW_M = 0.012
"""How far below the handle the fingertips go."""
_CLOSE_ENOUGH_M = 0.003
"""How much of the handle's way may be left."""
_TURNS = tuple(math.radians(degrees) for degrees in (90, -90, 0, 180))
_DROPPED_M = 0.05


def pick(world: OracleWorld, step: Pick) -> Motion:
    """Until the object is in the hand and up, or it has failed too often."""
    hand = world.hand(step.arm)
    for _ in range(TRIES):
        before_z = world.pose(step.object).pos[2]
        yield from _grasp(world, hand, step)
        if is_lifted(world, step.object, before_z, step.lift):
            world.hold(hand, step)
            return
        yield from grip(hand, 1.0)


def regain(world: OracleWorld, hand: Hand, name: str) -> Motion:
    """Pick the object up again, as the hand had it, if the hand has lost it."""
    before = world.held(hand)
    if before is not None and not world.is_in(hand, name):
        yield from pick(world, before)


def is_lifted(world: OracleWorld, name: str, before_z: float, lift_m: float) -> bool:
    """Whether an object that was at that height has come up with the hands."""
    return world.pose(name).pos[2] - before_z > _LIFT_SHARE * lift_m


def grasp_pose(
    world: OracleWorld, hand: Hand, name: str, offset: Offset, yaw_deg: float, *, any_yaw: bool = False
) -> Pose:
    """Where the tool grasps an object as it lies now: the easiest of the ways that there are."""
    pose = world.pose(name)
    spot = above_table(hand, pose.apply(Pose(offset)))
    yaw = yaw_of(pose) + math.radians(yaw_deg)
    return easiest_of(hand, grasps(spot.pos, yaw, any_quarter=any_yaw), HOVER_M)


def _grasp(world: OracleWorld, hand: Hand, step: Pick) -> Motion:
    """The object may still be rolling when the hand comes, so it looks again before it goes down."""
    hand.opening = 1.0
    yield from travel(hand, _pose(world, hand, step).raised(HOVER_M), world.safe_z(hand))
    target = _pose(world, hand, step)
    yield from move(hand, target.raised(HOVER_M))
    yield from move(hand, target, fastest_m_s=CAREFUL_M_S)
    yield from grip(hand, 0.0)
    yield from move(hand, target.raised(step.lift))


def _pose(world: OracleWorld, hand: Hand, step: Pick) -> Pose:
    return grasp_pose(world, hand, step.object, step.offset, step.yaw_deg, any_yaw=step.any_yaw)


def place(world: OracleWorld, step: Place) -> Motion:
    """Until the object is where it belongs, or it has failed too often. What was dropped is picked up again."""
    hand = world.hand(step.arm)
    for _ in range(TRIES):
        yield from regain(world, hand, step.object)
        if world.is_in(hand, step.object):
            yield from _put_down(world, hand, step)
        if math.dist(world.pose(step.object).pos[:2], _spot(world, step).pos[:2]) < _STRAY_M:
            break
    world.release(hand)


def _put_down(world: OracleWorld, hand: Hand, step: Place) -> Motion:
    yield from travel(hand, _tool_pose(world, hand, step).raised(HOVER_M), world.safe_z(hand))
    if not world.is_in(hand, step.object):
        return
    target = _tool_pose(world, hand, step)
    yield from move(hand, target.raised(HOVER_M))
    yield from move(hand, target, fastest_m_s=CAREFUL_M_S)
    yield from grip(hand, 1.0)
    yield from move(hand, target.raised(HOVER_M), fastest_m_s=CAREFUL_M_S)


def _spot(world: OracleWorld, step: Place) -> Pose:
    """Where the object's origin goes; the yaw is that of the axes in which the step is stated."""
    target = world.pose(step.target)
    yaw = yaw_of(target) if step.frame == "target" else 0.0
    dx, dy, dz = rotate(yaw_quat(yaw), step.offset)
    middle = target if step.other is None else target.towards(world.pose(step.other), 0.5)
    x, y = middle.pos[0] + dx, middle.pos[1] + dy
    foot = -world.spec(step.object).bounds[0][2]
    return Pose((x, y, _surface_z(world, step, x, y) + foot + dz), yaw_quat(yaw))


def _surface_z(world: OracleWorld, step: Place, x: float, y: float) -> float:
    if step.surface == "table":
        return TABLE_TOP_Z_M
    spec = world.spec(step.target)
    link = step.target.partition("/")[2] or spec.links[0].name
    return surface_z(spec.link(link), world.pose(step.target), x, y)


def _tool_pose(world: OracleWorld, hand: Hand, step: Place) -> Pose:
    held, spot = world.pose(step.object), _spot(world, step)
    poses = [carry(world, hand, step.object, spot.pos, turn) for turn in _turns(world, step, held, spot)]
    choose = first_that_goes if step.yaw_deg is None else easiest_of
    return choose(hand, poses, HOVER_M)


def _turns(world: OracleWorld, step: Place, held: Pose, spot: Pose) -> Iterator[float]:
    """By how much to turn the object about the vertical. Without a wish it keeps its yaw, unless no arm bends so."""
    if step.yaw_deg is None:
        yield from (0.0, *_OTHER_TURNS)
        return
    for symmetric in symmetric_yaws(world.spec(step.object)):
        turn = yaw_of(spot) + math.radians(step.yaw_deg) - yaw_of(held) + symmetric
        yield math.remainder(turn, 2 * math.pi)


class HandlePath:
    """Where the tool goes as the joint moves: beside the handle, opposite to where the handle is to go.

    So closed fingers drag an opening drawer from behind its bar, and push a closing one from before it. The handle is
    the last part of the joint's link.
    """

    def __init__(self, world: OracleWorld, hand: Hand, step: Operate) -> None:
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


def _link(links: tuple[ObjectLink, ...], joint: str) -> ObjectLink:
    return next(link for link in links if link.joint is not None and link.joint.name == joint)


def _way(joint: ObjectJoint, handle: Part, sign: float) -> Vec3:
    """Which way the handle goes at first, a unit vector in the link's frame."""
    small = 1e-4
    moved = joint.moved(sign * small).apply(Pose(handle.pos)).pos
    x, y, z = (a - b for a, b in zip(moved, handle.pos, strict=True))
    length = math.hypot(x, y, z)
    return x / length, y / length, z / length


def _half(part: Part, way: Vec3) -> float:
    return sum(half * abs(along) for half, along in zip(part.size, way, strict=True))


def operate(world: OracleWorld, step: Operate) -> Motion:
    """Until the joint is where it belongs, or it has failed too often."""
    hand = world.hand(step.arm)
    for _ in range(TRIES):
        path = HandlePath(world, hand, step)
        if path.is_done(world.joint(step.object, step.joint)):
            return
        yield from _drag(world, hand, step, path)


def _drag(world: OracleWorld, hand: Hand, step: Operate, path: HandlePath) -> Motion:
    now = world.joint(step.object, step.joint)
    hand.opening = 0.0
    yield from travel(hand, path.tool(now).raised(path.clear_m), world.safe_z(hand))
    yield from move(hand, path.tool(now))
    while not path.is_done(world.joint(step.object, step.joint)) and path.left(now) > -path.angle(_PRESS_M):
        now += path.sign * path.angle(_DRAG_M_S / CONTROL_HZ)
        hand.command = path.tool(now)
        yield
    yield from arrive(hand)
    resting = path.tool(world.joint(step.object, step.joint))
    yield from move(hand, resting)
    yield from move(hand, resting.raised(path.clear_m))


def lift_together(world: OracleWorld, step: LiftTogether) -> Motion:
    """Until the object is up, or it has failed too often. The hands keep hold."""
    for _ in range(TRIES):
        before_z = world.pose(step.object).pos[2]
        yield from _lift(world, step)
        if is_lifted(world, step.object, before_z, step.height):
            return
        yield from together(*(grip(hand, 1.0) for hand in world.hands))


def _lift(world: OracleWorld, step: LiftTogether) -> Motion:
    hands = world.hands
    for hand in hands:
        hand.opening = 1.0
    targets = _targets(world, step)
    hovers = [target.raised(HOVER_M) for target in targets]
    pairs = list(zip(hands, targets, strict=True))
    yield from together(*(travel(hand, hover, world.safe_z(hand)) for hand, hover in zip(hands, hovers, strict=True)))
    yield from together(*(move(hand, target, fastest_m_s=CAREFUL_M_S) for hand, target in pairs))
    yield from together(*(grip(hand, 0.0) for hand in hands))
    yield from together(*(move(hand, target.raised(step.height), fastest_m_s=CAREFUL_M_S) for hand, target in pairs))


def _targets(world: OracleWorld, step: LiftTogether) -> list[Pose]:
    offsets = {"left": step.left_offset, "right": step.right_offset}
    return [grasp_pose(world, hand, step.object, offsets[hand.name], step.yaw_deg) for hand in world.hands]


def hand_over(world: OracleWorld, step: HandOver) -> Motion:
    """Until the other hand has the object, or it has failed too often."""
    giver, taker = world.hand(step.arm), world.hand(step.to_arm)
    for _ in range(TRIES):
        yield from regain(world, giver, step.object)
        if world.is_in(giver, step.object):
            yield from _pass_on(world, giver, taker, step)
        if world.pose(step.object).pos[2] > step.at[2] - _DROPPED_M:
            world.release(giver)
            world.hold(taker, Pick(step.object, step.to_arm, step.offset, step.yaw_deg))
            return
        yield from grip(taker, 1.0)


def _pass_on(world: OracleWorld, giver: Hand, taker: Hand, step: HandOver) -> Motion:
    taker.opening = 1.0
    yield from travel(giver, _meeting(world, giver, step), world.safe_z(giver))
    yield from move(giver, _meeting(world, giver, step))
    target = grasp_pose(world, taker, step.object, step.offset, step.yaw_deg)
    yield from travel(taker, target.raised(HOVER_M), target.pos[2] + HOVER_M)
    yield from move(taker, target, fastest_m_s=CAREFUL_M_S)
    yield from grip(taker, 0.0)
    yield from grip(giver, 1.0)
    yield from move(giver, giver.command.raised(HOVER_M), fastest_m_s=CAREFUL_M_S)
    yield from move(giver, giver.home)


def _meeting(world: OracleWorld, giver: Hand, step: HandOver) -> Pose:
    """Where the giver's tool must be for the object to come to the meeting place."""
    turn = math.radians(step.object_yaw_deg) - yaw_of(world.pose(step.object))
    return carry(world, giver, step.object, step.at, math.remainder(turn, 2 * math.pi))


def rest(world: OracleWorld, step: Wait) -> Motion:  # noqa: ARG001 - every skill is given the world
    """Hold still for the steps that it says."""
    yield from wait(step.steps)


def go_home(world: OracleWorld, step: Home) -> Motion:
    """One arm, or all at once."""
    hands = world.hands if step.arm is None else (world.hand(step.arm),)
    yield from together(*(travel(hand, hand.home, world.safe_z(hand)) for hand in hands))


SKILLS: Mapping[type[OracleStep], Callable[[OracleWorld, Any], Motion]] = {
    Pick: pick,
    Place: place,
    Operate: operate,
    LiftTogether: lift_together,
    HandOver: hand_over,
    Wait: rest,
    Home: go_home,
}
