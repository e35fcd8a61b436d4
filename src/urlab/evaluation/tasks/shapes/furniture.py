"""Things that open: a cabinet with a drawer, a cabinet with a door. The front is at -X, towards the robot.

The bar of its handle is the last part of a link that moves.
"""

import math
from collections.abc import Iterator
from typing import Annotated

import msgspec

from urlab.evaluation.tasks.parts import Joint, Link, Part, bar, box
from urlab.evaluation.tasks.shapes.containers import open_box
from urlab.evaluation.tasks.shapes.shape import Length, Shape

_CLEARANCE = 0.003
_FRONT = 0.012
_FLOOR = 0.006

OpeningAngle = Annotated[float, msgspec.Meta(ge=10, le=170)]


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

    def links(self) -> tuple[Link, ...]:
        joint = Joint("drawer", "slide", (-1.0, 0.0, 0.0), (0.0, self.travel), damping=4.0, frictionloss=0.6)
        floor = _FLOOR + self.wall + _CLEARANCE - self.size[2] / 2
        drawer = Link("drawer", tuple(self._drawer()), floor, joint)
        return Link("base", tuple(self._shell()), self.size[2] / 2), drawer

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

    def links(self) -> tuple[Link, ...]:
        x, y, _ = self.size
        hinge = (-x / 2 + _FRONT / 2, -y / 2 + _FRONT / 2, 0.0)
        opening = (0.0, math.radians(self.opening_deg))
        joint = Joint("door", "hinge", (0.0, 0.0, 1.0), opening, hinge, damping=0.15, frictionloss=0.05)
        top = self.size[2] / 2
        return Link("base", tuple(self._shell()), top), Link("door", tuple(self._door()), top, joint)

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


def _shaded(parts: tuple[Part, ...]) -> Iterator[Part]:
    for part in parts:
        yield Part(part.kind, part.size, part.pos, part.quat_wxyz, 0.8 * part.shade)
