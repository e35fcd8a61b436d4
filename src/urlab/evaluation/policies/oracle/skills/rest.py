"""Holding still, and going back to where the episode began."""

from urlab.evaluation.policies.oracle.motion import Motion, together, travel, wait
from urlab.evaluation.policies.oracle.world import World
from urlab.evaluation.tasks.oracle_steps import Home, Wait


def rest(world: World, step: Wait) -> Motion:  # noqa: ARG001 - every skill is given the world
    """Hold still."""
    yield from wait(step.steps)


def go_home(world: World, step: Home) -> Motion:
    """One arm, or all at once."""
    hands = world.hands if step.arm is None else (world.hand(step.arm),)
    yield from together(*(travel(hand, hand.home, world.safe_z(hand)) for hand in hands))
