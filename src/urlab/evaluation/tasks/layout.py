"""A layout: where everything is when an episode begins. A seed gives the same one on every machine."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from urlab.evaluation.embodiments import TABLE_TOP_Z_M
from urlab.evaluation.goals.placed import PlacedObjects
from urlab.evaluation.tasks.object_spec import ObjectSpec
from urlab.evaluation.tasks.outline import Outline, outline_of
from urlab.evaluation.tasks.pose import DECIMALS, Pose, angle_quat, rounded
from urlab.evaluation.tasks.random_stream import RandomStream
from urlab.evaluation.tasks.task import Task
from urlab.evaluation.tasks.task_error import TaskError

GAP_M = 0.05
"""Objects begin at least this far from each other, seen from above: room for fingers."""
_TRIES_PER_OBJECT = 100
_TRIES = 100


@dataclass(frozen=True)
class Layout:
    """``poses`` of all objects in the world; ``joints`` of the articulated ones, in metres or radians."""

    seed: int
    instruction: str
    poses: Mapping[str, Pose]
    joints: Mapping[str, Mapping[str, float]]


def sample_layout(task: Task, seed: int) -> Layout:
    """The layout of a seed: objects in their ranges, apart from each other, and the task not done yet.

    TaskError when there is no such layout, or hardly any.
    """
    stream = RandomStream(f"{task.name}/{seed}")
    instruction = _instruction(task, stream)
    crowded = 0
    for _ in range(_TRIES):
        joints = {name: _joints(spec, stream) for name, spec in task.objects.items() if spec.joints}
        poses = _poses(task.objects, joints, stream)
        if poses is None:
            crowded += 1
        elif not task.goal.stages[0].holds(PlacedObjects(task.objects, poses, joints)):
            return Layout(seed, instruction, poses, joints)
    raise TaskError(f"task {task.name}: no layout for seed {seed}: {_why_none(crowded)}")


def _why_none(crowded: int) -> str:
    """What kept all tries from being a layout; ``crowded`` of them had no room."""
    if crowded > _TRIES / 2:
        return f"the ranges of the objects are too tight to keep them {GAP_M} m apart"
    return "the first stage of the goal is reached wherever the objects are"


def _instruction(task: Task, stream: RandomStream) -> str:
    template = stream.choice(task.instructions)
    return template.format(**{name: stream.choice(spec.labels) for name, spec in task.objects.items()})


def _joints(spec: ObjectSpec, stream: RandomStream) -> dict[str, float]:
    ranges = {name: spec.placement.joints.get(name, (joint.range[0],) * 2) for name, joint in spec.joints.items()}
    return {name: round(stream.between(*limits), DECIMALS) + 0.0 for name, limits in ranges.items()}


def _poses(
    objects: Mapping[str, ObjectSpec], joints: Mapping[str, Mapping[str, float]], stream: RandomStream
) -> dict[str, Pose] | None:
    """All poses; None when there was no room for one of them."""
    poses: dict[str, Pose] = {}
    outlines: dict[str, Outline] = {}
    for name, spec in objects.items():
        others = [outline for other, outline in outlines.items() if other != _owner(spec.placement.on)]
        for _ in range(_TRIES_PER_OBJECT):
            pose = rounded(_pose(spec, PlacedObjects(objects, poses, joints), stream))
            outline = outline_of(spec, pose, joints.get(name, {}))
            if not any(outline.is_within(GAP_M, other) for other in others):
                poses[name], outlines[name] = pose, outline
                break
        else:
            return None
    return poses


def _pose(spec: ObjectSpec, earlier: PlacedObjects, stream: RandomStream) -> Pose:
    place = spec.placement
    x, y, yaw_deg = stream.between(*place.x), stream.between(*place.y), stream.between(*place.yaw_deg)
    turn = angle_quat((0.0, 0.0, 1.0), math.radians(yaw_deg))
    foot = -spec.bounds[0][2]
    if place.on is None:
        return Pose((x, y, TABLE_TOP_Z_M + foot), turn)
    return earlier.pose(place.on).apply(Pose((x, y, earlier.support_z(place.on) + foot), turn))


def _owner(on: str | None) -> str | None:
    """The object that a link belongs to."""
    return None if on is None else on.partition("/")[0]
