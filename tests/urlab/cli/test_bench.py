import io
import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import psutil
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from urlab.cli.bench import bench
from urlab.cli.bench import plan as plans
from urlab.cli.bench.command import write_files
from urlab.cli.bench.parts import INSTALL, MACHINE
from urlab.cli.bench.plan import FULL, QUICK, SCENES, make_plan
from urlab.cli.bench.report import print_report
from urlab.cli.bench.results import BenchResult, StepResult
from urlab.cli.bench.spawn import ChildFailed, running, serving
from urlab.cli.bench.timing import summarize, time_calls
from urlab.cli.complaint import CommandError

SMALL = replace(QUICK, samples=20, warm_up=5, turn=10, live_s=0.5, idle_s=0.1, grids=(4, 64), frame_rounds=1, frames=5)
PLAN = replace(SMALL, scenes=("arm",), rounds=2, soak_steps=200)
ASKED = ("--quick", "--scenes", "arm", "--rounds", "2", "--steps", "200", "--json")
WAYS = ("raw_zmq", "echo", "plain", "plain_woken", "client_zmq", "client_inprocess")

app = typer.Typer()
app.command()(bench)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench-results")


@pytest.fixture(scope="module")
def printed(out: Path) -> str:
    """What one small run prints to stdout; it is shared by all tests that look at what came out."""
    before = children()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "QUICK", SMALL)
        done = CliRunner().invoke(app, [*ASKED, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert children() == before, "the run left processes behind"
    return done.stdout


@pytest.fixture(scope="module")
def result(printed: str) -> BenchResult:
    return msgspec.json.decode(printed, type=BenchResult)


def test_percentiles_are_those_of_numpy() -> None:
    chance = random.Random(7)
    durations_ns = [chance.randrange(1_000, 900_000) for _ in range(997)]
    timing = summarize(durations_ns)
    expected = np.percentile(np.array(durations_ns) / 1000, [50, 90, 99, 99.9])
    assert (timing.p50_us, timing.p90_us, timing.p99_us, timing.p999_us) == pytest.approx(tuple(expected))
    assert timing.count == 997
    assert timing.min_us <= timing.p50_us <= timing.p99_us <= timing.max_us


def test_the_rate_is_calls_per_second_in_a_row() -> None:
    assert summarize([1_000_000, 3_000_000]).rate_hz == pytest.approx(500)


def test_every_call_is_timed() -> None:
    calls: list[int] = []
    durations_ns = time_calls(lambda: calls.append(1), 5)
    assert len(calls) == len(durations_ns) == 5
    assert min(durations_ns) > 0


def test_every_case_has_every_way(result: BenchResult) -> None:
    asked = [(case.scene, case.observations, case.n_steps) for case in PLAN.cases()]
    assert [(one.scene, one.observations, one.n_steps) for one in result.stepping] == asked
    expected = PLAN.rounds * PLAN.samples
    assert all(getattr(one, way).count == expected for one in result.stepping for way in WAYS)


def test_all_ways_end_in_the_same_state(result: BenchResult) -> None:
    assert [one for one in result.stepping if not one.same_state] == []


def test_a_ratio_is_the_request_over_its_two_floors(result: BenchResult) -> None:
    for one in result.stepping:
        assert one.ratio == pytest.approx(one.raw_zmq.p50_us / (one.echo.p50_us + one.plain.p50_us))
        assert len(one.ratio_of_rounds) == PLAN.rounds


def test_more_observations_are_larger_replies(result: BenchResult) -> None:
    sizes = {one.observations: one.reply_bytes for one in result.stepping if one.n_steps == 1}
    assert 100 < sizes["minimal"] < sizes["standard"] < sizes["full"]


def test_a_start_and_its_memory_are_plausible(result: BenchResult) -> None:
    assert len(result.start.ready_s) == len(result.start.rss_ready_mb) == PLAN.starts
    assert min(result.start.ready_s) > 0
    assert all(20 < rss < 2000 for rss in (*result.start.rss_ready_mb, result.memory[0].rss_stepped_mb))


def test_live_pacing_is_plausible(result: BenchResult) -> None:
    pacing = result.pacing
    assert pacing.timestep_s == 0.002
    assert 0 < pacing.real_time_factor < 1.7
    assert pacing.lateness.steps > 20
    assert 0 <= pacing.lateness.p50_ms <= pacing.lateness.p99_ms <= pacing.lateness.max_ms
    assert len(pacing.lateness.quantiles_ms) == 101
    assert pacing.cpu_live_percent >= 0


def test_a_soak_answers_every_request(result: BenchResult) -> None:
    soak = result.soak
    assert (soak.answered, soak.errors, soak.first_error) == (PLAN.soak_steps, 0, None)
    assert soak.rss_steps[-1] == PLAN.soak_steps
    assert len(soak.rss_steps) == len(soak.rss_mb)


def test_a_run_passes_when_every_bar_does(result: BenchResult) -> None:
    assert len(result.verdicts) == 12
    assert result.passed == all(one.passed for one in result.verdicts)
    assert next(one for one in result.verdicts if one.name.startswith("errors")).passed


def test_the_json_holds_everything(printed: str) -> None:
    document = json.loads(printed)
    assert document["machine"]["versions"].keys() >= {"python", "mujoco", "pyzmq", "numpy", "urlab"}
    assert document["machine"]["cores"] >= 1
    assert document["plan"]["soak_steps"] == PLAN.soak_steps
    assert document["stepping"][0].keys() == {*StepResult.__struct_fields__}


def test_a_report_names_every_case_and_every_bar(result: BenchResult) -> None:
    console = Console(width=200, file=io.StringIO(), record=True)
    print_report(result, console)
    report = console.export_text()
    assert all(case.label in report for case in PLAN.cases())
    assert all(one.name in report for one in result.verdicts)


def test_the_command_leaves_the_json_and_a_picture(printed: str, out: Path) -> None:
    assert (out / "bench.json").read_text() == printed
    assert (out / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_without_the_plot_library_there_is_no_picture_but_the_line_that_installs_it(
    result: BenchResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "urlab.cli.bench.plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_files(MACHINE, result, tmp_path, Console(quiet=True))
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]
    assert INSTALL in capsys.readouterr().err


def test_without_psutil_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    done = CliRunner().invoke(app, ["--quick"])
    assert isinstance(done.exception, CommandError)
    assert INSTALL in str(done.exception)


def test_an_unknown_scene_is_refused_with_those_that_exist() -> None:
    done = CliRunner().invoke(app, ["--scenes", "arm,moon"])
    assert done.exit_code == 2
    assert all(word in done.output for word in ("moon", *SCENES))


def test_options_change_the_plan_that_full_or_quick_makes() -> None:
    assert make_plan(quick=False, scenes=tuple(SCENES), rounds=None, steps=None) == FULL
    assert make_plan(quick=True, scenes=("demo",), rounds=4, steps=9) == replace(
        QUICK, scenes=("demo",), rounds=4, soak_steps=9
    )


def test_a_server_that_does_not_start_says_why() -> None:
    before = children()
    with pytest.raises(ChildFailed, match="no_such_level"), serving(["no_such_level"]):
        pass
    assert children() == before


def test_whatever_a_child_starts_ends_with_it() -> None:
    script = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
    command = [sys.executable, "-c", script + "open(sys.argv[1] + '/up', 'w').write('{}'); time.sleep(60)"]
    before = children()
    with running(command) as (child, folder):
        child.wait_for_file(folder / "up")
        started = [one for one in children() if one not in before]
        assert len(started) == 2
    assert survivors(started) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    script = "import typer; from urlab.cli.bench import bench; typer.run(bench)"
    command = [sys.executable, "-c", script, "--quick", "--scenes", "arm", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started = wait_for_children(process.pid)
    process.send_signal(number)
    assert process.wait(20) != 0
    assert survivors(started) == []
    assert list(tmp_path.iterdir()) == []


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def wait_for_children(pid: int) -> list[psutil.Process]:
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        found = psutil.Process(pid).children(recursive=True)
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("the bench has started nothing")


def survivors(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run after a moment; one that nobody has reaped yet does not run."""
    limit = time.monotonic() + 5
    while alive := [one for one in processes if runs(one)]:
        if time.monotonic() > limit:
            break
        time.sleep(0.01)
    return alive


def runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_scenes_of_many_robots_are_built_beside_what_mujoco_needs(result: BenchResult) -> None:
    assert [one.cells for one in result.authoring] == list(PLAN.grids)
    for one in result.authoring:
        assert one.ratio == pytest.approx((one.spawn_s + one.play_s) / one.bare_s)
        assert one.bare_s > 0


def test_steps_with_a_camera_are_compared_with_a_bare_renderer(result: BenchResult) -> None:
    assert [(one.width, one.mode) for one in result.cameras] == [
        (224, "real"), (224, "depth"), (640, "real"), (640, "depth"),
    ]  # fmt: skip
    for one in result.cameras:
        assert one.rate_of_bare == pytest.approx(one.bare.p50_us / one.inprocess.p50_us)
        assert one.inprocess.count == PLAN.frame_rounds * PLAN.frames


def test_cameras_stream_while_physics_is_live(result: BenchResult) -> None:
    assert min(result.streaming.frames_hz) > 0
    assert 0 < result.streaming.real_time_factor < 1.7
    assert result.streaming.lateness.steps > 20
