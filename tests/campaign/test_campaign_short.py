"""The fronts of the campaign, a few seconds each: nothing may be lost. `make campaign` has the long form."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("front", ["requests", "zmtp", "streams", "http", "files"])
def test_a_short_attack_costs_nothing(front: str) -> None:
    """The other fronts have tests of their own: shared memory, killed processes (tests/soak), strangers."""
    command = [sys.executable, "-m", "tests.campaign", front, "--short"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_front_is_told_that_does_not_exist() -> None:
    command = [sys.executable, "-m", "tests.campaign", "nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "requests" in done.stderr
