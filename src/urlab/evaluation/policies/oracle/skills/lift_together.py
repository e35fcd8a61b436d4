"""Lifting something with both hands."""

from urlab.evaluation.policies.oracle.grasps import HOVER_M
from urlab.evaluation.policies.oracle.motion import CAREFUL_M_S, Motion, grip, move, together, travel
from urlab.evaluation.policies.oracle.poses import raised
from urlab.evaluation.policies.oracle.skills.pick import TRIES, grasp_pose, is_lifted
from urlab.evaluation.policies.oracle.world import World
from urlab.evaluation.tasks.oracle_steps import LiftTogether
from urlab.geometry import Pose


def lift_together(world: World, step: LiftTogether) -> Motion:
    """Until the object is up, or it has failed too often. The hands keep hold."""
    for _ in range(TRIES):
        before_z = world.pose(step.object).pos[2]
        yield from _lift(world, step)
        if is_lifted(world, step.object, before_z, step.height):
            return
        yield from together(*(grip(hand, 1.0) for hand in world.hands))


def _lift(world: World, step: LiftTogether) -> Motion:
    hands = world.hands
    for hand in hands:
        hand.opening = 1.0
    targets = _targets(world, step)
    hovers = [raised(target, HOVER_M) for target in targets]
    pairs = list(zip(hands, targets, strict=True))
    yield from together(*(travel(hand, hover, world.safe_z(hand)) for hand, hover in zip(hands, hovers, strict=True)))
    yield from together(*(move(hand, target, fastest_m_s=CAREFUL_M_S) for hand, target in pairs))
    yield from together(*(grip(hand, 0.0) for hand in hands))
    yield from together(*(move(hand, raised(target, step.height), fastest_m_s=CAREFUL_M_S) for hand, target in pairs))


def _targets(world: World, step: LiftTogether) -> list[Pose]:
    offsets = {"left": step.left_offset, "right": step.right_offset}
    return [grasp_pose(world, hand, step.object, offsets[hand.name], step.yaw_deg) for hand in world.hands]
