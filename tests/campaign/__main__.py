"""``python -m tests.campaign [FRONT...] [options]``: attack what was built, front by front, and say what was lost.

Without a front: all of them, some three hours. Exit code 1 when anything was lost.
"""

import argparse
import json
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

from tests.campaign.outcome import Outcome, Plan

FRONTS = {
    "requests": 40.0,
    "zmtp": 20.0,
    "streams": 10.0,
    "http": 20.0,
    "files": 15.0,
    "shm": 10.0,
    "kills": 45.0,
    "soak": 25.0,
    "strangers": 3.0,
}
"""The fronts, in order, and the minutes that each has in the whole campaign."""

HOSTILE = 1_000_000
"""Hostile frames and bodies that the whole campaign sends, at least."""


def main(words: list[str]) -> int:
    """Exit code 1 when anything was lost."""
    asked = _parser().parse_args(words)
    fronts = asked.fronts or list(FRONTS)
    outcomes = {front: _run(front, asked) for front in fronts}
    if asked.json is not None:
        asked.json.write_text(json.dumps({front: json.loads(one.as_json()) for front, one in outcomes.items()}))
    tried = sum(sum(one.tried.values()) for one in outcomes.values())
    lost = sum(sum(one.lost.values()) for one in outcomes.values())
    hostile = sum(_hostile(front, one) for front, one in outcomes.items())
    print(f"\n{len(outcomes)} fronts, {tried:,} things tried, {hostile:,} hostile frames and bodies, {lost:,} lost")
    is_whole = set(fronts) == set(FRONTS) and asked.minutes is None and asked.scale >= 1 and not asked.short
    if is_whole and hostile < HOSTILE:
        print(f"LOST: the whole campaign sends {HOSTILE:,} hostile frames and bodies")
        return 1
    return 1 if lost else 0


def _hostile(front: str, outcome: Outcome) -> int:
    """How many frames and bodies a front sent: what it calls so."""
    names = getattr(import_module(f"tests.campaign.fronts.{front}"), "HOSTILE", ())
    return sum(count for name, count in outcome.tried.items() if name.startswith(names)) if names else 0


def _run(front: str, asked: argparse.Namespace) -> Outcome:
    minutes = asked.minutes if asked.minutes is not None else FRONTS[front] * asked.scale
    module, outcome = import_module(f"tests.campaign.fronts.{front}"), Outcome()
    print(f"\n{front}: {module.ABOUT} (seed {asked.seed})", flush=True)
    begin = time.monotonic()
    try:
        module.run(Plan(asked.seed, minutes * 60, asked.short), outcome)
    except Exception:  # noqa: BLE001 - whatever it is, it is a loss
        outcome.lose("the front itself failed", traceback.format_exc()[-600:])
    print(*outcome.lines(), sep="\n")
    seconds = time.monotonic() - begin
    verdict = f"LOST {sum(outcome.lost.values()):,}" if sum(outcome.lost.values()) else "nothing lost"
    print(f"{front}: {sum(outcome.tried.values()):,} tried in {seconds:.0f} s, {verdict}", flush=True)
    return outcome


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="campaign", description="Attacks on everything that listens or reads files.")
    parser.add_argument("fronts", nargs="*", choices=[[], *FRONTS], help=f"some of {', '.join(FRONTS)}; default: all")
    parser.add_argument("--minutes", type=float, help="for each front; default: its share of three hours")
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the three hours: 0.1 takes some 20 minutes")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn by chance")
    parser.add_argument("--short", action="store_true", help="a few seconds each; no measured time is judged")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write what was found there")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
