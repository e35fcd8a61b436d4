"""The layout that an episode starts from: a random one in which the task is not done yet."""

from itertools import islice

from urlab.evaluation.goals.solids import PlacedObjects
from urlab.evaluation.goals.subgoals import is_reached
from urlab.evaluation.tasks.layout import GAP_M, Layout, random_layouts
from urlab.evaluation.tasks.task import Task, TaskError

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


def _why_none(crowded: int) -> str:
    """What kept all tries from being a layout; ``crowded`` of them had no room."""
    if crowded > _TRIES / 2:
        return f"the ranges of the objects are too tight to keep them {GAP_M} m apart"
    return "the first stage of the goal is reached wherever the objects are"
