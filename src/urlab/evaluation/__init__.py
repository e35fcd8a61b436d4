"""Policies on manipulation tasks: what authors of policies, tasks and reports import.

A policy is driven by `run_plan`, or by a program of one's own through `EvalClient`; results are read by `read_run`.
The names are found when they are first used: the command line, the server and its workers import modules below this
one, and should not load each other's.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urlab.evaluation.episode_result import EpisodeResult
    from urlab.evaluation.goals.scoring import GoalTracker
    from urlab.evaluation.policies import Policy, PolicyError, find_policy
    from urlab.evaluation.report import summarise, write_report
    from urlab.evaluation.runs.client import EvalClient, EvalClientError
    from urlab.evaluation.runs.plan import RunPlan
    from urlab.evaluation.runs.results import Run, RunFolderError, read_run
    from urlab.evaluation.runs.runner import RunOutcome, run_plan
    from urlab.evaluation.settings import VideoChoice
    from urlab.evaluation.tasks.layout import sample_layout
    from urlab.evaluation.tasks.task import Task, load_task

_MODULES = {
    "EpisodeResult": "episode_result",
    "EvalClient": "runs.client",
    "EvalClientError": "runs.client",
    "GoalTracker": "goals.scoring",
    "Policy": "policies",
    "PolicyError": "policies",
    "Run": "runs.results",
    "RunFolderError": "runs.results",
    "RunOutcome": "runs.runner",
    "RunPlan": "runs.plan",
    "Task": "tasks.task",
    "VideoChoice": "settings",
    "find_policy": "policies",
    "load_task": "tasks.task",
    "read_run": "runs.results",
    "run_plan": "runs.runner",
    "sample_layout": "tasks.layout",
    "summarise": "report",
    "write_report": "report",
}

__all__ = [
    "EpisodeResult",
    "EvalClient",
    "EvalClientError",
    "GoalTracker",
    "Policy",
    "PolicyError",
    "Run",
    "RunFolderError",
    "RunOutcome",
    "RunPlan",
    "Task",
    "VideoChoice",
    "find_policy",
    "load_task",
    "read_run",
    "run_plan",
    "sample_layout",
    "summarise",
    "write_report",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
