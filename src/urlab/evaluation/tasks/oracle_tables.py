"""`[[oracle]]`: reading the steps of a task's script."""

from collections.abc import Mapping

from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.tasks.fields import Table, allowed_words
from urlab.evaluation.tasks.goal_tables import names_in
from urlab.evaluation.tasks.object_spec import ObjectSpec
from urlab.evaluation.tasks.oracle_steps import ORACLE_STEPS, LiftTogether, Operate, OracleStep
from urlab.evaluation.tasks.task_error import task_error


def read_oracle(
    source: str, raw: object, objects: Mapping[str, ObjectSpec], embodiment: Embodiment
) -> tuple[OracleStep, ...]:
    """The steps, each checked against the task's objects and the robot's arms."""
    if not isinstance(raw, list):
        raise task_error(source, "oracle", "must be a list of steps: [[oracle]]")
    tables = (Table(source, f"oracle[{number}]", one) for number, one in enumerate(raw))
    return tuple(_step(table, objects, embodiment) for table in tables)


def _step(table: Table, objects: Mapping[str, ObjectSpec], embodiment: Embodiment) -> OracleStep:
    step = table.read_tagged("do", ORACLE_STEPS)
    known = names_in(objects)
    for field, name in step.references():
        if name not in known:
            raise table.error(field, f"there is no object {name!r}; {allowed_words(name, known)}")
    _check_arms(table, step, [arm.name for arm in embodiment.arms])
    if isinstance(step, Operate):
        _check_joint(table, step, objects)
    return step


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
