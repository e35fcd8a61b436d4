"""The shapes that task files can name: solid ones, open containers, and furniture that opens.

Declaring a `Shape` with a ``tag`` in this file makes it known to task files.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar

import msgspec

from urlab.evaluation.tasks.parts import ObjectJoint, ObjectLink, Part, PartKind, bar, box
from urlab.geometry import Vec3, multiply, wxyz_from_axis_angle

Length = Annotated[float, msgspec.Meta(gt=0.001, le=2.0)]
"""Metres."""
_LYING_WXYZ = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)
_WALLS = 16
_CLEARANCE = 0.003
_FRONT = 0.012
_FLOOR = 0.006
OpeningAngle = Annotated[float, msgspec.Meta(ge=10, le=170)]
__all__ = ["SHAPES", "Shape"]


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="shape"):
    """A shape with its measures in metres. Declaring one with a ``tag`` makes it known to task files.

    The frame of an object: the origin is the middle of its base link, handles apart; +Z is up, +X away from the robot.
    """

    condim: ClassVar[int] = 4

    def links(self) -> tuple[ObjectLink, ...]:
        """What it is made of, the base first."""
        raise NotImplementedError

    def problem(self) -> str | None:
        """What is wrong with the measures, if anything."""
        return None


class BoxShape(Shape, frozen=True, tag="box"):
    """``size``: x, y, z."""

    size: tuple[Length, Length, Length]

    def links(self) -> tuple[ObjectLink, ...]:
        return (ObjectLink("base", (box(self.size),), self.size[2] / 2),)


class CylinderShape(Shape, frozen=True, tag="cylinder"):
    """Upright: a can, a coin, a peg."""

    condim: ClassVar[int] = 6
    radius: Length
    height: Length

    def links(self) -> tuple[ObjectLink, ...]:
        return (ObjectLink("base", (Part(PartKind.CYLINDER, (self.radius, self.height / 2)),), self.height / 2),)


class SphereShape(Shape, frozen=True, tag="sphere"):
    """A ball of that radius."""

    condim: ClassVar[int] = 6
    radius: Length

    def links(self) -> tuple[ObjectLink, ...]:
        return (ObjectLink("base", (Part(PartKind.SPHERE, (self.radius,)),), self.radius),)


class CapsuleShape(Shape, frozen=True, tag="capsule"):
    """Lying along x; ``length`` is from tip to tip."""

    condim: ClassVar[int] = 6
    radius: Length
    length: Length

    def links(self) -> tuple[ObjectLink, ...]:
        half = self.length / 2 - self.radius
        rod = Part(PartKind.CAPSULE, (self.radius, half), quat_wxyz=_LYING_WXYZ)
        return (ObjectLink("base", (rod,), self.radius),)

    def problem(self) -> str | None:
        return None if self.length > 2.01 * self.radius else "length must be greater than twice the radius"


class Plate(Shape, frozen=True, tag="plate"):
    """A flat disc, marked in the middle."""

    radius: Length
    height: Length = 0.012

    def links(self) -> tuple[ObjectLink, ...]:
        disc = Part(PartKind.CYLINDER, (self.radius, self.height / 2 - 0.0005), (0.0, 0.0, -0.0005))
        mark = Part(PartKind.CYLINDER, (self.radius * 0.7, self.height / 2), shade=0.8)
        return (ObjectLink("base", (disc, mark), self.height / 2),)


class HandledBlock(Shape, frozen=True, tag="handled_block"):
    """A box with an arch on its top: two posts and a bar along y. ``size`` is the box without the arch."""

    size: tuple[Length, Length, Length]
    handle_length: Length = 0.08
    handle_height: Length = 0.05
    handle_thickness: Length = 0.016

    def links(self) -> tuple[ObjectLink, ...]:
        thick, top = self.handle_thickness, self.size[2] / 2
        reach = (self.handle_length - thick) / 2
        post = self.handle_height - thick
        posts = tuple(bar("z", post, thick, (0.0, side * reach, top + post / 2)) for side in (-1, 1))
        grip = bar("y", self.handle_length, thick, (0.0, 0.0, top + self.handle_height - thick / 2))
        return (ObjectLink("base", (box(self.size), *posts, grip), top),)

    def problem(self) -> str | None:
        fits = self.handle_length <= self.size[1] and self.handle_height > self.handle_thickness
        return None if fits else "the handle must fit on the box: handle_length <= y of size, height > thickness"


class Bin(Shape, frozen=True, tag="bin"):
    """An open box; ``size`` is its outside."""

    size: tuple[Length, Length, Length]
    wall: Length = 0.006

    def links(self) -> tuple[ObjectLink, ...]:
        return (ObjectLink("base", open_box(self.size, self.wall), self.wall - self.size[2] / 2),)

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

    def links(self) -> tuple[ObjectLink, ...]:
        z = (self.size[2] - self.handle_thickness) / 2
        y = (self.size[1] + self.handle_length) / 2
        handles = (bar("y", self.handle_length, self.handle_thickness, (0.0, side * y, z)) for side in (-1, 1))
        return (ObjectLink("base", (*open_box(self.size, self.wall), *handles), self.wall - self.size[2] / 2),)

    def problem(self) -> str | None:
        fits = self.handle_thickness <= self.size[2]
        return wall_problem(self.size, self.wall) if fits else "handle_thickness must be at most z of size"


class Bowl(Shape, frozen=True, tag="bowl"):
    """Round and open; its walls lean outwards by ``lean_deg``. ``radius`` is at the rim, outside."""

    radius: Length
    height: Length
    wall: Length = 0.006
    lean_deg: float = 20.0

    def links(self) -> tuple[ObjectLink, ...]:
        walls = round_walls(self.radius, self.height, self.wall, self.lean_deg)
        return (ObjectLink("base", walls, self.wall - self.height / 2),)

    def problem(self) -> str | None:
        lean = lean_problem(self.radius, self.height, self.lean_deg)
        return lean or wall_problem((self.radius, self.height), self.wall)


class Cup(Shape, frozen=True, tag="cup"):
    """Round, open and upright, with an ear on its +Y side."""

    radius: Length
    height: Length
    wall: Length = 0.005
    ear: Length = 0.025

    def links(self) -> tuple[ObjectLink, ...]:
        walls = round_walls(self.radius, self.height, self.wall, 0.0)
        thick, length = 0.008, self.height * 0.6
        arms = (
            bar("y", self.ear, thick, (0.0, self.radius + self.ear / 2, side * (length - thick) / 2))
            for side in (-1, 1)
        )
        grip = bar("z", length, thick, (0.0, self.radius + self.ear - thick / 2, 0.0))
        return (ObjectLink("base", (*walls, *arms, grip), self.wall - self.height / 2),)

    def problem(self) -> str | None:
        return wall_problem((self.radius, self.height), self.wall)


class DrawerCabinet(Shape, frozen=True, tag="drawer_cabinet"):
    """A box with one drawer: link and joint ``drawer``, which slides towards -X from 0 to ``travel``.

    ``size`` is the box without the handle, a bar along y; ``reach`` is the free space behind it.
    """

    size: tuple[Length, Length, Length]
    travel: Length
    wall: Length = 0.01
    reach: Length = 0.05
    handle_length: Length = 0.12
    handle_thickness: Length = 0.014

    def links(self) -> tuple[ObjectLink, ...]:
        joint = ObjectJoint("drawer", "slide", (-1.0, 0.0, 0.0), (0.0, self.travel), damping=4.0, frictionloss=0.6)
        floor = _FLOOR + self.wall + _CLEARANCE - self.size[2] / 2
        drawer = ObjectLink("drawer", tuple(self._drawer()), floor, joint)
        return ObjectLink("base", tuple(self._shell()), self.size[2] / 2), drawer

    def handle_x(self) -> float:
        """Where the middle of the handle is at joint 0, in the object's frame."""
        return -self.size[0] / 2 - self.reach - self.handle_thickness / 2

    def handle_z(self) -> float:
        """Its height, in the object's frame."""
        return self.size[2] / 2 - self.wall - 0.012

    def problem(self) -> str | None:
        deep = self.travel <= self.size[0] - 0.02
        wide = self.handle_length <= self.size[1] - 2 * self.wall and min(self.size) > 5 * self.wall
        return None if deep and wide else "travel must be 2 cm less than x of size, the handle less than y, wall thin"

    def _shell(self) -> Iterator[Part]:
        x, y, z = self.size
        wall = self.wall
        yield box((x, y, wall), (0.0, 0.0, z / 2 - wall / 2))
        yield box((x, y, wall), (0.0, 0.0, -z / 2 + wall / 2))
        for side in (-1, 1):
            yield box((x, wall, z - 2 * wall), (0.0, side * (y - wall) / 2, 0.0))
        yield box((wall, y - 2 * wall, z - 2 * wall), ((x - wall) / 2, 0.0, 0.0))

    def _drawer(self) -> Iterator[Part]:
        x, y, z = self.size
        inner = 2 * (self.wall + _CLEARANCE)
        length, width, height = x - self.wall - _CLEARANCE, y - inner, z - inner
        yield from _shaded(open_box((length, width, height), _FLOOR, (-(x - length) / 2, 0.0, 0.0)))
        yield from self._handle()

    def _handle(self) -> Iterator[Part]:
        thick = self.handle_thickness
        for side in (-1, 1):
            y = side * (self.handle_length - thick) / 2
            yield bar("x", self.reach, thick, (-self.size[0] / 2 - self.reach / 2, y, self.handle_z()))
        yield bar("y", self.handle_length, thick, (self.handle_x(), 0.0, self.handle_z()))


class DoorCabinet(Shape, frozen=True, tag="door_cabinet"):
    """A box that is open in front, with a door: link and joint ``door``, hinged at the -Y edge.

    It opens towards the robot, from 0 to ``opening_deg``. ``size`` is the box with the door, without the handle: a bar
    along z near the door's free edge, ``reach`` in front of it.
    """

    size: tuple[Length, Length, Length]
    opening_deg: OpeningAngle = 110.0
    wall: Length = 0.01
    reach: Length = 0.04
    handle_length: Length = 0.08
    handle_thickness: Length = 0.014

    def links(self) -> tuple[ObjectLink, ...]:
        x, y, _ = self.size
        hinge = (-x / 2 + _FRONT / 2, -y / 2 + _FRONT / 2, 0.0)
        opening = (0.0, math.radians(self.opening_deg))
        joint = ObjectJoint("door", "hinge", (0.0, 0.0, 1.0), opening, hinge, damping=0.15, frictionloss=0.05)
        top = self.size[2] / 2
        return ObjectLink("base", tuple(self._shell()), top), ObjectLink("door", tuple(self._door()), top, joint)

    def problem(self) -> str | None:
        fits = self.handle_length <= self.size[2] - 0.02 and min(self.size) > 5 * self.wall
        return None if fits else "handle_length must be 2 cm less than z of size, and the walls thin"

    def _shell(self) -> Iterator[Part]:
        x, y, z = self.size
        wall, deep = self.wall, x - _FRONT - _CLEARANCE
        middle = (x - deep) / 2
        for side in (-1, 1):
            yield box((deep, y, wall), (middle, 0.0, side * (z - wall) / 2))
            yield box((deep, wall, z - 2 * wall), (middle, side * (y - wall) / 2, 0.0))
        yield box((wall, y - 2 * wall, z - 2 * wall), ((x - wall) / 2, 0.0, 0.0))

    def _door(self) -> Iterator[Part]:
        x, y, z = self.size
        yield box((_FRONT, y, z - 2 * _CLEARANCE), (-x / 2 + _FRONT / 2, 0.0, 0.0), shade=0.8)
        thick, edge = self.handle_thickness, y / 2 - 0.025
        for side in (-1, 1):
            z = side * (self.handle_length - thick) / 2
            yield bar("x", self.reach, thick, (-x / 2 - self.reach / 2, edge, z))
        yield bar("z", self.handle_length, thick, (-x / 2 - self.reach - thick / 2, edge, 0.0))


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
    quat = multiply(wxyz_from_axis_angle((0.0, 0.0, 1.0), angle), wxyz_from_axis_angle((0.0, 1.0, 0.0), lean))
    half = tuple(length / 2 for length in size)
    return Part(PartKind.BOX, half, (middle * math.cos(angle), middle * math.sin(angle), 0.0), quat)


def _shaded(parts: tuple[Part, ...]) -> Iterator[Part]:
    for part in parts:
        yield Part(part.kind, part.size, part.pos, part.quat_wxyz, 0.8 * part.shade)


SHAPES: dict[str, type[Shape]] = {str(kind.__struct_config__.tag): kind for kind in Shape.__subclasses__()}
"""All shapes above, by the word that task files name them with."""
