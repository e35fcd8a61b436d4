"""Whether a subgoal, and so a stage of a goal, holds for the objects as they are placed now.

`holds` has one implementation for each type of `urlab.evaluation.tasks.goal`, registered by the type.
"""

import math
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.goals.relations import is_related
from urlab.evaluation.goals.solids import PlacedObjects
from urlab.evaluation.tasks.goal import (
    AxisAlign,
    CountRelationship,
    GoalStage,
    JointAngle,
    JointStatus,
    MatchOrientation,
    OrientationRange,
    PositionRange,
    Relationship,
    Subgoal,
)
from urlab.geometry import IDENTITY_WXYZ, Quat, rotation_matrix


@singledispatch
def holds(subgoal: Subgoal, placed: PlacedObjects) -> bool:
    """Whether the subgoal is true of these poses, however long."""
    raise NotImplementedError(f"nothing decides whether a {type(subgoal).__name__} holds")


def is_reached(stage: GoalStage, placed: PlacedObjects) -> bool:
    """Whether every subgoal of one alternative is true now, however long."""
    return any(all(holds(subgoal, placed) for subgoal in one) for one in stage.alternatives)


@holds.register
def _(subgoal: Relationship, placed: PlacedObjects) -> bool:
    other = None if subgoal.other is None else placed.solid(subgoal.other)
    return is_related(subgoal.relation, placed.solid(subgoal.object), placed.solid(subgoal.target), other)


@holds.register
def _(subgoal: CountRelationship, placed: PlacedObjects) -> bool:
    target = placed.solid(subgoal.target)
    other = None if subgoal.other is None else placed.solid(subgoal.other)
    related = (is_related(subgoal.relation, placed.solid(name), target, other) for name in subgoal.objects)
    return sum(related) >= subgoal.at_least


@holds.register
def _(subgoal: PositionRange, placed: PlacedObjects) -> bool:
    pos = placed.pose(subgoal.object).pos
    for axis, interval, relative in subgoal.axes():
        if interval is None:
            continue
        origin = 0.0 if relative is None else placed.pose(relative).pos[axis]
        if not interval[0] <= pos[axis] - origin <= interval[1]:
            return False
    return True


@holds.register
def _(subgoal: AxisAlign, placed: PlacedObjects) -> bool:
    mine = _axis_w(placed.pose(subgoal.object).quat_wxyz, subgoal.axis)
    theirs = _axis_w(placed.pose(subgoal.target).quat_wxyz, subgoal.target_axis)
    angle = _angle_deg(mine, theirs)
    angle = min(angle, 180 - angle) if subgoal.either_way else angle
    return angle < subgoal.threshold_deg if subgoal.comparison == "below" else angle > subgoal.threshold_deg


@holds.register
def _(subgoal: MatchOrientation, placed: PlacedObjects) -> bool:
    quat_wxyz = placed.pose(subgoal.object).quat_wxyz
    results = (_is_oriented(quat_wxyz, one) for one in subgoal.constraints)
    return all(results) if subgoal.combine == "all" else any(results)


@holds.register
def _(subgoal: JointAngle, placed: PlacedObjects) -> bool:
    value = placed.joint_in_file_units(subgoal.object, subgoal.joint)
    return subgoal.range[0] <= value <= subgoal.range[1]


@holds.register
def _(subgoal: JointStatus, placed: PlacedObjects) -> bool:
    return any(
        all(low <= placed.joint_in_file_units(subgoal.object, joint) <= high for joint, (low, high) in status.items())
        for status in subgoal.statuses
    )


def _axis_w(quat_wxyz: Quat, axis: str) -> NDArray[np.float64]:
    """(3,): where an object's axis ("x", "-z") points in the world."""
    column: NDArray[np.float64] = rotation_matrix(quat_wxyz)[:, "xyz".index(axis[-1])]
    return -column if axis.startswith("-") else column


def _angle_deg(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Between two vectors, 0 to 180; NaN-free also for (nearly) parallel ones."""
    return math.degrees(math.atan2(float(np.linalg.norm(np.cross(a, b))), float(np.dot(a, b))))


def _is_oriented(quat_wxyz: Quat, one: OrientationRange) -> bool:
    angle = _angle_deg(_axis_w(quat_wxyz, one.axis), _axis_w(IDENTITY_WXYZ, one.world_axis))
    return one.angle_deg[0] <= angle <= one.angle_deg[1]
