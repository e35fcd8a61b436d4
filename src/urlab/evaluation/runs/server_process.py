"""An evaluation server in a process of its own, for a run that has none."""

import secrets

from urlab.child_process import UrlabProcess
from urlab.evaluation.settings import RunPlan, VideoChoice

STOP_LIMIT_S = 150.0
"""Longer than the server itself gives its workers to write what they have."""

TOKEN_VARIABLE = "URLAB_EVAL_TOKEN"


class EvalServerProcess(UrlabProcess):
    """`urlab eval serve` on a free port with a secret token. Leaving the context ends it and keeps its results.

    It lives in a session of its own, so that Ctrl-C reaches the run alone, which then ends it in order. A run that dies
    in whatever way closes the child's stdin, and the child ends by itself.
    """

    def __init__(self, plan: RunPlan, run_id: str) -> None:
        self.token = secrets.token_urlsafe()
        super().__init__(
            "eval",
            "serve",
            *server_options(plan, run_id),
            environment={TOKEN_VARIABLE: self.token},
            keep_stdin=True,
            own_session=True,
        )
        self.url = str(self.ready["url"])

    def stop(self, limit_s: float = STOP_LIMIT_S) -> None:
        """End it, kindly at first."""
        super().stop(limit_s)


def server_options(plan: RunPlan, run_id: str) -> list[str]:
    """The options of `urlab eval serve` for a plan."""
    options = ["--port", "0", "--run-id", run_id, "--end-with-stdin"]
    options += ["--tasks", ",".join(plan.tasks or ("all",)), "--episodes", str(plan.episodes)]
    options += ["--seed", str(plan.seed), "--workers", str(plan.workers), "--results", str(plan.results)]
    options += ["--cameras" if plan.cameras else "--no-cameras"]
    options += ["--videos" if plan.cameras and plan.videos is not VideoChoice.NONE else "--no-videos"]
    return options + (["--privileged"] if plan.policy.needs_privileged else [])
