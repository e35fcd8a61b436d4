"""Open containers: bin, tray with handles, bowl, cup. Their walls are primitives, so that things can lie inside."""

import math
from collections.abc import Iterable

from urlab.evaluation.tasks.parts import Link, Part, PartKind, bar, box
from urlab.evaluation.tasks.pose import angle_quat
from urlab.evaluation.tasks.shapes.shape import Length, Shape
from urlab.geometry import Vec3, multiply

_WALLS = 16


class Bin(Shape, frozen=True, tag="bin"):
    """An open box; ``size`` is its outside."""

    size: tuple[Length, Length, Length]
    wall: Length = 0.006

    def links(self) -> tuple[Link, ...]:
        return (Link("base", open_box(self.size, self.wall), self.wall - self.size[2] / 2),)

    def problem(self) -> str | None:
        return wall_problem(self.size, self.wall)


class Tray(Shape, frozen=True, tag="tray"):
    """A low open box with a bar that sticks out at both ends of y, to be lifted with two hands; ``size`` without bars.

    The bars' upper sides are level with the rim.
    """

    size: tuple[Length, Length, Length]
    wall: Length = 0.006
    handle_length: Length = 0.09
    handle_thickness: Length = 0.02

    def links(self) -> tuple[Link, ...]:
        z = (self.size[2] - self.handle_thickness) / 2
        y = (self.size[1] + self.handle_length) / 2
        handles = (bar("y", self.handle_length, self.handle_thickness, (0.0, side * y, z)) for side in (-1, 1))
        return (Link("base", (*open_box(self.size, self.wall), *handles), self.wall - self.size[2] / 2),)

    def problem(self) -> str | None:
        fits = self.handle_thickness <= self.size[2]
        return wall_problem(self.size, self.wall) if fits else "handle_thickness must be at most z of size"


class Bowl(Shape, frozen=True, tag="bowl"):
    """Round and open; its walls lean outwards by ``lean_deg``. ``radius`` is at the rim, outside."""

    radius: Length
    height: Length
    wall: Length = 0.006
    lean_deg: float = 20.0

    def links(self) -> tuple[Link, ...]:
        walls = round_walls(self.radius, self.height, self.wall, self.lean_deg)
        return (Link("base", walls, self.wall - self.height / 2),)

    def problem(self) -> str | None:
        lean = lean_problem(self.radius, self.height, self.lean_deg)
        return lean or wall_problem((self.radius, self.height), self.wall)


class Cup(Shape, frozen=True, tag="cup"):
    """Round, open and upright, with an ear on its +Y side."""

    radius: Length
    height: Length
    wall: Length = 0.005
    ear: Length = 0.025

    def links(self) -> tuple[Link, ...]:
        walls = round_walls(self.radius, self.height, self.wall, 0.0)
        thick, length = 0.008, self.height * 0.6
        arms = (
            bar("y", self.ear, thick, (0.0, self.radius + self.ear / 2, side * (length - thick) / 2))
            for side in (-1, 1)
        )
        grip = bar("z", length, thick, (0.0, self.radius + self.ear - thick / 2, 0.0))
        return (Link("base", (*walls, *arms, grip), self.wall - self.height / 2),)

    def problem(self) -> str | None:
        return wall_problem((self.radius, self.height), self.wall)


def open_box(size: Vec3, wall: float, pos: Vec3 = (0.0, 0.0, 0.0)) -> tuple[Part, ...]:
    """A floor and four walls; ``size`` is the outside, ``pos`` its middle."""
    (x, y, z), (cx, cy, cz) = size, pos
    floor = box((x, y, wall), (cx, cy, cz - z / 2 + wall / 2), shade=0.8)
    sides = (box((x, wall, z), (cx, cy + side * (y - wall) / 2, cz)) for side in (-1, 1))
    ends = (box((wall, y - 2 * wall, z), (cx + side * (x - wall) / 2, cy, cz)) for side in (-1, 1))
    return (floor, *sides, *ends)


def round_walls(radius: float, height: float, wall: float, lean_deg: float) -> tuple[Part, ...]:
    """A floor disc and a ring of walls whose outer faces touch the circle of ``radius`` at the rim."""
    lean = math.radians(lean_deg)
    slope = (height - wall * math.sin(lean)) / math.cos(lean)
    middle = radius - (slope * math.sin(lean) + wall * math.cos(lean)) / 2
    foot = radius - slope * math.sin(lean) - wall * math.cos(lean) / 2
    floor = Part(PartKind.CYLINDER, (foot, wall / 2), (0.0, 0.0, -height / 2 + wall / 2), shade=0.8)
    width = 2 * radius * math.tan(math.pi / _WALLS)
    return (floor, *(_wall(number, middle, (wall, width, slope), lean) for number in range(_WALLS)))


def wall_problem(lengths: Iterable[float], wall: float) -> str | None:
    """Whether the walls leave room inside."""
    return None if min(lengths) > 2.5 * wall else "wall is too thick for the size"


def lean_problem(radius: float, height: float, lean_deg: float) -> str | None:
    """Whether the walls leave a floor."""
    fits = 0 <= lean_deg <= 45 and radius - height * math.tan(math.radians(lean_deg)) > 0.02
    return None if fits else "lean_deg must be 0 to 45 and leave a floor of at least 2 cm radius"


def _wall(number: int, middle: float, size: Vec3, lean: float) -> Part:
    angle = 2 * math.pi * number / _WALLS
    quat = multiply(angle_quat((0.0, 0.0, 1.0), angle), angle_quat((0.0, 1.0, 0.0), lean))
    half = tuple(length / 2 for length in size)
    return Part(PartKind.BOX, half, (middle * math.cos(angle), middle * math.sin(angle), 0.0), quat)
