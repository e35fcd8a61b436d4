"""How an episode ended."""

from dataclasses import dataclass
from typing import Any

SUCCESS = "success"
STEP_LIMIT = "step_limit"


@dataclass(frozen=True)
class EpisodeResult:
    """``score`` is 0 to 1, ``nested`` the goal's stages, alternatives and subgoals; ``steps`` are control steps.

    ``termination_reason`` is `SUCCESS`, `STEP_LIMIT`, or what made the state invalid (its score is 0).
    """

    score: float
    success: bool
    nested: list[Any]
    termination_reason: str
    steps: int

    @property
    def success_rate(self) -> float:
        """1.0 or 0.0."""
        return 1.0 if self.success else 0.0
