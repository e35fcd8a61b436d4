"""The goal of an episode: a layout to start from in which it is not reached yet, and the score.

The score says which subgoals have held for long enough, stage after stage.
"""

from collections.abc import Mapping
from itertools import islice

from urlab.evaluation.goals.solids import PlacedObjects
from urlab.evaluation.goals.subgoals import holds, is_reached
from urlab.evaluation.tasks.goal import Alternative, GoalStage, Subgoal
from urlab.evaluation.tasks.layout import GAP_M, Joints, Layout, random_layouts
from urlab.evaluation.tasks.task import Task, TaskError
from urlab.geometry import Pose

_DECIMALS = 5
_TOLERANCE = 1e-6
_TRIES = 100


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

    def update(self, timestep: int, poses: Mapping[str, Pose], joints: Joints) -> None:
        """Check, if it is time to. Call it once per control step, ``timestep`` counting from 1.

        ``poses`` and ``joints`` have every object of the task (joints: the articulated ones), in metres and radians.
        """
        current = self._current
        if current is None or not current.is_due(timestep):
            return
        current.check(timestep, PlacedObjects(self._objects, poses, joints))

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

    @property
    def _current(self) -> "_StageTracker | None":
        return next((stage for stage in self._stages if not stage.is_done), None)


class _StageTracker:
    def __init__(self, stage: GoalStage, hold_steps: int) -> None:
        self._alternatives = [_AlternativeTracker(one, hold_steps) for one in stage.alternatives]

    @property
    def is_done(self) -> bool:
        return any(one.is_done for one in self._alternatives)

    @property
    def value(self) -> float:
        return max(one.value for one in self._alternatives)

    @property
    def nested(self) -> list[list[float]]:
        return [[leaf.value for leaf in one.leaves] for one in self._alternatives]

    def is_due(self, timestep: int) -> bool:
        return any(leaf.is_due(timestep) for one in self._alternatives for leaf in one.leaves)

    def check(self, timestep: int, placed: PlacedObjects) -> None:
        for one in self._alternatives:
            for leaf in one.leaves:
                if leaf.is_due(timestep):
                    leaf.check(placed)


class _AlternativeTracker:
    def __init__(self, alternative: Alternative, hold_steps: int) -> None:
        self.leaves = [_Leaf(subgoal, hold_steps) for subgoal in alternative]

    @property
    def is_done(self) -> bool:
        return all(leaf.is_true for leaf in self.leaves)

    @property
    def value(self) -> float:
        return round(sum(leaf.value for leaf in self.leaves) / len(self.leaves), _DECIMALS)


class _Leaf:
    def __init__(self, subgoal: Subgoal, hold_steps: int) -> None:
        self._subgoal = subgoal
        self._hold_steps = hold_steps if subgoal.hold_steps is None else subgoal.hold_steps
        self._counter = 0
        self.is_true = False

    @property
    def value(self) -> float:
        return self._subgoal.weight if self.is_true else 0.0

    def is_due(self, timestep: int) -> bool:
        return timestep % self._subgoal.skip_steps == 0

    def check(self, placed: PlacedObjects) -> None:
        if self.is_true and self._subgoal.never_reset:
            return
        self._counter = self._counter + self._subgoal.skip_steps if holds(self._subgoal, placed) else 0
        self.is_true = self._counter > self._hold_steps


def _why_none(crowded: int) -> str:
    """What kept all tries from being a layout; ``crowded`` of them had no room."""
    if crowded > _TRIES / 2:
        return f"the ranges of the objects are too tight to keep them {GAP_M} m apart"
    return "the first stage of the goal is reached wherever the objects are"
