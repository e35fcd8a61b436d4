"""The base of all shapes."""

from typing import Annotated, ClassVar

import msgspec

from urlab.evaluation.tasks.parts import Link

Length = Annotated[float, msgspec.Meta(gt=0.001, le=2.0)]
"""Metres."""


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape"):
    """A shape with its measures in metres. Declaring one with a ``tag`` makes it known to task files.

    The frame of an object: its origin is the middle of the base (handles apart), +Z is up, +X is away from the robot.
    """

    condim: ClassVar[int] = 4

    def links(self) -> tuple[Link, ...]:
        """What it is made of, the base first."""
        raise NotImplementedError

    def problem(self) -> str | None:
        """What is wrong with the measures, if anything."""
        return None
