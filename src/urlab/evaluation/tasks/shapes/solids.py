"""Solid things: box, cylinder, sphere, capsule, plate, and a block with a handle."""

import math
from typing import ClassVar

from urlab.evaluation.tasks.parts import Link, Part, PartKind, bar, box
from urlab.evaluation.tasks.shapes.shape import Length, Shape

_LYING_WXYZ = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)


class Box(Shape, frozen=True, tag="box"):
    """``size``: x, y, z."""

    size: tuple[Length, Length, Length]

    def links(self) -> tuple[Link, ...]:
        return (Link("base", (box(self.size),), self.size[2] / 2),)


class Cylinder(Shape, frozen=True, tag="cylinder"):
    """Upright: a can, a coin, a peg."""

    condim: ClassVar[int] = 6
    radius: Length
    height: Length

    def links(self) -> tuple[Link, ...]:
        return (Link("base", (Part(PartKind.CYLINDER, (self.radius, self.height / 2)),), self.height / 2),)


class Sphere(Shape, frozen=True, tag="sphere"):
    """A ball."""

    condim: ClassVar[int] = 6
    radius: Length

    def links(self) -> tuple[Link, ...]:
        return (Link("base", (Part(PartKind.SPHERE, (self.radius,)),), self.radius),)


class Capsule(Shape, frozen=True, tag="capsule"):
    """Lying along x; ``length`` is from tip to tip."""

    condim: ClassVar[int] = 6
    radius: Length
    length: Length

    def links(self) -> tuple[Link, ...]:
        half = self.length / 2 - self.radius
        rod = Part(PartKind.CAPSULE, (self.radius, half), quat_wxyz=_LYING_WXYZ)
        return (Link("base", (rod,), self.radius),)

    def problem(self) -> str | None:
        return None if self.length > 2.01 * self.radius else "length must be greater than twice the radius"


class Plate(Shape, frozen=True, tag="plate"):
    """A flat disc, marked in the middle."""

    radius: Length
    height: Length = 0.012

    def links(self) -> tuple[Link, ...]:
        disc = Part(PartKind.CYLINDER, (self.radius, self.height / 2 - 0.0005), (0.0, 0.0, -0.0005))
        mark = Part(PartKind.CYLINDER, (self.radius * 0.7, self.height / 2), shade=0.8)
        return (Link("base", (disc, mark), self.height / 2),)


class HandledBlock(Shape, frozen=True, tag="handled_block"):
    """A box with an arch on its top: two posts and a bar along y. ``size`` is the box without the arch."""

    size: tuple[Length, Length, Length]
    handle_length: Length = 0.08
    handle_height: Length = 0.05
    handle_thickness: Length = 0.016

    def links(self) -> tuple[Link, ...]:
        thick, top = self.handle_thickness, self.size[2] / 2
        reach = (self.handle_length - thick) / 2
        post = self.handle_height - thick
        posts = tuple(bar("z", post, thick, (0.0, side * reach, top + post / 2)) for side in (-1, 1))
        grip = bar("y", self.handle_length, thick, (0.0, 0.0, top + self.handle_height - thick / 2))
        return (Link("base", (box(self.size), *posts, grip), top),)

    def problem(self) -> str | None:
        fits = self.handle_length <= self.size[1] and self.handle_height > self.handle_thickness
        return None if fits else "the handle must fit on the box: handle_length <= y of size, height > thickness"
