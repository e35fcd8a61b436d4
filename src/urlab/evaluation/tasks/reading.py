"""From the tables of a task file to its objects, its goal and its oracle steps, all checked.

Every error is about the file, a line and a field, and says what is allowed.
"""

import re
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Annotated

import msgspec

from urlab.errors import did_you_mean
from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.tasks.goal import SUBGOALS, Alternative, Goal, GoalStage, Subgoal
from urlab.evaluation.tasks.objects import COLORS, TABLE, TABLE_NAME, Interval, ObjectSpec, PlacementRange, bounds_of
from urlab.evaluation.tasks.oracle_steps import ORACLE_STEPS, HandOver, LiftTogether, Operate, OracleStep, Pick, Place
from urlab.evaluation.tasks.parts import ObjectJoint
from urlab.evaluation.tasks.shapes import SHAPES, Shape
from urlab.geometry import Vec3
from urlab.toml_tables import TomlTable, unknown_key, wrong_word

RESERVED = frozenset({TABLE_NAME, "robot", "cameras", "floor", "world"})
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_REGISTRY_PREFIXES = ("manip/default/sr_based_genmanip_", "manip/default/")
_LEVELS = 3
"""Of lists in a goal: stages, alternatives, subgoals."""


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


def read_objects(file: TomlTable) -> dict[str, ObjectSpec]:
    """``[objects.<name>]``: all objects, in the order of the file."""
    table = file.table("objects")
    objects = {name: _object(name, table.table(name)) for name in table.content}
    if not objects:
        table.fail("a task needs at least one object")
    for name, spec in objects.items():
        _check_support(table.table(name), spec, objects)
        _check_ranges(table.table(name), spec, objects)
    return objects


def read_goal(file: TomlTable, objects: Mapping[str, ObjectSpec], embodiment: Embodiment) -> Goal:
    """``goal``: stages of alternatives of subgoals about these objects and the robot's arms.

    Outer lists may be left out: one subgoal, subgoals that are all needed, or alternatives of them.
    """
    raw: object = file.content["goal"]
    left_out = _LEVELS - min(_LEVELS, _depth(raw))
    for _ in range(left_out):
        raw = [raw]
    stages = []
    for i, stage in enumerate(_rows(file, raw, left_out)):
        alternatives: list[Alternative] = []
        for j, alternative in enumerate(_rows(file, stage, left_out, i)):
            rows = enumerate(_rows(file, alternative, left_out, i, j))
            tables = (file.at(row, *_goal_keys(left_out, i, j, k)) for k, row in rows)
            subgoals = tuple(_subgoal(table, objects, embodiment) for table in tables)
            _check_weights(file, subgoals, _goal_keys(left_out, i, j))
            alternatives.append(subgoals)
        stages.append(GoalStage(tuple(alternatives)))
    return Goal(tuple(stages))


def read_oracle(file: TomlTable, objects: Mapping[str, ObjectSpec], embodiment: Embodiment) -> tuple[OracleStep, ...]:
    """``[[oracle]]``: the steps, each checked against the task's objects and the robot's arms."""
    steps: list[OracleStep] = []
    for table in file.tables("oracle"):
        steps.append(_step(table, objects, embodiment))
        _check_in_hand(table, steps)
    return tuple(steps)


def allowed_words(word: str, words: Collection[str]) -> str:
    """``allowed: ...``, and the nearest to ``word``."""
    return f"allowed: {', '.join(sorted(words))}{did_you_mean(word, words)}"


def _object(name: str, table: TomlTable) -> ObjectSpec:
    if not _NAME.fullmatch(name) or name in RESERVED:
        table.fail(f"a name has small letters, digits and _, and is none of {', '.join(sorted(RESERVED))}")
    kind = SHAPES[table.word("shape", SHAPES)]
    own, rest = table.split(kind, _Common)
    shape = own.convert(kind)
    problem = shape.problem()
    if problem:
        table.fail(problem)
    common = rest.convert(_Common)
    if common.color not in COLORS:
        table.fail(wrong_word(common.color, COLORS), "color")
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


def _placement(table: TomlTable, common: _Common, shape: Shape) -> PlacementRange:
    for field, (low, high) in (("x", common.x), ("y", common.y), ("yaw_deg", common.yaw_deg)):
        if not -1000 < low <= high < 1000:
            table.fail(f"a range is [low, high] with low <= high, not [{low:g}, {high:g}]", field)
    known = {link.joint.name: link.joint for link in shape.links() if link.joint is not None}
    joints = {name: _joint_range(table, name, stated, known) for name, stated in common.joints.items()}
    return PlacementRange(common.x, common.y, common.yaw_deg, common.on, joints)


def _joint_range(table: TomlTable, name: str, stated: Interval, known: Mapping[str, ObjectJoint]) -> Interval:
    """In radians or metres, within what the joint can do."""
    if name not in known:
        table.fail(unknown_key(name, known) if known else "this shape has no joints", "joints", name)
    joint = known[name]
    low, high = joint.from_file(stated[0]), joint.from_file(stated[1])
    if not joint.range[0] <= low <= high <= joint.range[1]:
        least, most = (joint.to_file(part) for part in joint.range)
        table.fail(f"must be [low, high] within {least:g} to {most:g}", "joints", name)
    return low, high


def _check_support(table: TomlTable, spec: ObjectSpec, objects: Mapping[str, ObjectSpec]) -> None:
    """``on`` names an earlier object, so that there are no circles."""
    earlier = dict(islice(objects.items(), list(objects).index(spec.name)))
    if spec.placement.on is not None and spec.placement.on not in _object_names(earlier):
        allowed = ", ".join(_object_names(earlier)) or "there is none"
        table.fail(f"must be an object or a link stated before it: {allowed}", "on")
    if spec.placement.on is not None and spec.fixed:
        table.fail("a fixed object stands on the table", "on")


def _check_ranges(table: TomlTable, spec: ObjectSpec, objects: Mapping[str, ObjectSpec]) -> None:
    """The object's origin is over what it rests on."""
    place = spec.placement
    low, high = _extent(place.on or TABLE_NAME, objects)
    for axis, (field, stated) in enumerate((("x", place.x), ("y", place.y))):
        if not low[axis] <= stated[0] <= stated[1] <= high[axis]:
            limits = f"{low[axis]:g} to {high[axis]:g}"
            table.fail(f"must be within {limits} m to be on {place.on or 'the table'}", field)


def _extent(name: str, objects: Mapping[str, ObjectSpec]) -> tuple[Vec3, Vec3]:
    """The corners of the box around an object, a link or the table, in its own frame."""
    own, _, link = name.partition("/")
    spec = TABLE if own == TABLE_NAME else objects[own]
    return bounds_of(iter(spec.link(link).parts)) if link else spec.bounds


def _object_names(objects: Mapping[str, ObjectSpec]) -> list[str]:
    """What can be named: objects, and links of the articulated ones."""
    links = (f"{name}/{link.name}" for name, spec in objects.items() if spec.joints for link in spec.links)
    return [*objects, *links]


def _check_names(table: TomlTable, entry: Subgoal | OracleStep, objects: Mapping[str, ObjectSpec]) -> None:
    """What a subgoal or a step names is an object, a link of an articulated one, or the table."""
    known = [*_object_names(objects), TABLE_NAME]
    for field, name in entry.references():
        if name not in known:
            table.fail(f"there is no object {name!r}; {allowed_words(name, known)}", field)


def _depth(raw: object) -> int:
    depth = 0
    while isinstance(raw, list):
        raw, depth = (raw[0] if raw else None), depth + 1
    return depth


def _goal_keys(left_out: int, *indices: int) -> tuple[str | int, ...]:
    """The way to a part of the goal as it stands in the file, without the lists that were left out."""
    return ("goal", *indices[left_out:])


def _rows(file: TomlTable, raw: object, left_out: int, *indices: int) -> list[object]:
    if not isinstance(raw, list) or not raw:
        what = "must be a list that is not empty: stages of alternatives of subgoals"
        file.fail(what, *_goal_keys(left_out, *indices))
    return raw


def _subgoal(table: TomlTable, objects: Mapping[str, ObjectSpec], embodiment: Embodiment) -> Subgoal:
    word = str(table.content.get("type", "relationship"))
    for prefix in _REGISTRY_PREFIXES:
        word = word.removeprefix(prefix)
    subgoal = table.replaced(type=word).convert_tagged("type", SUBGOALS)
    _check_names(table, subgoal, objects)
    _check_conditions(table, subgoal, objects, [arm.name for arm in embodiment.arms])
    problem = subgoal.problem(objects)
    if problem is not None:
        table.fail(*problem)
    return subgoal


def _check_conditions(table: TomlTable, subgoal: Subgoal, objects: Mapping[str, ObjectSpec], arms: list[str]) -> None:
    for name in subgoal.leaving:
        if name not in objects:
            table.fail(f"there is no object {name!r}; {allowed_words(name, objects)}", "leaving")
    for name in subgoal.held_by or ():
        if name not in arms:
            table.fail(f"there is no arm {name!r}; {allowed_words(name, arms)}", "held_by")
    if subgoal.released and subgoal.held_by is not None:
        table.fail("an object cannot be released and held", "held_by")


def _check_weights(file: TomlTable, subgoals: Alternative, keys: tuple[str | int, ...]) -> None:
    mean = sum(one.weight for one in subgoals) / len(subgoals)
    if abs(mean - 1) > 1e-6:
        file.fail(f"the mean of the weights is {mean:g}; it must be 1, or no score can reach 1", *keys)


def _step(table: TomlTable, objects: Mapping[str, ObjectSpec], embodiment: Embodiment) -> OracleStep:
    step = table.convert_tagged("do", ORACLE_STEPS)
    _check_names(table, step, objects)
    _check_arms(table, step, [arm.name for arm in embodiment.arms])
    if step.carries:
        _check_carried(table, step, objects)
    if isinstance(step, Operate):
        _check_joint(table, step, objects)
    return step


def _check_carried(table: TomlTable, step: OracleStep, objects: Mapping[str, ObjectSpec]) -> None:
    movable = [name for name, spec in objects.items() if not spec.fixed]
    for field, name in step.references():
        if field == "object" and name not in movable:
            table.fail(f"{name!r} cannot be carried; {allowed_words(name, movable)}", field)


def _check_in_hand(table: TomlTable, steps: list[OracleStep]) -> None:
    """What the last step puts down or hands over was picked up before."""
    last = steps[-1]
    if not isinstance(last, Place | HandOver):
        return
    if not any(isinstance(step, Pick) and step.object == last.object for step in steps):
        table.fail(f"no step before it picks up {last.object!r}", "object")
    if isinstance(last, HandOver) and last.arm == last.to_arm:
        table.fail(f"must be another arm than {last.arm!r}", "to_arm")


def _check_arms(table: TomlTable, step: OracleStep, arms: list[str]) -> None:
    for field, name in step.arms():
        if name is None and len(arms) > 1:
            table.fail(f"is missing, and the robot has several; allowed: {', '.join(arms)}", field)
        if name is not None and name not in arms:
            table.fail(f"there is no arm {name!r}; {allowed_words(name, arms)}", field)
    if isinstance(step, LiftTogether) and len(arms) < 2:
        table.fail("lift_together needs a robot with two arms", "do")


def _check_joint(table: TomlTable, step: Operate, objects: Mapping[str, ObjectSpec]) -> None:
    joints = objects[step.object].joints if step.object in objects else {}
    if step.joint not in joints:
        table.fail(f"{step.object} has no joint {step.joint!r}; it has: {', '.join(joints) or 'none'}", "joint")
    low, high = (joints[step.joint].to_file(value) for value in joints[step.joint].range)
    if not low <= step.to <= high:
        table.fail(f"must be within {low:g} to {high:g} {joints[step.joint].unit}", "to")
