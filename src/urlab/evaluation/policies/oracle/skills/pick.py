"""Grasping something from above and lifting it."""

import math

from urlab.evaluation.policies.oracle.carrying import easiest_of
from urlab.evaluation.policies.oracle.grasps import HOVER_M, above_table, grasps, yaw_of
from urlab.evaluation.policies.oracle.hand import Hand
from urlab.evaluation.policies.oracle.motion import CAREFUL_M_S, Motion, grip, move, travel
from urlab.evaluation.policies.oracle.poses import raised
from urlab.evaluation.policies.oracle.world import World
from urlab.evaluation.tasks.oracle_steps import Offset, Pick
from urlab.geometry import Pose

TRIES = 3

_LIFT_SHARE = 0.5
"""An object that rose by less than this share of the lift was not grasped."""


def pick(world: World, step: Pick) -> Motion:
    """Until the object is in the hand and up, or it has failed too often."""
    hand = world.hand(step.arm)
    for _ in range(TRIES):
        before_z = world.pose(step.object).pos[2]
        yield from _grasp(world, hand, step)
        if is_lifted(world, step.object, before_z, step.lift):
            world.hold(hand, step)
            return
        yield from grip(hand, 1.0)


def regain(world: World, hand: Hand, name: str) -> Motion:
    """Pick the object up again, as the hand had it, if the hand has lost it."""
    before = world.held(hand)
    if before is not None and not world.is_in(hand, name):
        yield from pick(world, before)


def is_lifted(world: World, name: str, before_z: float, lift_m: float) -> bool:
    """Whether an object that was at that height has come up with the hands."""
    return world.pose(name).pos[2] - before_z > _LIFT_SHARE * lift_m


def grasp_pose(world: World, hand: Hand, name: str, offset: Offset, yaw_deg: float, *, any_yaw: bool = False) -> Pose:
    """Where the tool grasps an object as it lies now: the easiest of the ways that there are."""
    pose = world.pose(name)
    spot = above_table(hand, pose.apply(Pose(offset)))
    yaw = yaw_of(pose) + math.radians(yaw_deg)
    return easiest_of(hand, grasps(spot.pos, yaw, any_quarter=any_yaw), HOVER_M)


def _grasp(world: World, hand: Hand, step: Pick) -> Motion:
    """The object may still be rolling when the hand comes, so it looks again before it goes down."""
    hand.opening = 1.0
    yield from travel(hand, raised(_pose(world, hand, step), HOVER_M), world.safe_z(hand))
    target = _pose(world, hand, step)
    yield from move(hand, raised(target, HOVER_M))
    yield from move(hand, target, fastest_m_s=CAREFUL_M_S)
    yield from grip(hand, 0.0)
    yield from move(hand, raised(target, step.lift))


def _pose(world: World, hand: Hand, step: Pick) -> Pose:
    return grasp_pose(world, hand, step.object, step.offset, step.yaw_deg, any_yaw=step.any_yaw)
