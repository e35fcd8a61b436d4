"""Putting down what a hand holds."""

import math
from collections.abc import Iterator

from urlab.evaluation.embodiments import TABLE_TOP_Z_M
from urlab.evaluation.policies.oracle.carrying import carry, easiest_of, first_that_goes
from urlab.evaluation.policies.oracle.grasps import HOVER_M, symmetric_yaws, yaw_of, yaw_quat
from urlab.evaluation.policies.oracle.hand import Hand
from urlab.evaluation.policies.oracle.measures import surface_z
from urlab.evaluation.policies.oracle.motion import CAREFUL_M_S, Motion, grip, move, travel
from urlab.evaluation.policies.oracle.poses import between, raised
from urlab.evaluation.policies.oracle.skills.pick import TRIES, regain
from urlab.evaluation.policies.oracle.world import World
from urlab.evaluation.tasks.oracle_steps import Place
from urlab.geometry import Pose, rotate

_STRAY_M = 0.06
"""An object that came to rest farther than this from where it was put has rolled away or was dropped."""
_OTHER_TURNS = tuple(math.radians(degrees) for turn in range(15, 180, 15) for degrees in (turn, -turn))


def place(world: World, step: Place) -> Motion:
    """Until the object is where it belongs, or it has failed too often. What was dropped is picked up again."""
    hand = world.hand(step.arm)
    for _ in range(TRIES):
        yield from regain(world, hand, step.object)
        if world.is_in(hand, step.object):
            yield from _put_down(world, hand, step)
        if math.dist(world.pose(step.object).pos[:2], _spot(world, step).pos[:2]) < _STRAY_M:
            break
    world.release(hand)


def _put_down(world: World, hand: Hand, step: Place) -> Motion:
    yield from travel(hand, raised(_tool_pose(world, hand, step), HOVER_M), world.safe_z(hand))
    if not world.is_in(hand, step.object):
        return
    target = _tool_pose(world, hand, step)
    yield from move(hand, raised(target, HOVER_M))
    yield from move(hand, target, fastest_m_s=CAREFUL_M_S)
    yield from grip(hand, 1.0)
    yield from move(hand, raised(target, HOVER_M), fastest_m_s=CAREFUL_M_S)


def _spot(world: World, step: Place) -> Pose:
    """Where the object's origin goes; the yaw is that of the axes in which the step is stated."""
    target = world.pose(step.target)
    yaw = yaw_of(target) if step.frame == "target" else 0.0
    dx, dy, dz = rotate(yaw_quat(yaw), step.offset)
    middle = target if step.other is None else between(target, world.pose(step.other), 0.5)
    x, y = middle.pos[0] + dx, middle.pos[1] + dy
    foot = -world.spec(step.object).bounds[0][2]
    return Pose((x, y, _surface_z(world, step, x, y) + foot + dz), yaw_quat(yaw))


def _surface_z(world: World, step: Place, x: float, y: float) -> float:
    if step.surface == "table":
        return TABLE_TOP_Z_M
    spec = world.spec(step.target)
    link = step.target.partition("/")[2] or spec.links[0].name
    return surface_z(spec.link(link), world.pose(step.target), x, y)


def _tool_pose(world: World, hand: Hand, step: Place) -> Pose:
    held, spot = world.pose(step.object), _spot(world, step)
    poses = [carry(world, hand, step.object, spot.pos, turn) for turn in _turns(world, step, held, spot)]
    choose = first_that_goes if step.yaw_deg is None else easiest_of
    return choose(hand, poses, HOVER_M)


def _turns(world: World, step: Place, held: Pose, spot: Pose) -> Iterator[float]:
    """By how much to turn the object about the vertical. Without a wish it keeps its yaw, unless no arm bends so."""
    if step.yaw_deg is None:
        yield from (0.0, *_OTHER_TURNS)
        return
    for symmetric in symmetric_yaws(world.spec(step.object)):
        turn = yaw_of(spot) + math.radians(step.yaw_deg) - yaw_of(held) + symmetric
        yield math.remainder(turn, 2 * math.pi)
