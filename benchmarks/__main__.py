"""``python -m benchmarks [NAME] [options]``: run one benchmark, or all of them where none is named."""

import argparse
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

from rich.console import Console

from benchmarks import reporting
from benchmarks.measuring import BenchmarkError, Plan
from benchmarks.processes import ROOT, terminated_like_interrupted
from urlab.errors import UrlabError

BENCHMARKS = {
    "machine": "step requests over ZeroMQ beside their floors, start, memory, live pacing, a soak",
    "transports": "the same steps over every transport, idle CPU, a soak in shared memory",
    "editor": "what the browser editor costs: not opened, with one page, with ten",
    "encryption": "a step and pictures of clients with keys beside those on loopback",
    "cameras": "steps with a camera beside a bare renderer, and live physics while cameras stream",
    "authoring": "scenes of many robots built over the wire, beside MuJoCo's own attach and compile",
    "ros2": "rates and age of topics behind the ROS 2 bridge, its CPU, the cost of a message",
    "envs": "environments beside raw batches of MuJoCo and beside Gymnasium's own, by their number",
    "evaluation": "control steps of policy evaluation over HTTP beside their floors, two workers, a whole evaluation",
}
ALL, COMPARE = "all", "compare"


def main(words: list[str]) -> int:
    """Exit code 1: a bar was not passed under --strict, or it did not work."""
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words = [ALL, *words]
    asked = _parser().parse_args(words)
    console = Console(stderr=asked.json, highlight=False, width=None if sys.stdout.isatty() else 200)
    try:
        with terminated_like_interrupted():
            names = list(BENCHMARKS) if asked.name == ALL else [asked.name]
            passed = [_run(name, asked, console) for name in names]
    except (BenchmarkError, UrlabError) as failed:
        print(f"error: {failed}", file=sys.stderr)
        return 1
    return 1 if asked.strict and not all(passed) else 0


def _run(name: str, asked: argparse.Namespace, console: Console) -> bool:
    try:
        module = import_module(f"benchmarks.{name}")
    except ImportError as missing:
        raise BenchmarkError(f"benchmarks {name} needs a package that is not there: {missing}; make setup") from missing
    plan: Plan = (module.QUICK if asked.quick else module.FULL).changed(asked.scenes, asked.rounds, asked.steps)
    trees = {"old": asked.old, "new": asked.new} if name == COMPARE else {}
    outcome = reporting.run(name, partial(module.measure, **trees), plan, console)
    reporting.show(outcome, console)
    text = reporting.write(outcome, asked.out, console)
    if asked.json:
        print(text)
    return outcome.passed


def _parser() -> argparse.ArgumentParser:
    description = "What the server costs, beside floors of the same run."
    parser = argparse.ArgumentParser(prog="benchmarks", description=description)
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    others = {ALL: "all of these, one after the other", COMPARE: "two source trees in one run, in turns"}
    for name, what in {**BENCHMARKS, **others}.items():
        one = names.add_parser(name, help=what, description=what)
        one.add_argument("--quick", action="store_true", help="about a minute or less: good for a look")
        one.add_argument(
            "--scenes", type=lambda words: words.split(","), help="some of the scenes (or subjects), with commas"
        )
        one.add_argument("--rounds", type=int, help="rounds over all cases")
        one.add_argument("--steps", type=int, help="requests of the soak")
        one.add_argument("--out", type=Path, default=Path("bench-results"), help="folder for document and picture")
        one.add_argument("--strict", action="store_true", help="exit with 1 when a bar is not passed")
        one.add_argument("--json", action="store_true", help="print the document instead of the tables")
        if name == COMPARE:
            one.add_argument("--old", type=Path, required=True, help="a checkout: the folder that has src/")
            one.add_argument(
                "--new", type=Path, default=ROOT, help="the checkout to compare with it; this one if not given"
            )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
