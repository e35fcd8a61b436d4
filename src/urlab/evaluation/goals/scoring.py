"""The goal of an episode: whether its subgoals hold, a layout in which it is not reached yet, and the score.

The score says which subgoals have held for long enough, stage after stage. `is_true` has one implementation for each
type of `urlab.evaluation.tasks.goal`, registered by the type.
"""

import math
from collections.abc import Mapping
from functools import singledispatch
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.goals.relations import is_related
from urlab.evaluation.goals.solids import UNTOUCHED, Handling, PlacedObjects
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
from urlab.evaluation.tasks.layout import GAP_M, Joints, Layout, random_layouts
from urlab.evaluation.tasks.task import Task, TaskError
from urlab.geometry import IDENTITY_WXYZ, Pose, Quat, rotation_matrix

_DECIMALS = 5
_TOLERANCE = 1e-6
_TRIES = 100


def holds(subgoal: Subgoal, placed: PlacedObjects) -> bool:
    """Whether the subgoal is true of these poses and of what is done to the objects, however long."""
    is_handled = all(_is_handled(name, subgoal, placed) for name in subgoal.subjects())
    return is_handled and all(map(placed.is_left, subgoal.leaving)) and is_true(subgoal, placed)


def _is_handled(name: str, subgoal: Subgoal, placed: PlacedObjects) -> bool:
    """Whether the object is released or held, if the subgoal asks for that."""
    if subgoal.released and not placed.is_released(name):
        return False
    return subgoal.held_by is None or placed.is_held_by(name, subgoal.held_by)


@singledispatch
def is_true(subgoal: Subgoal, placed: PlacedObjects) -> bool:
    """Whether the subgoal is true of these poses; `holds` adds what it says about being released, held and left."""
    raise NotImplementedError(f"nothing decides whether a {type(subgoal).__name__} holds")


def is_reached(stage: GoalStage, placed: PlacedObjects) -> bool:
    """Whether every subgoal of one alternative is true now, however long."""
    return any(all(holds(subgoal, placed) for subgoal in one) for one in stage.alternatives)


@is_true.register
def _(subgoal: Relationship, placed: PlacedObjects) -> bool:
    other = None if subgoal.other is None else placed.solid(subgoal.other)
    return is_related(subgoal.relation, placed.solid(subgoal.object), placed.solid(subgoal.target), other)


@is_true.register
def _(subgoal: CountRelationship, placed: PlacedObjects) -> bool:
    target = placed.solid(subgoal.target)
    other = None if subgoal.other is None else placed.solid(subgoal.other)
    handled = [name for name in subgoal.objects if _is_handled(name, subgoal, placed)]
    related = (is_related(subgoal.relation, placed.solid(name), target, other) for name in handled)
    return sum(related) >= subgoal.at_least


@is_true.register
def _(subgoal: PositionRange, placed: PlacedObjects) -> bool:
    pos = placed.pose(subgoal.object).pos
    for axis, interval, relative in subgoal.axes():
        if interval is None:
            continue
        origin = 0.0 if relative is None else placed.pose(relative).pos[axis]
        if not interval[0] <= pos[axis] - origin <= interval[1]:
            return False
    return True


@is_true.register
def _(subgoal: AxisAlign, placed: PlacedObjects) -> bool:
    mine = _axis_w(placed.pose(subgoal.object).quat_wxyz, subgoal.axis)
    theirs = _axis_w(placed.pose(subgoal.target).quat_wxyz, subgoal.target_axis)
    angle = _angle_deg(mine, theirs)
    angle = min(angle, 180 - angle) if subgoal.either_way else angle
    return angle < subgoal.threshold_deg if subgoal.comparison == "below" else angle > subgoal.threshold_deg


@is_true.register
def _(subgoal: MatchOrientation, placed: PlacedObjects) -> bool:
    quat_wxyz = placed.pose(subgoal.object).quat_wxyz
    results = (_is_oriented(quat_wxyz, one) for one in subgoal.constraints)
    return all(results) if subgoal.combine == "all" else any(results)


@is_true.register
def _(subgoal: JointAngle, placed: PlacedObjects) -> bool:
    value = placed.joint_in_file_units(subgoal.object, subgoal.joint)
    return subgoal.range[0] <= value <= subgoal.range[1]


@is_true.register
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


def sample_layout(task: Task, seed: int) -> Layout:
    """The layout of a seed: objects in their ranges, apart from each other, and the first stage not reached.

    TaskError when there is no such layout, or hardly any.
    """
    crowded = 0
    for layout in islice(random_layouts(task, seed), _TRIES):
        if layout is None:
            crowded += 1
        elif not is_reached(task.goal.stages[0], PlacedObjects(task.objects, layout.poses, layout.joints)):
            return layout
    raise TaskError(f"task {task.name}: no layout for seed {seed}: {_why_none(crowded)}")


class GoalTracker:
    """The state of a task's goal through one episode. One thread.

    A subgoal becomes true when it was found to hold at every check for more than ``hold_steps`` control steps, each
    check counting for as many steps as there are between checks. Only the current stage is checked; the next one begins
    when all subgoals of an alternative are true, and the values of the stage before it stay as they are.
    """

    def __init__(self, task: Task, hold_steps: int) -> None:
        self._objects = task.objects
        self._stages = [_StageTracker(stage, hold_steps) for stage in task.goal.stages]

    def hold_for(self, hold_steps: int) -> None:
        """Another number of steps from the next check on, for subgoals without one of their own."""
        for stage in self._stages:
            stage.hold_for(hold_steps)

    def floor(self, poses: Mapping[str, Pose], joints: Joints) -> float:
        """The score, 0 to 1, of a robot that never moves, from where the objects are at the start."""
        placed = PlacedObjects(self._objects, poses, joints)
        return self._stages[0].value_at(placed) / len(self._stages)

    def is_due(self, timestep: int) -> bool:
        """Whether `update` has something to check at this control step."""
        current = self._current
        return current is not None and bool(current.due(timestep))

    def update(self, timestep: int, poses: Mapping[str, Pose], joints: Joints, handling: Handling = UNTOUCHED) -> None:
        """Check, if it is time to. Call it once per control step, ``timestep`` counting from 1.

        ``poses`` and ``joints`` have every object of the task (joints: the articulated ones), in metres and radians.
        """
        current = self._current
        due = [] if current is None else current.due(timestep)
        if due:
            placed = PlacedObjects(self._objects, poses, joints, handling)
            for subgoal in due:
                subgoal.check(placed)

    @property
    def _current(self) -> "_StageTracker | None":
        return next((stage for stage in self._stages if not stage.is_done), None)

    @property
    def score(self) -> float:
        """From 0 to 1: the mean over the stages of what each has reached."""
        return sum(stage.value for stage in self._stages) / len(self._stages)

    @property
    def is_success(self) -> bool:
        """Whether the score is 1."""
        return abs(self.score - 1.0) < _TOLERANCE

    @property
    def nested(self) -> list[list[list[float]]]:
        """The weighted value of every subgoal, in the nesting of the goal: stages, alternatives, subgoals."""
        return [stage.nested for stage in self._stages]


class _StageTracker:
    def __init__(self, stage: GoalStage, hold_steps: int) -> None:
        self._alternatives = [[_SubgoalTracker(one, hold_steps) for one in subgoals] for subgoals in stage.alternatives]

    @property
    def is_done(self) -> bool:
        return any(all(one.is_true for one in subgoals) for subgoals in self._alternatives)

    @property
    def value(self) -> float:
        return max(round(sum(values) / len(values), _DECIMALS) for values in self.nested)

    @property
    def nested(self) -> list[list[float]]:
        return [[one.value for one in subgoals] for subgoals in self._alternatives]

    def value_at(self, placed: PlacedObjects) -> float:
        """What the stage would be worth if everything stayed as it is."""
        return max(sum(one.value_at(placed) for one in subgoals) / len(subgoals) for subgoals in self._alternatives)

    def hold_for(self, hold_steps: int) -> None:
        for one in (one for subgoals in self._alternatives for one in subgoals):
            one.hold_for(hold_steps)

    def due(self, timestep: int) -> "list[_SubgoalTracker]":
        return [one for subgoals in self._alternatives for one in subgoals if timestep % one.skip_steps == 0]


class _SubgoalTracker:
    def __init__(self, subgoal: Subgoal, hold_steps: int) -> None:
        self._subgoal, self.skip_steps = subgoal, subgoal.skip_steps
        self.hold_for(hold_steps)
        self._counter = 0
        self.is_true = False

    def hold_for(self, hold_steps: int) -> None:
        self._hold_steps = hold_steps if self._subgoal.hold_steps is None else self._subgoal.hold_steps

    @property
    def value(self) -> float:
        return self._subgoal.weight if self.is_true else 0.0

    def value_at(self, placed: PlacedObjects) -> float:
        return self._subgoal.weight if holds(self._subgoal, placed) else 0.0

    def check(self, placed: PlacedObjects) -> None:
        if self.is_true and self._subgoal.never_reset:
            return
        self._counter = self._counter + self.skip_steps if holds(self._subgoal, placed) else 0
        self.is_true = self._counter > self._hold_steps


def _why_none(crowded: int) -> str:
    """Why no try was a layout; ``crowded`` of them had no room."""
    if crowded > _TRIES / 2:
        return f"the ranges of the objects are too tight to keep them {GAP_M} m apart"
    return "the first stage of the goal is reached wherever the objects are"
