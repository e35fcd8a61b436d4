"""Every benchmark runs in a small way and leaves its files; no time is judged. `make bench-test` runs this."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from benchmarks import compare, reporting
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.measuring import (
    BenchmarkError,
    Plan,
    Rounds,
    SampleCounts,
    Subject,
    a_core_each,
    bar,
    can_place,
    summarize,
)
from benchmarks.processes import ROOT, Child, Server
from urlab.errors import ChildFailed

SMALL = SampleCounts(samples=10, warm_up=2, turn=5, run_up=1)
SCENES = {
    "machine": ("arm",),
    "transports": ("arm",),
    "cameras": ("small",),
    "authoring": ("128",),
    "ros2": ("arm",),
    "envs": ("arm",),
}
DATA = {
    "machine": {"start", "stepping", "memory", "pacing", "soak"},
    "transports": {"cases", "idle_percent", "soak"},
    "editor": {"steps", "closed_ratio", "open_ratio", "many"},
    "encryption": {"steps", "pictures"},
    "cameras": {"cameras", "streaming"},
    "authoring": {"authoring"},
    "ros2": {"scenes"},
    "envs": {"batches", "singles", "sizes_us", "memory_kb"},
    "evaluation": {"renderer", "steps", "whole"},
}


def small_plan(name: str) -> Plan:
    plan: Plan = import_module(f"benchmarks.{name}").QUICK
    soak = 200 if plan.soak_steps else 0
    scenes = SCENES.get(name, plan.scenes[:1])
    return replace(plan, scenes=scenes, rounds=2, counts=SMALL, watch_s=min(plan.watch_s, 0.5), soak_steps=soak)


def descendants() -> list[psutil.Process]:
    return list(psutil.Process().children(recursive=True))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_leaves_a_document_a_picture_and_no_process(name: str, tmp_path: Path) -> None:
    before, console = descendants(), Console(quiet=True)
    outcome = reporting.run(name, import_module(f"benchmarks.{name}").measure, small_plan(name), console)
    assert descendants() == before
    reporting.show(outcome, console)
    document = json.loads(reporting.write(outcome, tmp_path, console))
    assert document.keys() >= {"machine", "plan", "bars", "passed", *DATA[name]}
    assert document["passed"] == all(one["passed"] for one in document["bars"])
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert [one["name"] for one in document["bars"] if "differ" in one["name"] and not one["passed"]] == []


@pytest.mark.timeout(300)
def test_two_trees_are_compared_subject_by_subject() -> None:
    plan = replace(compare.QUICK, rounds=2, counts=SampleCounts(50, 0, 50), watch_s=0.1)
    report = compare.measure(plan, lambda _: None, old=ROOT, new=ROOT)
    found: list[Any] = report.data["subjects"]
    assert [one.subject for one in found] == list(compare.SUBJECTS)
    assert all(len(values) == 2 and min(values) > 0 for one in found for values in one.rounds.values())


def test_a_tree_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="not a checkout"):
        compare.measure(compare.QUICK, lambda _: None, old=tmp_path, new=ROOT)


def test_the_median_of_ratios_comes_with_its_interval() -> None:
    assert compare.median_ratio([2.0] * 20, [1.0] * 20) == (2.0, 2.0, 2.0)
    middle, low, high = compare.median_ratio([float(number) for number in range(1, 22)], [1.0] * 21)
    assert low < middle == 11.0 < high


def test_a_difference_counts_only_beyond_that_of_the_old_tree_from_itself() -> None:
    def found(new: tuple[float, float, float], again: tuple[float, float, float]) -> str:
        return compare.Comparison(subject="zmq", unit="us", rounds={}, new_over_old=new, again_over_old=again).verdict

    assert found((1.2, 1.1, 1.3), (1.0, 0.98, 1.02)) == "slower"
    assert found((0.8, 0.7, 0.9), (1.0, 0.98, 1.02)) == "faster"
    assert found((1.2, 1.1, 1.3), (1.2, 1.1, 1.3)).startswith("same")


def test_an_unknown_scene_is_refused_with_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["transports", "--scenes", "moon"]) == 1
    said = capsys.readouterr().err
    assert all(word in said for word in ("moon", "arm", "hundred"))


def test_percentiles_and_rate_of_samples() -> None:
    timing = summarize([1_000_000, 3_000_000])
    assert (timing.p50_us, timing.max_us, timing.rate_hz, timing.count) == (2000.0, 3000.0, 500.0, 2)


def test_subjects_take_turns_and_only_samples_are_timed() -> None:
    calls: list[str] = []
    rounds = Rounds()
    rounds.measure(SampleCounts(4, 1, 2, 1), [Subject(name, lambda name=name: calls.append(name)) for name in "ab"])  # type: ignore[misc]
    assert "".join(calls) == "ab" + "aaabbb" * 2
    assert rounds.timing("a").count == 4


def test_a_bar_passes_within_its_limits_only() -> None:
    assert bar("", 1.0, at_most=1.0).passed
    assert not bar("", 1.0, at_least=2.0).passed
    assert not bar("", 0.0, at_most=1.0, valid=False).passed
    assert bar("", 1.25, at_most=2.0, unit=" us", note="why").shown == "1.25 us (why)"


@pytest.mark.skipif(not can_place(), reason="needs Linux and two cores")
def test_both_ends_have_a_core_each_and_all_of_them_afterwards() -> None:
    cores = os.sched_getaffinity(0)
    with Child([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        with a_core_each(child.pid):
            near, far = os.sched_getaffinity(0), os.sched_getaffinity(child.pid)
        assert (len(near), len(far), near & far) == (1, 1, set())
        assert os.sched_getaffinity(0) == os.sched_getaffinity(child.pid) == cores


def test_a_server_that_does_not_start_says_why() -> None:
    before = descendants()
    with pytest.raises(ChildFailed, match="no_such_level"):
        Server(["no_such_level"])
    assert descendants() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "machine", "--quick", "--scenes", "arm", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    while not (started := psutil.Process(process.pid).children(recursive=True)):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(30) != 0
    assert psutil.wait_procs(started, timeout=5)[1] == []
    assert list(tmp_path.iterdir()) == []
