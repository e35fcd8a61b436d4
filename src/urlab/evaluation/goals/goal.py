"""A goal: stages, one after the other; each has alternatives, any of which will do; each has subgoals, all needed."""

from dataclasses import dataclass

from urlab.evaluation.goals.placed import PlacedObjects
from urlab.evaluation.goals.subgoal import Subgoal

Alternative = tuple[Subgoal, ...]


@dataclass(frozen=True)
class Stage:
    """Alternatives."""

    alternatives: tuple[Alternative, ...]

    def holds(self, placed: PlacedObjects) -> bool:
        """Whether every subgoal of one alternative is true now, however long."""
        return any(all(subgoal.holds(placed) for subgoal in one) for one in self.alternatives)


@dataclass(frozen=True)
class Goal:
    """Stages in their order."""

    stages: tuple[Stage, ...]

    @property
    def subgoals(self) -> tuple[Subgoal, ...]:
        """All of them."""
        return tuple(one for stage in self.stages for alternative in stage.alternatives for one in alternative)


def three_levels(raw: object) -> object:
    """Lists of lists of lists, whatever was left out: one subgoal, subgoals (all needed), or alternatives of them."""
    wrapped = raw
    for _ in range(3 - _depth(raw)):
        wrapped = [wrapped]
    return wrapped


def _depth(raw: object) -> int:
    depth = 0
    while isinstance(raw, list):
        raw, depth = (raw[0] if raw else None), depth + 1
    return depth
