"""What a front of the campaign is asked for, and what it found: counts of what was tried, what was lost, figures."""

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

KEPT_DETAILS = 5
"""Reproductions that are kept of each kind of loss."""


@dataclass(frozen=True)
class Plan:
    """How long a front has, from when it begins, and the seed of everything that it draws by chance.

    ``short``: a form of seconds, which tries a little of everything and judges no measured time.
    """

    seed: int = 1
    seconds: float = 60.0
    short: bool = False
    begun_s: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """What is left of the time."""
        return self.begun_s + self.seconds - time.monotonic()

    def part(self, share: float) -> "Plan":
        """A plan for a part of the front, which begins now."""
        return Plan(self.seed, self.seconds * share, self.short)


@dataclass
class Outcome:
    """What became of a front. It held when nothing was lost."""

    tried: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    figures: dict[str, float | str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    details: dict[str, list[str]] = field(default_factory=dict)

    def lose(self, what: str, detail: object = "", count: int = 1) -> None:
        """Count a loss, with what is needed to see it again."""
        self.lost[what] += count
        kept = self.details.setdefault(what, [])
        if detail != "" and len(kept) < KEPT_DETAILS:
            kept.append(str(detail)[:600])

    def check(self, holds: bool, what: str, detail: object = "") -> bool:
        """Lose ``what`` unless it holds; whether it does."""
        if not holds:
            self.lose(what, detail)
        return holds

    def add(self, found: dict[str, Any]) -> None:
        """Take in what a part in another process found, as `as_json` gives it."""
        self.tried.update(found.get("tried", {}))
        for what, count in found.get("lost", {}).items():
            self.lost[what] += count
        for what, details in found.get("details", {}).items():
            self.details.setdefault(what, []).extend(details[:KEPT_DETAILS])
        self.figures.update(found.get("figures", {}))
        self.skipped += found.get("skipped", [])

    def add_outcome(self, other: "Outcome") -> None:
        """The same, of a part in this process."""
        self.add_json(other.as_json())

    def add_json(self, line: str) -> None:
        """The same, from its text."""
        self.add(json.loads(line))

    def as_json(self) -> str:
        """One line."""
        return json.dumps(
            {
                "tried": dict(self.tried),
                "lost": {what: count for what, count in self.lost.items() if count},
                "figures": self.figures,
                "skipped": self.skipped,
                "details": self.details,
            }
        )

    def lines(self) -> list[str]:
        """For people."""
        told = [f"  tried   {count:>10,}  {what}" for what, count in sorted(self.tried.items())]
        told += [f"  figure  {_shown(value):>10}  {what}" for what, value in self.figures.items()]
        told += [f"  skipped             {what}" for what in self.skipped]
        for what, count in sorted(self.lost.items()):
            if count:
                told.append(f"  LOST    {count:>10,}  {what}")
                told += [f"          {detail}" for detail in self.details.get(what, [])[:KEPT_DETAILS]]
        return told


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def percentile(values: list[float], share: float) -> float:
    """The value that this share of them stays below; 0 when there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
