"""Policy evaluation: tasks, episodes and scores behind an HTTP server that clients of GenManip can talk to.

What authors of policies and tasks import is here; each name is imported when it is first used, so that a policy does
not wait for a simulator that runs in another process.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from urlab.evaluation.client import EvalClient
    from urlab.evaluation.embodiments import EMBODIMENTS, Embodiment
    from urlab.evaluation.goals import GoalTracker, sample_layout
    from urlab.evaluation.policies import Action, Observation, Policy, PolicyError, find_policy
    from urlab.evaluation.report import read_run, summarise, write_report
    from urlab.evaluation.tasks import Layout, Task, TaskError, find_task, load_task, task_names

__all__ = [
    "EMBODIMENTS",
    "Action",
    "Embodiment",
    "EvalClient",
    "GoalTracker",
    "Layout",
    "Observation",
    "Policy",
    "PolicyError",
    "Task",
    "TaskError",
    "find_policy",
    "find_task",
    "load_task",
    "read_run",
    "sample_layout",
    "summarise",
    "task_names",
    "write_report",
]

_MODULES = {
    "client": ("EvalClient",),
    "embodiments": ("EMBODIMENTS", "Embodiment"),
    "goals": ("GoalTracker", "sample_layout"),
    "policies": ("Action", "Observation", "Policy", "PolicyError", "find_policy"),
    "report": ("read_run", "summarise", "write_report"),
    "tasks": ("Layout", "Task", "TaskError", "find_task", "load_task", "task_names"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
