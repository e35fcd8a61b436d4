"""From the tables of a task file to its objects, its goal and its oracle steps, all checked."""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Annotated

import msgspec

from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.tasks.fields import Table, TaskError, allowed_words, task_error, word_problem
from urlab.evaluation.tasks.goal import SUBGOALS, Alternative, Goal, GoalStage, Subgoal, three_levels
from urlab.evaluation.tasks.objects import COLORS, TABLE, TABLE_NAME, Interval, ObjectSpec, PlacementRange, bounds_of
from urlab.evaluation.tasks.oracle_steps import ORACLE_STEPS, HandOver, LiftTogether, Operate, OracleStep, Pick, Place
from urlab.evaluation.tasks.parts import ObjectJoint
from urlab.evaluation.tasks.shapes import SHAPES, Shape
from urlab.geometry import Vec3

RESERVED = frozenset({TABLE_NAME, "robot", "cameras", "floor", "world"})
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class _Common(msgspec.Struct, forbid_unknown_fields=True):
    """What every object has, whatever its shape."""

    x: Interval
    y: Interval
    yaw_deg: Interval = (0.0, 0.0)
    on: str | None = None
    joints: dict[str, Interval] = {}
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


def _placement(table: Table, common: _Common, shape: Shape) -> PlacementRange:
    for field, (low, high) in (("x", common.x), ("y", common.y), ("yaw_deg", common.yaw_deg)):
        if not -1000 < low <= high < 1000:
            raise table.error(field, f"a range is [low, high] with low <= high, not [{low:g}, {high:g}]")
    known = {link.joint.name: link.joint for link in shape.links() if link.joint is not None}
    joints = {name: _joint_range(table, name, stated, known) for name, stated in common.joints.items()}
    return PlacementRange(common.x, common.y, common.yaw_deg, common.on, joints)


def _joint_range(table: Table, name: str, stated: Interval, known: Mapping[str, ObjectJoint]) -> Interval:
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


_REGISTRY_PREFIXES = ("manip/default/sr_based_genmanip_", "manip/default/")


def read_goal(source: str, raw: object, objects: Mapping[str, ObjectSpec]) -> Goal:
    """A goal of these objects; what is nested less than three deep is wrapped."""
    stages = _list(source, "goal", three_levels(raw))
    return Goal(tuple(_stage(source, f"goal[{number}]", one, objects) for number, one in enumerate(stages)))


def names_in(objects: Mapping[str, ObjectSpec]) -> list[str]:
    """What goals and steps can name: objects, links of articulated ones, the table."""
    return [*object_names(objects), TABLE_NAME]


def _stage(source: str, path: str, raw: object, objects: Mapping[str, ObjectSpec]) -> GoalStage:
    numbered = enumerate(_list(source, path, raw))
    return GoalStage(tuple(_alternative(source, f"{path}[{number}]", one, objects) for number, one in numbered))


def _alternative(source: str, path: str, raw: object, objects: Mapping[str, ObjectSpec]) -> Alternative:
    numbered = enumerate(_list(source, path, raw))
    subgoals = tuple(_subgoal(Table(source, f"{path}[{number}]", one), objects) for number, one in numbered)
    mean = sum(one.weight for one in subgoals) / len(subgoals)
    if abs(mean - 1) > 1e-6:
        raise task_error(source, path, f"the mean of the weights is {mean:g}; it must be 1, or no score can reach 1")
    return subgoals


def _subgoal(table: Table, objects: Mapping[str, ObjectSpec]) -> Subgoal:
    word = str(table.raw.get("type", "relationship"))
    for prefix in _REGISTRY_PREFIXES:
        word = word.removeprefix(prefix)
    subgoal = Table(table.source, table.path, {**table.raw, "type": word}).read_tagged("type", SUBGOALS)
    known = names_in(objects)
    for field, name in subgoal.references():
        if name not in known:
            raise _unknown_object(table, field, name, known)
    problem = subgoal.problem(objects)
    if problem is not None:
        raise table.error(*problem)
    return subgoal


def _unknown_object(table: Table, field: str, name: str, known: list[str]) -> TaskError:
    return table.error(field, f"there is no object {name!r}; {allowed_words(name, known)}")


def _list(source: str, path: str, raw: object) -> list[object]:
    if not isinstance(raw, list) or not raw:
        raise task_error(source, path, "must be a list that is not empty: stages of alternatives of subgoals")
    return raw


def read_oracle(
    source: str, raw: object, objects: Mapping[str, ObjectSpec], embodiment: Embodiment
) -> tuple[OracleStep, ...]:
    """The steps, each checked against the task's objects and the robot's arms."""
    if not isinstance(raw, list):
        raise task_error(source, "oracle", "must be a list of steps: [[oracle]]")
    steps: list[OracleStep] = []
    for number, one in enumerate(raw):
        table = Table(source, f"oracle[{number}]", one)
        steps.append(_step(table, objects, embodiment))
        _check_in_hand(table, steps)
    return tuple(steps)


def _step(table: Table, objects: Mapping[str, ObjectSpec], embodiment: Embodiment) -> OracleStep:
    step = table.read_tagged("do", ORACLE_STEPS)
    known = names_in(objects)
    for field, name in step.references():
        if name not in known:
            raise table.error(field, f"there is no object {name!r}; {allowed_words(name, known)}")
    _check_arms(table, step, [arm.name for arm in embodiment.arms])
    if step.carries:
        _check_carried(table, step, objects)
    if isinstance(step, Operate):
        _check_joint(table, step, objects)
    return step


def _check_carried(table: Table, step: OracleStep, objects: Mapping[str, ObjectSpec]) -> None:
    movable = [name for name, spec in objects.items() if not spec.fixed]
    for field, name in step.references():
        if field == "object" and name not in movable:
            raise table.error(field, f"{name!r} cannot be carried; {allowed_words(name, movable)}")


def _check_in_hand(table: Table, steps: list[OracleStep]) -> None:
    """What the last step puts down or hands over was picked up before."""
    last = steps[-1]
    if not isinstance(last, Place | HandOver):
        return
    if not any(isinstance(step, Pick) and step.object == last.object for step in steps):
        raise table.error("object", f"no step before it picks up {last.object!r}")
    if isinstance(last, HandOver) and last.arm == last.to_arm:
        raise table.error("to_arm", f"must be another arm than {last.arm!r}")


def _check_arms(table: Table, step: OracleStep, arms: list[str]) -> None:
    for field, name in step.arms():
        if name is None and len(arms) > 1:
            raise table.error(field, f"is missing, and the robot has several; allowed: {', '.join(arms)}")
        if name is not None and name not in arms:
            raise table.error(field, f"there is no arm {name!r}; {allowed_words(name, arms)}")
    if isinstance(step, LiftTogether) and len(arms) < 2:
        raise table.error("do", "lift_together needs a robot with two arms")


def _check_joint(table: Table, step: Operate, objects: Mapping[str, ObjectSpec]) -> None:
    joints = objects[step.object].joints if step.object in objects else {}
    if step.joint not in joints:
        raise table.error("joint", f"{step.object} has no joint {step.joint!r}; it has: {', '.join(joints) or 'none'}")
    low, high = (joints[step.joint].to_file(value) for value in joints[step.joint].range)
    if not low <= step.to <= high:
        raise table.error("to", f"must be within {low:g} to {high:g} {joints[step.joint].unit}")
