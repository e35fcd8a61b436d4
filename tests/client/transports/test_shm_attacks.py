"""Processes that spoil the shared memory while a client steps: it costs errors at most, and no process."""

import json
import subprocess
import sys
from pathlib import Path

ATTACKS = Path(__file__).parents[2] / "campaign" / "shm_attacks.py"
SECONDS = 4


def test_whatever_is_done_to_the_regions_no_process_dies_and_every_step_gets_its_own_reply() -> None:
    command = [sys.executable, ATTACKS, "1", str(SECONDS)]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, timeout=100, check=True).stdout)
    losses = ("server died", "client died", "client hung", "time went back", "foreign replies", "server unusable")
    assert {name: found[name] for name in losses} == dict.fromkeys(losses, 0), found
    assert found["steps"] > 0, found  # how many in that time is the machine's business
