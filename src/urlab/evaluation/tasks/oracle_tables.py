"""`[[oracle]]`: reading the steps of a task's script."""

from collections.abc import Mapping

from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.tasks.fields import Table, allowed_words
from urlab.evaluation.tasks.goal_tables import names_in
from urlab.evaluation.tasks.object_spec import ObjectSpec
from urlab.evaluation.tasks.oracle_steps import ORACLE_STEPS, HandOver, LiftTogether, Operate, OracleStep, Pick, Place
from urlab.evaluation.tasks.task_error import task_error


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
