"""Subgoals about the joints of an object."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from urlab.evaluation.goals.placed import PlacedObjects
from urlab.evaluation.goals.subgoal import Interval, Subgoal
from urlab.evaluation.tasks.object_spec import ObjectSpec

NamedIntervals = Annotated[dict[str, Interval], msgspec.Meta(min_length=1)]


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
        unknown = _unknown_joint(self.object, self.joint, objects)
        if unknown is not None:
            return "joint", unknown
        out_of_reach = _out_of_reach(objects[self.object], self.joint, self.range)
        return None if out_of_reach is None else ("range", out_of_reach)


class Status(Subgoal, frozen=True, tag="status"):
    """Every joint of ``object`` that one of the ``statuses`` names is within its interval (as in check_joint_angle)."""

    object: str
    statuses: Annotated[list[NamedIntervals], msgspec.Meta(min_length=1)]

    def holds(self, placed: PlacedObjects) -> bool:
        return any(
            all(low <= placed.joint_in_file_units(self.object, joint) <= high for joint, (low, high) in status.items())
            for status in self.statuses
        )

    def references(self) -> Iterator[tuple[str, str]]:
        yield "object", self.object

    def problem(self, objects: Mapping[str, ObjectSpec]) -> tuple[str, str] | None:
        for number, status in enumerate(self.statuses):
            for joint, interval in status.items():
                problem = _unknown_joint(self.object, joint, objects) or _out_of_reach(
                    objects[self.object], joint, interval
                )
                if problem is not None:
                    return f"statuses[{number}].{joint}", problem
        return None


def _unknown_joint(name: str, joint: str, objects: Mapping[str, ObjectSpec]) -> str | None:
    known = objects[name].joints if name in objects else {}
    if joint in known:
        return None
    return f"{name} has no joint {joint!r}; it has: {', '.join(known) or 'none (joints belong to whole objects)'}"


def _out_of_reach(spec: ObjectSpec, joint: str, interval: Interval) -> str | None:
    """What is wrong with an interval that the joint can never be in."""
    if not interval[0] <= interval[1]:
        return "must be [low, high] with low <= high"
    found = spec.joints[joint]
    low, high = (found.to_file(value) for value in found.range)
    if interval[0] <= high and low <= interval[1]:
        return None
    return f"is out of the joint's reach, {low:g} to {high:g} {found.unit}"
