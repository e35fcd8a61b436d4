"""What is to be evaluated, and how."""

from dataclasses import dataclass
from pathlib import Path

from urlab.evaluation.policies import PolicySource
from urlab.evaluation.video_choice import Videos


@dataclass(frozen=True)
class RunPlan:
    """One policy on some tasks, ``episodes`` seeds each from ``seed`` on.

    Without ``url`` a server is started for it and ended after it. With ``url`` that server is asked to run ``tasks``;
    None goes on with the job that it has. ``cameras`` and ``videos`` are for our own server only. ``policy_arguments``
    are those, as they were written, that make the policy another one.
    """

    policy: PolicySource
    tasks: tuple[str, ...] | None
    episodes: int
    seed: int
    workers: int
    cameras: bool
    videos: Videos
    results: Path
    run_id: str | None = None
    url: str | None = None
    token: str | None = None
    command: str = ""
    policy_arguments: tuple[str, ...] = ()
