"""The base of all subgoals: something about objects that is true or not at one moment."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from urlab.evaluation.goals.placed import PlacedObjects
from urlab.evaluation.tasks.object_spec import ObjectSpec

Interval = tuple[float, float]
NameList = Annotated[list[str], msgspec.Meta(min_length=1)]


class Subgoal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """One condition of a goal; its ``weight`` counts in the score.

    It is looked at every ``skip_steps`` control steps. ``hold_steps`` is how long it must last (None = what the job
    says); with ``never_reset`` it stays true once it was.
    """

    weight: Annotated[float, msgspec.Meta(gt=0, le=100)] = 1.0
    skip_steps: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    hold_steps: Annotated[int, msgspec.Meta(ge=0, le=10000)] | None = None
    never_reset: bool = False

    def holds(self, placed: PlacedObjects) -> bool:
        """Whether it is true of these poses."""
        raise NotImplementedError

    def references(self) -> Iterator[tuple[str, str]]:
        """The objects (or links, ``object/link``) that it names: (field, name)."""
        raise NotImplementedError

    def problem(self, objects: Mapping[str, ObjectSpec]) -> tuple[str, str] | None:  # noqa: ARG002
        """What is wrong with it in a task with these objects, if anything: (field, problem)."""
        return None
