"""Subgoals about how objects lie to each other."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from urlab.evaluation.goals.placed import PlacedObjects
from urlab.evaluation.goals.relations import Relation, holds
from urlab.evaluation.goals.subgoal import NameList, Subgoal
from urlab.evaluation.tasks.object_spec import ObjectSpec


class Relationship(Subgoal, frozen=True, tag="relationship"):
    """``object`` is ``relation`` ``target``: on, in, left ...; between needs ``other`` as well."""

    object: str
    relation: Relation
    target: str
    other: str | None = None

    def holds(self, placed: PlacedObjects) -> bool:
        other = None if self.other is None else placed.solid(self.other)
        return holds(self.relation, placed.solid(self.object), placed.solid(self.target), other)

    def references(self) -> Iterator[tuple[str, str]]:
        yield from (("object", self.object), ("target", self.target))
        if self.other is not None:
            yield "other", self.other

    def problem(self, objects: Mapping[str, ObjectSpec]) -> tuple[str, str] | None:  # noqa: ARG002
        return _other_problem(self.relation, self.other)


class CountRelationship(Subgoal, frozen=True, tag="count_multi_object_relationship"):
    """At least ``at_least`` of ``objects`` are ``relation`` ``target``."""

    objects: NameList
    relation: Relation
    target: str
    at_least: Annotated[int, msgspec.Meta(ge=1)]
    other: str | None = None

    def holds(self, placed: PlacedObjects) -> bool:
        target = placed.solid(self.target)
        other = None if self.other is None else placed.solid(self.other)
        return sum(holds(self.relation, placed.solid(name), target, other) for name in self.objects) >= self.at_least

    def references(self) -> Iterator[tuple[str, str]]:
        yield from (("objects", name) for name in self.objects)
        yield "target", self.target
        if self.other is not None:
            yield "other", self.other

    def problem(self, objects: Mapping[str, ObjectSpec]) -> tuple[str, str] | None:  # noqa: ARG002
        if self.at_least > len(self.objects):
            return "at_least", f"must be at most {len(self.objects)}, the number of objects"
        return _other_problem(self.relation, self.other)


def _other_problem(relation: str, other: str | None) -> tuple[str, str] | None:
    if (relation == "between") == (other is not None):
        return None
    return "other", "is what 'between' needs, and no other relation has"
