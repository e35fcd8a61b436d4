"""The fronts of the campaign, a few seconds each: nothing may be lost. `make campaign` has the long form."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaign.good_client import judge_phases
from tests.campaign.outcome import Outcome

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240
"""On a busy machine a few seconds take long."""


@pytest.mark.timeout(PATIENCE_S + 60)
@pytest.mark.parametrize("front", ["requests", "zmtp", "streams", "http", "files"])
def test_a_short_attack_costs_nothing(front: str) -> None:
    """The other fronts have tests of their own: shared memory, killed processes (tests/soak), strangers."""
    command = [sys.executable, "-m", "tests.campaign", front, "--short"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_front_is_told_that_does_not_exist() -> None:
    command = [sys.executable, "-m", "tests.campaign", "nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "requests" in done.stderr


def waits(p99: float, worst: float) -> dict[str, float]:
    return {"p50 ms": 1.0, "p99 ms": p99, "worst ms": worst}


@pytest.mark.parametrize(
    ("here", "elsewhere", "lost"),
    [
        (waits(29, 249), waits(10, 40), None),
        (waits(31, 249), waits(10, 40), "p99 above 3 x"),
        (waits(29, 251), waits(10, 130), "waited too long"),
        (waits(29, 500), waits(10, 260), None),
        (waits(29, 30_000), waits(10, 260), "waited too long"),
    ],
)
def test_what_a_good_client_waits_is_judged_by_what_it_waits_beside_the_same_elsewhere(
    here: dict[str, float], elsewhere: dict[str, float], lost: str | None
) -> None:
    outcome = Outcome()
    judge_phases(outcome, "x", {"before": waits(1, 1), "silent here": here, "silent elsewhere": elsewhere})
    assert dict(outcome.lost) == ({} if lost is None else {f"good client (x, silent): {lost}": 1})
    assert bool(outcome.skipped) == (elsewhere["worst ms"] > 250)


@pytest.mark.parametrize("figures", [{"elsewhere": waits(1, 1)}, {"here": waits(1, 1)}, {}])
def test_what_was_not_measured_is_lost(figures: dict[str, dict[str, float]]) -> None:
    outcome = Outcome()
    judge_phases(outcome, "x", figures)
    assert sum(outcome.lost.values()) == 1
