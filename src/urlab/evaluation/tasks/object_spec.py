"""An object of a task: its shape, matter and place, and the model that MuJoCo simulates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from urlab.evaluation.tasks.parts import Joint, Link, Part
from urlab.evaluation.tasks.pose import rotation_matrix
from urlab.evaluation.tasks.shapes import Shape
from urlab.geometry import Vec3

Range = tuple[float, float]

COLORS: Mapping[str, Vec3] = {
    "red": (0.80, 0.13, 0.11),
    "orange": (0.92, 0.48, 0.10),
    "yellow": (0.93, 0.78, 0.14),
    "green": (0.16, 0.58, 0.24),
    "cyan": (0.15, 0.66, 0.72),
    "blue": (0.13, 0.34, 0.78),
    "purple": (0.48, 0.22, 0.64),
    "pink": (0.91, 0.48, 0.62),
    "brown": (0.45, 0.29, 0.17),
    "white": (0.92, 0.92, 0.90),
    "grey": (0.52, 0.54, 0.56),
    "black": (0.12, 0.12, 0.13),
}


@dataclass(frozen=True)
class Placement:
    """Where the object may lie at the start: each range is drawn from evenly, in metres and degrees.

    ``on`` names what it rests on, an object or a link (``cabinet/drawer``): x, y and yaw are then in its frame.
    None is the table, in the world's.
    ``joints`` are ranges too, in metres or radians; a joint that is not named starts at the low end of its range.
    """

    x: Range
    y: Range
    yaw_deg: Range = (0.0, 0.0)
    on: str | None = None
    joints: Mapping[str, Range] = field(default_factory=dict)


@dataclass(frozen=True)
class ObjectSpec:
    """One object. Its origin is the middle of the base (handles apart), +Z up.

    A fixed object does not move, whatever touches it; only its joints do. ``friction`` is that of sliding.
    """

    name: str
    shape: Shape
    placement: Placement
    color: str = "grey"
    labels: tuple[str, ...] = ()
    mass_kg: float = 0.08
    friction: float = 1.0
    fixed: bool = False

    @property
    def shape_name(self) -> str:
        """The word of task files."""
        return str(self.shape.__struct_config__.tag)

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The base first."""
        return self.shape.links()

    @cached_property
    def joints(self) -> dict[str, Joint]:
        """By name; empty for a rigid object."""
        return {link.joint.name: link.joint for link in self.links if link.joint is not None}

    @cached_property
    def bounds(self) -> tuple[Vec3, Vec3]:
        """The corners of the box around it in its own frame, joints at 0."""
        return bounds_of(part for link in self.links for part in link.parts)

    @property
    def extents(self) -> Vec3:
        """Full lengths along its own axes, handles and all, joints at 0."""
        low, high = self.bounds
        return high[0] - low[0], high[1] - low[1], high[2] - low[2]

    @property
    def support_z(self) -> float:
        """The height of the surface of its base that carries other things, in its own frame."""
        return self.links[0].support_z

    def link(self, name: str) -> Link:
        """By name; KeyError when there is none."""
        return {link.name: link for link in self.links}[name]


def bounds_of(parts: Iterator[Part]) -> tuple[Vec3, Vec3]:
    """The corners of the box around parts that share a frame; exact for every primitive."""
    reaches = [(part.pos, _reach(part)) for part in parts]
    low = [min(pos[axis] - reach[axis] for pos, reach in reaches) for axis in range(3)]
    high = [max(pos[axis] + reach[axis] for pos, reach in reaches) for axis in range(3)]
    return (low[0], low[1], low[2]), (high[0], high[1], high[2])


def _reach(part: Part) -> list[float]:
    """How far the part reaches from its middle along the axes of its link."""
    turn = [[float(entry) for entry in row] for row in rotation_matrix(part.quat_wxyz)]
    radius = part.size[0]
    match part.kind:
        case "box":
            return [sum(abs(row[axis]) * part.size[axis] for axis in range(3)) for row in turn]
        case "cylinder":
            return [abs(row[2]) * part.size[1] + radius * max(0.0, 1 - row[2] ** 2) ** 0.5 for row in turn]
        case "capsule":
            return [abs(row[2]) * part.size[1] + radius for row in turn]
        case _:
            return [radius] * 3
