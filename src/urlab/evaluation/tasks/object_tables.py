"""`[objects.<name>]`: reading an object."""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Annotated

import msgspec

from urlab.evaluation.tasks.fields import Table, word_problem
from urlab.evaluation.tasks.object_spec import COLORS, ObjectSpec, Placement, Range, bounds_of
from urlab.evaluation.tasks.parts import Joint
from urlab.evaluation.tasks.shapes import SHAPES, Shape
from urlab.evaluation.tasks.table import TABLE, TABLE_NAME
from urlab.geometry import Vec3

RESERVED = frozenset({TABLE_NAME, "robot", "cameras", "floor", "world"})
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class _Common(msgspec.Struct, forbid_unknown_fields=True):
    """What every object has, whatever its shape."""

    x: Range
    y: Range
    yaw_deg: Range = (0.0, 0.0)
    on: str | None = None
    joints: dict[str, Range] = {}
    color: str = "grey"
    labels: list[Annotated[str, msgspec.Meta(min_length=1)]] = []
    mass_kg: Annotated[float, msgspec.Meta(ge=0.005, le=20)] = 0.08
    friction: Annotated[float, msgspec.Meta(ge=0.05, le=5)] = 1.0
    fixed: bool = False


def read_objects(source: str, raw: object) -> dict[str, ObjectSpec]:
    """All objects, in the order of the file."""
    table = Table(source, "objects", raw)
    objects = {name: _object(name, Table(source, f"objects.{name}", one)) for name, one in table.raw.items()}
    if not objects:
        raise table.error("", "a task needs at least one object")
    for name, spec in objects.items():
        _check_support(table, name, spec, objects)
        _check_ranges(table, name, spec, objects)
    return objects


def _object(name: str, table: Table) -> ObjectSpec:
    _check_name(name, table)
    kind = SHAPES[table.word("shape", SHAPES)]
    own, rest = table.split(kind, _Common)
    shape = own.read(kind)
    problem = shape.problem()
    if problem:
        raise table.error("", problem)
    common = rest.read(_Common)
    if common.color not in COLORS:
        raise table.error("color", word_problem(common.color, COLORS))
    return ObjectSpec(
        name,
        shape,
        _placement(table, common, shape),
        common.color,
        tuple(common.labels) or (f"{common.color} {name.replace('_', ' ')}",),
        common.mass_kg,
        common.friction,
        common.fixed,
    )


def _check_name(name: str, table: Table) -> None:
    if not _NAME.fullmatch(name) or name in RESERVED:
        raise table.error("", f"a name has small letters, digits and _, and is none of {', '.join(sorted(RESERVED))}")


def _placement(table: Table, common: _Common, shape: Shape) -> Placement:
    for field, (low, high) in (("x", common.x), ("y", common.y), ("yaw_deg", common.yaw_deg)):
        if not -1000 < low <= high < 1000:
            raise table.error(field, f"a range is [low, high] with low <= high, not [{low:g}, {high:g}]")
    known = {link.joint.name: link.joint for link in shape.links() if link.joint is not None}
    joints = {name: _joint_range(table, name, stated, known) for name, stated in common.joints.items()}
    return Placement(common.x, common.y, common.yaw_deg, common.on, joints)


def _joint_range(table: Table, name: str, stated: Range, known: Mapping[str, Joint]) -> Range:
    """In radians or metres, within what the joint can do."""
    if name not in known:
        raise table.error(f"joints.{name}", word_problem(name, known) if known else "this shape has no joints")
    joint = known[name]
    low, high = joint.from_file(stated[0]), joint.from_file(stated[1])
    if not joint.range[0] <= low <= high <= joint.range[1]:
        least, most = (joint.to_file(part) for part in joint.range)
        raise table.error(f"joints.{name}", f"must be [low, high] within {least:g} to {most:g}")
    return low, high


def _check_support(table: Table, name: str, spec: ObjectSpec, objects: Mapping[str, ObjectSpec]) -> None:
    """``on`` names an earlier object, so that there are no circles."""
    earlier = dict(islice(objects.items(), list(objects).index(name)))
    if spec.placement.on is not None and spec.placement.on not in object_names(earlier):
        allowed = ", ".join(object_names(earlier)) or "there is none"
        raise table.error(f"{name}.on", f"must be an object or a link stated before it: {allowed}")
    if spec.placement.on is not None and spec.fixed:
        raise table.error(f"{name}.on", "a fixed object stands on the table")


def _check_ranges(table: Table, name: str, spec: ObjectSpec, objects: Mapping[str, ObjectSpec]) -> None:
    """The object's origin is over what it rests on."""
    place = spec.placement
    low, high = _extent(place.on or TABLE_NAME, objects)
    for axis, (field, stated) in enumerate((("x", place.x), ("y", place.y))):
        if not low[axis] <= stated[0] <= stated[1] <= high[axis]:
            limits = f"{low[axis]:g} to {high[axis]:g}"
            raise table.error(f"{name}.{field}", f"must be within {limits} m to be on {place.on or 'the table'}")


def _extent(name: str, objects: Mapping[str, ObjectSpec]) -> tuple[Vec3, Vec3]:
    """The corners of the box around an object, a link or the table, in its own frame."""
    own, _, link = name.partition("/")
    spec = TABLE if own == TABLE_NAME else objects[own]
    return bounds_of(iter(spec.link(link).parts)) if link else spec.bounds


def object_names(objects: Mapping[str, ObjectSpec]) -> list[str]:
    """What can be named: objects, and links of the articulated ones."""
    links = (f"{name}/{link.name}" for name, spec in objects.items() if spec.joints for link in spec.links)
    return [*objects, *links]
