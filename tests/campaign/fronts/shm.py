"""Shared memory: regions that are cut, grown, replaced and written over while a client steps (`shm_attacks`)."""

import json
import subprocess
import sys

from tests.campaign.outcome import Outcome, Plan
from tests.campaign.processes import ROOT, Watched, scratch

ABOUT = "regions that are cut, grown, replaced and written over while a client steps"
ATTACKS = ROOT / "tests" / "campaign" / "shm_attacks.py"
LOSSES = ("server died", "client died", "client hung", "time went back", "foreign replies", "server unusable")


def run(plan: Plan, outcome: Outcome) -> None:
    seconds = 2.0 if plan.short else plan.seconds
    with scratch() as folder:
        command = [sys.executable, str(ATTACKS), str(plan.seed), str(seconds)]
        with Watched(command, folder / "log", stdout=subprocess.PIPE) as part:
            told = part.process.communicate(timeout=seconds * 3 + 120)[0]
        if not outcome.check(bool(told.strip()), "it died", (folder / "log").read_text()[-500:]):
            return
        found = json.loads(told)
        for name, count in found.items():
            (outcome.lost if name in LOSSES else outcome.tried)[name] += count
        outcome.figures["all processes: peak MB"] = part.peak_mb
