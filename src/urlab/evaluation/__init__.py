"""Policies on manipulation tasks: what authors of policies, tasks and reports import.

A policy and tasks in, results and a report out: `run_plan` drives a policy, or a program of one's own does through
`EvalClient`; `read_run` reads the results. The packages, each importing only those after it: `http` and `report`,
`workers`, `runs`, `policies`, `simulation`, `goals`, `tasks`. All may use `embodiments` (the robots), `encoding`
(values in bodies), `episode_result`, `settings` (how a server is started), `camera_config` and `errors`.
Beside `http` and `report`, `watching` shows a run in the browser editor, and `exporting` makes datasets of runs.

The names are found when they are first used: the command line, the server and its workers import modules below this
one, and should not load each other's.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urlab.evaluation.embodiments import EMBODIMENTS, Embodiment
    from urlab.evaluation.episode_result import EpisodeResult
    from urlab.evaluation.exporting import ExportedRun, RunSelection, export_run
    from urlab.evaluation.goals import GoalTracker, sample_layout
    from urlab.evaluation.policies import Action, Observation, Policy, PolicyError, find_policy
    from urlab.evaluation.report import summarise, write_report
    from urlab.evaluation.runs.client import EvalClient, EvalClientError
    from urlab.evaluation.runs.plan import RunPlan
    from urlab.evaluation.runs.results import Run, RunFolderError, read_run
    from urlab.evaluation.runs.runner import RunOutcome, run_plan
    from urlab.evaluation.settings import VideoChoice
    from urlab.evaluation.tasks import Layout, Task, TaskError, find_task, load_task, task_names

_NAMES = {
    "embodiments": ("EMBODIMENTS", "Embodiment"),
    "episode_result": ("EpisodeResult",),
    "exporting": ("ExportedRun", "RunSelection", "export_run"),
    "goals": ("GoalTracker", "sample_layout"),
    "policies": ("Action", "Observation", "Policy", "PolicyError", "find_policy"),
    "report": ("summarise", "write_report"),
    "runs.client": ("EvalClient", "EvalClientError"),
    "runs.plan": ("RunPlan",),
    "runs.results": ("Run", "RunFolderError", "read_run"),
    "runs.runner": ("RunOutcome", "run_plan"),
    "settings": ("VideoChoice",),
    "tasks": ("Layout", "Task", "TaskError", "find_task", "load_task", "task_names"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "EMBODIMENTS",
    "Action",
    "Embodiment",
    "EpisodeResult",
    "EvalClient",
    "EvalClientError",
    "ExportedRun",
    "GoalTracker",
    "Layout",
    "Observation",
    "Policy",
    "PolicyError",
    "Run",
    "RunFolderError",
    "RunOutcome",
    "RunPlan",
    "RunSelection",
    "Task",
    "TaskError",
    "VideoChoice",
    "export_run",
    "find_policy",
    "find_task",
    "load_task",
    "read_run",
    "run_plan",
    "sample_layout",
    "summarise",
    "task_names",
    "write_report",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
