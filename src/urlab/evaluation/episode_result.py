"""How an episode ended: one type from the worker that ran it to the report that counts it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

SUCCESS = "success"
STEP_LIMIT = "step_limit"
WORKER_FAILED = "worker_failed"
POLICY_FAILED = "policy_failed"


def seed_text(seed: int) -> str:
    """A seed as folders and results spell it: three digits at least."""
    return f"{seed:03d}"


@dataclass(frozen=True)
class Retries:
    """Attempts at an episode that came to no result: ended by a /reset, a /kill, or the death of the worker.

    ``steps`` are the control steps of all of them. An attempt without a step is none.
    """

    resets: int = 0
    kills: int = 0
    worker_deaths: int = 0
    steps: int = 0

    @property
    def attempts(self) -> int:
        """How many there were."""
        return self.resets + self.kills + self.worker_deaths


def sum_of(retries: Iterable[Retries]) -> Retries:
    """Of several episodes."""
    given = list(retries)
    return Retries(**{one.name: sum(getattr(each, one.name) for each in given) for one in fields(Retries)})


@dataclass(frozen=True)
class EpisodeResult:
    """One episode that came to its end. ``score`` is 0 to 1. What a foreign server did not write down is None.

    ``seed`` is spelled as its folder is named. ``steps`` are control steps, ``hold_steps`` how many of them a subgoal
    had to last. ``reason`` is `SUCCESS`, `STEP_LIMIT`, `WORKER_FAILED`, `POLICY_FAILED`, or what made the state invalid
    (then the score is 0, as for the failures); ``detail`` says more of a failure. ``retries`` came before this result.
    ``nested`` are the scores of the goal's stages, alternatives and subgoals, ``floor`` is what a robot that never
    moves would score. ``seconds`` and ``videos`` (by camera) are known only to those who read a run's folder.
    """

    task: str
    seed: str
    score: float
    success: bool
    steps: int | None = None
    reason: str | None = None
    hold_steps: int | None = None
    instruction: str | None = None
    nested: list[Any] = field(default_factory=list)
    floor: float | None = None
    seconds: float | None = None
    videos: dict[str, Path] = field(default_factory=dict)
    detail: str | None = None
    retries: Retries | None = None

    @property
    def attempts(self) -> int | None:
        """This one and those before it."""
        return None if self.retries is None else 1 + self.retries.attempts

    @property
    def key(self) -> tuple[str, str]:
        """Task and seed: the same in every run that has this episode."""
        return self.task, self.seed

    @property
    def success_rate(self) -> float:
        """1.0 or 0.0, of which means are taken."""
        return 1.0 if self.success else 0.0

    def as_reply(self, run_name: str) -> dict[str, Any]:
        """The ``episode_result`` of a reply; ``run_name`` is ``benchmark/run_id``."""
        return {
            "episode_id": f"{run_name}/{self.task}/{self.seed}",
            "task_name": self.task,
            "seed": self.seed,
            "score": self.score,
            "sr": self.success_rate,
            "termination_reason": self.reason,
            "steps": self.steps,
            "attempts": self.attempts,
        }

    @classmethod
    def from_reply(cls, reply: dict[str, Any]) -> Self:
        """From the ``episode_result`` of a reply; older servers say less."""
        steps = reply.get("steps")
        return cls(
            task=str(reply["task_name"]),
            seed=str(reply["seed"]),
            score=float(reply["score"]),
            success=float(reply["sr"]) > 0.5,
            steps=None if steps is None else int(steps),
            reason=reply.get("termination_reason"),
        )
