"""`goal`: reading stages, alternatives and subgoals."""

from collections.abc import Mapping

from urlab.evaluation.goals.goal import Alternative, Goal, Stage, three_levels
from urlab.evaluation.goals.subgoal import Subgoal
from urlab.evaluation.goals.subgoals import SUBGOALS
from urlab.evaluation.tasks.fields import Table, allowed_words
from urlab.evaluation.tasks.object_spec import ObjectSpec
from urlab.evaluation.tasks.object_tables import object_names
from urlab.evaluation.tasks.table import TABLE_NAME
from urlab.evaluation.tasks.task_error import TaskError, task_error

_REGISTRY_PREFIXES = ("manip/default/sr_based_genmanip_", "manip/default/")


def read_goal(source: str, raw: object, objects: Mapping[str, ObjectSpec]) -> Goal:
    """A goal of these objects; what is nested less than three deep is wrapped."""
    stages = _list(source, "goal", three_levels(raw))
    return Goal(tuple(_stage(source, f"goal[{number}]", one, objects) for number, one in enumerate(stages)))


def names_in(objects: Mapping[str, ObjectSpec]) -> list[str]:
    """What goals and steps can name: objects, links of articulated ones, the table."""
    return [*object_names(objects), TABLE_NAME]


def _stage(source: str, path: str, raw: object, objects: Mapping[str, ObjectSpec]) -> Stage:
    numbered = enumerate(_list(source, path, raw))
    return Stage(tuple(_alternative(source, f"{path}[{number}]", one, objects) for number, one in numbered))


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
