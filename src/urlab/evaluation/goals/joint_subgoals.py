"""Subgoals about the joints of an object."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from urlab.evaluation.goals.placed import PlacedObjects
from urlab.evaluation.goals.subgoal import Interval, Subgoal
from urlab.evaluation.tasks.object_spec import ObjectSpec


class JointAngle(Subgoal, frozen=True, tag="check_joint_angle"):
    """A joint of ``object`` is within ``range`` (inclusive): degrees for a hinge, metres for a slide."""

    object: str
    joint: str
    range: Interval

    def holds(self, placed: PlacedObjects) -> bool:
        value = placed.joint_in_file_units(self.object, self.joint)
        return self.range[0] <= value <= self.range[1]

    def references(self) -> Iterator[tuple[str, str]]:
        yield "object", self.object

    def problem(self, objects: Mapping[str, ObjectSpec]) -> tuple[str, str] | None:
        known = objects[self.object].joints
        if self.joint not in known:
            return "joint", f"{self.object} has no joint {self.joint!r}; it has: {', '.join(known) or 'none'}"
        return None if self.range[0] <= self.range[1] else ("range", "must be [low, high] with low <= high")


class Status(Subgoal, frozen=True, tag="status"):
    """Every joint of ``object`` that one of the ``statuses`` names is within its interval (as in check_joint_angle)."""

    object: str
    statuses: Annotated[list[dict[str, Interval]], msgspec.Meta(min_length=1)]

    def holds(self, placed: PlacedObjects) -> bool:
        return any(
            all(low <= placed.joint_in_file_units(self.object, joint) <= high for joint, (low, high) in status.items())
            for status in self.statuses
        )

    def references(self) -> Iterator[tuple[str, str]]:
        yield "object", self.object

    def problem(self, objects: Mapping[str, ObjectSpec]) -> tuple[str, str] | None:
        known = objects[self.object].joints
        stated = {joint for status in self.statuses for joint in status}
        if stated and stated <= set(known):
            return None
        return "statuses", f"must name joints of {self.object}; it has: {', '.join(known) or 'none'}"
