"""Opening and closing: closed fingers drag or press the handle of a link along the path of its joint."""

from urlab.evaluation.policies.oracle.hand import Hand
from urlab.evaluation.policies.oracle.handle_path import HandlePath
from urlab.evaluation.policies.oracle.motion import CONTROL_HZ, Motion, arrive, move, travel
from urlab.evaluation.policies.oracle.poses import raised
from urlab.evaluation.policies.oracle.skills.pick import TRIES
from urlab.evaluation.policies.oracle.world import World
from urlab.evaluation.tasks.oracle_steps import Operate

_DRAG_M_S = 0.08
_PRESS_M = 0.05
"""How far beyond its goal a hand may be told to go: motors yield to what they push."""


def operate(world: World, step: Operate) -> Motion:
    """Until the joint is where it belongs, or it has failed too often."""
    hand = world.hand(step.arm)
    for _ in range(TRIES):
        path = HandlePath(world, hand, step)
        if path.is_done(world.joint(step.object, step.joint)):
            return
        yield from _drag(world, hand, step, path)


def _drag(world: World, hand: Hand, step: Operate, path: HandlePath) -> Motion:
    now = world.joint(step.object, step.joint)
    hand.opening = 0.0
    yield from travel(hand, raised(path.tool(now), path.clear_m), world.safe_z(hand))
    yield from move(hand, path.tool(now))
    while not path.is_done(world.joint(step.object, step.joint)) and path.left(now) > -path.angle(_PRESS_M):
        now += path.sign * path.angle(_DRAG_M_S / CONTROL_HZ)
        hand.command = path.tool(now)
        yield
    yield from arrive(hand)
    resting = path.tool(world.joint(step.object, step.joint))
    yield from move(hand, resting)
    yield from move(hand, raised(resting, path.clear_m))
