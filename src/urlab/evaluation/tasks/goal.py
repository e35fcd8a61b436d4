"""Goals as data: stages one after the other, each with alternatives; an alternative is a list of subgoals, all needed.

These are the types that task files are read into; whether a subgoal holds is decided in `urlab.evaluation.goals`.
Declaring a `Subgoal` with a ``tag`` in this file makes it known to task files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from urlab.evaluation.tasks.objects import Interval, ObjectSpec, named_objects

NameList = Annotated[list[str], msgspec.Meta(min_length=1)]
NamedIntervals = Annotated[dict[str, Interval], msgspec.Meta(min_length=1)]
Relation = Literal["top", "on", "in", "out of", "below", "near", "left", "right", "front", "back", "between"]
Axis = Literal["x", "y", "z", "+x", "+y", "+z", "-x", "-y", "-z"]
Degrees = Annotated[float, msgspec.Meta(ge=0, le=180)]
Problem = tuple[str, *tuple[str | int, ...]]
"""What is wrong, and the keys of the value that it is about."""


class Subgoal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """One condition of a goal, true or not at one moment; its ``weight`` counts in the score.

    It is checked every ``skip_steps`` control steps. ``hold_steps`` is how long it must last (None = what the job
    says); with ``never_reset`` it stays true once it was. Three conditions may be added, none of which is worth
    anything by itself: with ``released`` it holds only while no gripper touches its object and that is at rest, with
    ``held_by`` only while the grippers of exactly these arms touch it, with ``leaving`` only while those objects are
    where they began.
    """

    weight: Annotated[float, msgspec.Meta(gt=0, le=100)] = 1.0
    skip_steps: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    hold_steps: Annotated[int, msgspec.Meta(ge=0, le=10000)] | None = None
    never_reset: bool = False
    released: bool = False
    held_by: NameList | None = None
    leaving: list[str] = []

    def subjects(self) -> tuple[str, ...]:
        """The objects that ``released`` and ``held_by`` are about."""
        return tuple(name.partition("/")[0] for key, name in self.references() if key == "object")

    def references(self) -> Iterator[tuple[str, str]]:
        """The objects (or links, ``object/link``) that it names: (field, name)."""
        return named_objects(self)

    def problem(self, objects: Mapping[str, ObjectSpec]) -> Problem | None:  # noqa: ARG002
        """What is wrong with it in a task with these objects, if anything."""
        return None


class Relationship(Subgoal, frozen=True, tag="relationship"):
    """``object`` is ``relation`` ``target``: on, in, left ...; between needs ``other`` as well."""

    object: str
    relation: Relation
    target: str
    other: str | None = None

    def problem(self, objects: Mapping[str, ObjectSpec]) -> Problem | None:  # noqa: ARG002
        return _other_problem(self.relation, self.other)


class CountRelationship(Subgoal, frozen=True, tag="count_multi_object_relationship"):
    """At least ``at_least`` of ``objects`` are ``relation`` ``target``."""

    objects: NameList
    relation: Relation
    target: str
    at_least: Annotated[int, msgspec.Meta(ge=1)]
    other: str | None = None

    def references(self) -> Iterator[tuple[str, str]]:
        yield from (("objects", name) for name in self.objects)
        yield from super().references()

    def problem(self, objects: Mapping[str, ObjectSpec]) -> Problem | None:  # noqa: ARG002
        if self.at_least > len(self.objects):
            return f"must be at most {len(self.objects)}, the number of objects", "at_least"
        return _other_problem(self.relation, self.other)


class PositionRange(Subgoal, frozen=True, tag="range"):
    """The origin of ``object`` is within the intervals (metres, inclusive; left out = anywhere), in the world's axes.

    ``x_of`` names an object whose origin the interval is relative to; left out, it is absolute. So for y and z.
    """

    object: str
    x: Interval | None = None
    y: Interval | None = None
    z: Interval | None = None
    x_of: str | None = None
    y_of: str | None = None
    z_of: str | None = None

    def references(self) -> Iterator[tuple[str, str]]:
        yield "object", self.object
        for axis, _, relative in self.axes():
            if relative is not None:
                yield f"{'xyz'[axis]}_of", relative

    def problem(self, objects: Mapping[str, ObjectSpec]) -> Problem | None:  # noqa: ARG002
        for axis, interval, relative in self.axes():
            if interval is not None and not interval[0] <= interval[1]:
                return "an interval is [low, high] with low <= high", "xyz"[axis]
            if interval is None and relative is not None:
                return f"needs an interval {'xyz'[axis]}", f"{'xyz'[axis]}_of"
        stated = any(interval is not None for _, interval, _ in self.axes())
        return None if stated else ("at least one of x, y and z must be stated", "x")

    def axes(self) -> tuple[tuple[int, Interval | None, str | None], ...]:
        """(0 to 2, interval, name of the object that it is relative to) for x, y and z."""
        return (0, self.x, self.x_of), (1, self.y, self.y_of), (2, self.z, self.z_of)


class AxisAlign(Subgoal, frozen=True, tag="axis_align"):
    """The angle between an axis of ``object`` and an axis of ``target`` is below (or above) ``threshold_deg``.

    With ``either_way`` an axis counts the same as its opposite, as for a bar whose ends are alike.
    """

    object: str
    target: str
    axis: Axis
    target_axis: Axis
    threshold_deg: Degrees
    comparison: Literal["below", "above"] = "below"
    either_way: bool = False


class OrientationRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The angle between an axis of the object and an axis of the world is within ``angle_deg`` (inclusive)."""

    axis: Axis
    world_axis: Axis
    angle_deg: tuple[Degrees, Degrees]


class MatchOrientation(Subgoal, frozen=True, tag="match_local_world_orientation"):
    """All (or ``any``) of the ``constraints`` hold."""

    object: str
    constraints: Annotated[list[OrientationRange], msgspec.Meta(min_length=1)]
    combine: Literal["all", "any"] = "all"

    def problem(self, objects: Mapping[str, ObjectSpec]) -> Problem | None:  # noqa: ARG002
        ordered = all(one.angle_deg[0] <= one.angle_deg[1] for one in self.constraints)
        return None if ordered else ("angle_deg is [low, high] with low <= high", "constraints")


class JointAngle(Subgoal, frozen=True, tag="check_joint_angle"):
    """A joint of ``object`` is within ``range`` (inclusive): degrees for a hinge, metres for a slide."""

    object: str
    joint: str
    range: Interval

    def problem(self, objects: Mapping[str, ObjectSpec]) -> Problem | None:
        unknown = _unknown_joint(self.object, self.joint, objects)
        if unknown is not None:
            return unknown, "joint"
        out_of_reach = _out_of_reach(objects[self.object], self.joint, self.range)
        return None if out_of_reach is None else (out_of_reach, "range")


class JointStatus(Subgoal, frozen=True, tag="status"):
    """Every joint of ``object`` that one of the ``statuses`` names is within its interval (as in check_joint_angle)."""

    object: str
    statuses: Annotated[list[NamedIntervals], msgspec.Meta(min_length=1)]

    def problem(self, objects: Mapping[str, ObjectSpec]) -> Problem | None:
        for number, status in enumerate(self.statuses):
            for joint, interval in status.items():
                problem = _unknown_joint(self.object, joint, objects) or _out_of_reach(
                    objects[self.object], joint, interval
                )
                if problem is not None:
                    return problem, "statuses", number, joint
        return None


SUBGOALS: dict[str, type[Subgoal]] = {str(kind.__struct_config__.tag): kind for kind in Subgoal.__subclasses__()}
"""All subgoals above, by their names in GenManip's registry, without the prefixes."""

Alternative = tuple[Subgoal, ...]
"""Subgoals that are all needed."""


@dataclass(frozen=True)
class GoalStage:
    """Reached when all subgoals of any one alternative hold."""

    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True)
class Goal:
    """Stages in their order; each begins when the one before it is reached."""

    stages: tuple[GoalStage, ...]

    @property
    def subgoals(self) -> tuple[Subgoal, ...]:
        """The subgoals of all alternatives of all stages."""
        return tuple(one for stage in self.stages for alternative in stage.alternatives for one in alternative)


def _other_problem(relation: str, other: str | None) -> Problem | None:
    if (relation == "between") == (other is not None):
        return None
    return "is what 'between' needs, and no other relation has", "other"


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
