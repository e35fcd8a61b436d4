"""One episode that a job wants: a task and a seed."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Unit:
    """``task`` is its name; the seed picks the layout."""

    task: str
    seed: int

    @property
    def seed_text(self) -> str:
        """The seed as folders and results spell it: three digits at least."""
        return f"{self.seed:03d}"
