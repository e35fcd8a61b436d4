"""The objects of a task, the table among them: shape, matter, where each may start, and its MuJoCo model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from urlab.evaluation.embodiments import TABLE_TOP_Z_M
from urlab.evaluation.tasks.parts import ObjectJoint, ObjectLink, Part
from urlab.evaluation.tasks.shapes import BoxShape, Shape
from urlab.geometry import Pose, Vec3, rotation_matrix

Interval = tuple[float, float]
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
TABLE_NAME = "table"
TABLE_SIZE_M = (1.2, 1.6, 0.05)


@dataclass(frozen=True)
class PlacementRange:
    """Where the object may lie at the start: each range is drawn from evenly, in metres and degrees.

    ``on`` names what it rests on, an object or a link (``cabinet/drawer``): x, y and yaw are then in its frame.
    None is the table, in the world's.
    ``joints`` are ranges too, in metres or radians; a joint that is not named starts at the low end of its range.
    """

    x: Interval
    y: Interval
    yaw_deg: Interval = (0.0, 0.0)
    on: str | None = None
    joints: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True)
class ObjectSpec:
    """One object. Its origin is the middle of its base link, handles apart, +Z up.

    A fixed object does not move, whatever touches it; only its joints do. ``friction`` is that of sliding.
    """

    name: str
    shape: Shape
    placement: PlacementRange
    color: str = "grey"
    labels: tuple[str, ...] = ()
    mass_kg: float = 0.08
    friction: float = 1.0
    fixed: bool = False

    @cached_property
    def links(self) -> tuple[ObjectLink, ...]:
        """Its rigid links, the base first."""
        return self.shape.links()

    @cached_property
    def joints(self) -> dict[str, ObjectJoint]:
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

    def link(self, name: str) -> ObjectLink:
        """By name; KeyError when there is none."""
        return {link.name: link for link in self.links}[name]


def bounds_of(parts: Iterator[Part]) -> tuple[Vec3, Vec3]:
    """The corners of the box around parts that share a frame; exact for every primitive."""
    reaches = [(part.pos, _reach(part)) for part in parts]
    low = [min(pos[axis] - reach[axis] for pos, reach in reaches) for axis in range(3)]
    high = [max(pos[axis] + reach[axis] for pos, reach in reaches) for axis in range(3)]
    return (low[0], low[1], low[2]), (high[0], high[1], high[2])


TABLE = ObjectSpec(
    TABLE_NAME, BoxShape(TABLE_SIZE_M), PlacementRange((0.0, 0.0), (0.0, 0.0)), "brown", ("table",), fixed=True
)


TABLE_POSE_W = Pose((0.0, 0.0, TABLE_TOP_Z_M - TABLE_SIZE_M[2] / 2))


def named_objects(entry: object) -> Iterator[tuple[str, str]]:
    """The objects (or links, ``object/link``) that a subgoal or an oracle step names: (field, name)."""
    for key in ("object", "target", "other"):
        name = getattr(entry, key, None)
        if name is not None:
            yield key, name


def object_mjcf(spec: ObjectSpec) -> str:
    """A model whose one top body is called after the object; its origin is the object's.

    A free object has a free joint, ``free``. A fixed one is a mocap body, so that a layout can put it anywhere without
    another model. Joints have their short names; base and moving links do not collide with each other.
    """
    return "\n".join(_lines(spec)) + "\n"


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


def _lines(spec: ObjectSpec) -> Iterator[str]:
    mocap = ' mocap="true"' if spec.fixed else ""
    yield f'<mujoco model="{spec.name}">'
    yield '  <compiler angle="radian"/>'
    yield f"  <default>{_contact_default(spec)}</default>"
    yield "  <worldbody>"
    yield f'    <body name="{spec.name}"{mocap}>'
    if not spec.fixed:
        yield '      <freejoint name="free"/>'
    yield from (f"      {line}" for line in _geoms(spec, spec.links[0]))
    for link in spec.links[1:]:
        yield from (f"      {line}" for line in _moving(spec, link))
    yield "    </body>"
    yield "  </worldbody>"
    if len(spec.links) > 1:
        pairs = (f'<exclude body1="{spec.name}" body2="{link.name}"/>' for link in spec.links[1:])
        yield f"  <contact>{''.join(pairs)}</contact>"
    yield "</mujoco>"


def _contact_default(spec: ObjectSpec) -> str:
    """Stiff enough for a grasp at 480 Hz; what is round also resists rolling."""
    friction = f"{spec.friction:g} 0.01 0.0005"
    return f'<geom condim="{spec.shape.condim}" friction="{friction}" solref="0.006 1" solimp="0.95 0.99 0.001 0.5 2"/>'


def _moving(spec: ObjectSpec, link: ObjectLink) -> Iterator[str]:
    yield f'<body name="{link.name}">'
    if link.joint is not None:
        yield f"  {_joint(link.joint)}"
    yield from (f"  {line}" for line in _geoms(spec, link))
    yield "</body>"


def _joint(joint: ObjectJoint) -> str:
    return (
        f'<joint name="{joint.name}" type="{joint.kind}" axis="{_text(joint.axis)}" pos="{_text(joint.pos)}" '
        f'range="{_text(joint.range)}" limited="true" damping="{joint.damping:g}" '
        f'frictionloss="{joint.frictionloss:g}" armature="0.005"/>'
    )


def _geoms(spec: ObjectSpec, link: ObjectLink) -> Iterator[str]:
    """The object's mass is shared out by volume over all its links."""
    volume = sum(part.volume for each in spec.links for part in each.parts)
    for number, part in enumerate(link.parts):
        mass = spec.mass_kg * part.volume / volume
        rgb = _text([channel * part.shade for channel in COLORS[spec.color]])
        yield (
            f'<geom name="{link.name}_{number}" type="{part.kind}" size="{_text(part.size)}" pos="{_text(part.pos)}" '
            f'quat="{_text(part.quat_wxyz)}" mass="{mass:.9g}" rgba="{rgb} 1"/>'
        )


def _text(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:.9g}" for number in numbers)
