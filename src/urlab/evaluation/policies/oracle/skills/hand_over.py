"""From one hand into the other."""

import math

from urlab.evaluation.policies.oracle.carrying import carry
from urlab.evaluation.policies.oracle.grasps import HOVER_M, yaw_of
from urlab.evaluation.policies.oracle.hand import Hand
from urlab.evaluation.policies.oracle.motion import CAREFUL_M_S, Motion, grip, move, travel
from urlab.evaluation.policies.oracle.poses import raised
from urlab.evaluation.policies.oracle.skills.pick import TRIES, grasp_pose, regain
from urlab.evaluation.policies.oracle.world import World
from urlab.evaluation.tasks.oracle_steps import HandOver, Pick
from urlab.geometry import Pose

_DROPPED_M = 0.05


def hand_over(world: World, step: HandOver) -> Motion:
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


def _pass_on(world: World, giver: Hand, taker: Hand, step: HandOver) -> Motion:
    taker.opening = 1.0
    yield from travel(giver, _meeting(world, giver, step), world.safe_z(giver))
    yield from move(giver, _meeting(world, giver, step))
    target = grasp_pose(world, taker, step.object, step.offset, step.yaw_deg)
    yield from travel(taker, raised(target, HOVER_M), target.pos[2] + HOVER_M)
    yield from move(taker, target, fastest_m_s=CAREFUL_M_S)
    yield from grip(taker, 0.0)
    yield from grip(giver, 1.0)
    yield from move(giver, raised(giver.command, HOVER_M), fastest_m_s=CAREFUL_M_S)
    yield from move(giver, giver.home)


def _meeting(world: World, giver: Hand, step: HandOver) -> Pose:
    """Where the giver's tool must be for the object to come to the meeting place."""
    turn = math.radians(step.object_yaw_deg) - yaw_of(world.pose(step.object))
    return carry(world, giver, step.object, step.at, math.remainder(turn, 2 * math.pi))
