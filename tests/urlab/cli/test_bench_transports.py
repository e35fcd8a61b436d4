"""`urlab bench transports`: what it measures, how it judges, what it leaves behind."""

import io
import json
import sys
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import mujoco
import numpy as np
import psutil
import pytest
import typer
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from urlab.cli.bench import bench
from urlab.cli.bench.command import write_files
from urlab.cli.bench.parts import INSTALL, PARTS
from urlab.cli.bench.results import Timing, Verdict
from urlab.cli.bench.soak import SERVER, growth, soak
from urlab.cli.bench.spawn import running, serving
from urlab.cli.bench.transports import SCENE_NAMES, TRANSPORTS, make_transports_plan
from urlab.cli.bench.transports import plan as plans
from urlab.cli.bench.transports.hundred import hundred_mjcf
from urlab.cli.bench.transports.plan import ECHOES, FULL, LEVELS, QUICK
from urlab.cli.bench.transports.report import print_transports
from urlab.cli.bench.transports.results import RawRequest, TransportsCase, TransportsResult
from urlab.cli.bench.transports.shm_client import connect_shm
from urlab.cli.bench.transports.shm_echo import echoing_in_shm
from urlab.cli.bench.transports.verdicts import judge_transports
from urlab.cli.bench.turns import Way, calls_per_block, in_turns
from urlab.cli.complaint import CommandError
from urlab_client import URLabTimeoutError

SMALL = replace(QUICK, samples=40, idle_s=0.3)
PLAN = replace(SMALL, scenes=("arm",), rounds=1, soak_steps=300)
ASKED = ("transports", "--quick", "--scenes", "arm", "--rounds", "1", "--steps", "300", "--json")

app = typer.Typer()
app.command()(bench)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bench-results")


@pytest.fixture(scope="module")
def printed(out: Path) -> str:
    """What one small run prints to stdout; it is shared by all tests that look at what came out."""
    before = psutil.Process().children(recursive=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "QUICK", SMALL)
        done = CliRunner().invoke(app, [*ASKED, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert psutil.Process().children(recursive=True) == before, "the run left processes behind"
    return done.stdout


@pytest.fixture(scope="module")
def result(printed: str) -> TransportsResult:
    return msgspec.json.decode(printed, type=TransportsResult)


def standard(result: TransportsResult) -> TransportsCase:
    (case,) = (one for one in result.cases if one.observations == "standard" and one.n_steps == 1)
    return case


# -- what is measured ---------------------------------------------------------------------------------------------


def test_every_case_has_every_transport_and_its_floors(result: TransportsResult) -> None:
    expected = [("arm", level, count) for level in LEVELS for count in (1, 10)]
    assert [(one.scene, one.observations, one.n_steps) for one in result.cases] == expected
    for one in result.cases:
        assert (list(one.clients), list(one.echoes)) == (list(TRANSPORTS), list(ECHOES))
        raws = [timing for raw in (one.raw_tcp, one.raw_tcp_unplaced) for timing in (raw.request, raw.echo, raw.plain)]
        timings = [client.step for client in one.clients.values()] + [*one.echoes.values(), one.plain, *raws]
        assert {timing.count for timing in timings} == {PLAN.rounds * PLAN.samples}
        assert {len(medians) for medians in one.round_p50_us.values()} == {PLAN.rounds}
        assert one.round_p50_us["shm"] == [one.clients["shm"].step.p50_us], "of one round that is the whole"
        assert all(0 < timing.p50_us <= timing.p99_us <= timing.p999_us <= timing.max_us for timing in timings)


def test_all_transports_end_in_the_state_of_the_plain_loop(result: TransportsResult) -> None:
    assert [one for one in result.cases if not one.same_state] == []


def test_steps_per_second_count_every_step_of_a_request(result: TransportsResult) -> None:
    for one in result.cases:
        for client in one.clients.values():
            assert client.steps_per_s == pytest.approx(client.step.rate_hz * one.n_steps)


def test_only_a_server_in_another_process_has_cpu_of_its_own(result: TransportsResult) -> None:
    for one in result.cases:
        assert {name for name, client in one.clients.items() if client.server_cpu is None} == {"inprocess"}
        used = [client.server_cpu for client in one.clients.values() if client.server_cpu is not None]
        assert min([*used, *(client.client_cpu for client in one.clients.values())]) > 0


def test_more_observations_are_larger_replies(result: TransportsResult) -> None:
    sizes = [one.reply_bytes for one in result.cases if one.n_steps == 1]
    assert 100 < sizes[0] < sizes[1] < sizes[2]


def test_a_soak_in_shared_memory_answers_every_step(result: TransportsResult) -> None:
    lockstep = result.soak.lockstep
    assert (lockstep.answered, lockstep.errors, lockstep.first_error) == (PLAN.soak_steps, 0, None)
    assert len(lockstep.rss_mb) == len(result.soak.client_rss_mb) == len(lockstep.rss_steps)
    assert min([*lockstep.rss_mb, *result.soak.client_rss_mb]) > 20


def test_the_full_plan_is_what_the_command_says() -> None:
    assert make_transports_plan(quick=False, scenes=SCENE_NAMES, rounds=None, steps=None) == FULL
    assert FULL.soak_steps == 1_000_000
    assert len(FULL.cases()) == len(SCENE_NAMES) * len(LEVELS) * 2
    assert min(FULL.idle_s, QUICK.idle_s) >= 3
    asked = make_transports_plan(quick=True, scenes=("hundred",), rounds=4, steps=9)
    assert asked == replace(QUICK, scenes=("hundred",), rounds=4, soak_steps=9)


def test_the_scene_of_a_hundred_bodies_has_them_and_moves() -> None:
    model = mujoco.MjModel.from_xml_string(hundred_mjcf())
    data = mujoco.MjData(model)
    assert (model.nbody - 1, model.njnt, model.nu, model.nsensordata) == (100, 100, 100, 260)
    mujoco.mj_step(model, data, 500)
    assert np.abs(data.qpos).max() > 0.1
    assert (data.ncon, int(data.warning.number.sum())) == (0, 0)


# -- how it is measured -------------------------------------------------------------------------------------------


def test_ways_take_turns_after_a_run_up() -> None:
    calls: list[str] = []
    ways = [Way(name, lambda: None, lambda name=name: calls.append(name)) for name in "ab"]  # type: ignore[misc]
    amounts = replace(PLAN, samples=5, warm_up=2, turn=3)
    taken = in_turns(amounts, ways, run_up=1)
    assert "".join(calls) == "aabb" + "aaaa" + "bbbb" + "aaa" + "bbb"
    assert calls.count("a") == calls_per_block(amounts, run_up=1)
    assert [len(one.durations_ns) for one in taken.values()] == [5, 5]


def test_a_turn_counts_the_cpu_of_both_ends() -> None:
    far = iter([1.0, 1.5, 2.0, 2.25])
    way = Way("spin", lambda: None, lambda: sum(range(20_000)), far_cpu_s=lambda: next(far))
    begin_s = time.process_time()
    taken = in_turns(replace(PLAN, samples=4, warm_up=0, turn=2), [way])["spin"]
    assert taken.far_cpu_s == 0.75
    assert 0 < taken.own_cpu_s < time.process_time() - begin_s
    assert sum(taken.durations_ns) / 1e9 <= taken.wall_s


def test_a_childs_cpu_is_what_the_system_says() -> None:
    script = (
        "import os, sys, time\n"
        "while time.process_time() < 0.3: pass\n"
        "open(sys.argv[1] + '/part', 'w').write('{}')\n"
        "os.rename(sys.argv[1] + '/part', sys.argv[1] + '/up')\n"
        "time.sleep(60)"
    )
    with running([sys.executable, "-c", script]) as (child, folder):
        child.wait_for_file(folder / "up")
        used = psutil.Process(child.pid).cpu_times()
        assert child.cpu_s == pytest.approx(used.user + used.system, abs=0.03)
        assert child.cpu_s >= 0.3


def test_the_echo_in_shared_memory_answers_and_leaves_nothing() -> None:
    before = set(psutil.Process().children())
    with echoing_in_shm() as echo:
        (child,) = set(psutil.Process().children()) - before
        regions = Path(child.cmdline()[-2])
        assert len(list(regions.glob("*.shm"))) == 2
        for request_bytes, reply_bytes in ((10, 1), (225, 324), (100_000, 200_000)):
            echo.use(request_bytes, reply_bytes)
            assert echo.once() == bytes(reply_bytes)
    assert not regions.exists()
    assert set(psutil.Process().children()) == before


def test_a_client_that_would_fall_back_to_sockets_is_refused(arm: str) -> None:
    with serving([arm, "--no-shm"]) as server, pytest.raises(CommandError, match="shared memory"):
        connect_shm(server.step_endpoint)


def test_a_soak_counts_wrong_replies_and_ends_when_none_comes() -> None:
    told = iter([*range(1, 7), 8, *range(8, 51)])

    def ask() -> dict[str, Any]:
        for step in told:
            return {"op": "step_ok", "step": step}
        raise URLabTimeoutError("tcp://nowhere", 1.0)

    log = soak(80, ask, {SERVER: lambda: 100.0}, lambda _: None)
    assert (log.answered, len(log.failed)) == (50, 2)
    assert log.failed[0] == "request 7: the server counts 8 steps instead of 7"
    assert log.failed[1].startswith("request 51 was not answered: ")


def test_memory_that_grows_is_told_after_the_first_tenth() -> None:
    steps, rss_mb = count(1), count(100)

    def ask() -> dict[str, Any]:
        return {"op": "step_ok", "step": next(steps)}

    log = soak(80, ask, {SERVER: lambda: float(next(rss_mb))}, lambda _: None)
    assert growth(log, SERVER) == pytest.approx((35.0, 50_000.0))


# -- how it is judged ---------------------------------------------------------------------------------------------


def timing(p50_us: float, p99_us: float | None = None) -> Timing:
    tail_us = p50_us if p99_us is None else p99_us
    return Timing(
        count=1, mean_us=p50_us, min_us=p50_us, p50_us=p50_us, p90_us=p50_us, p99_us=tail_us, p999_us=tail_us,
        max_us=tail_us, rate_hz=1e6 / p50_us,
    )  # fmt: skip


def judged(result: TransportsResult, **p50_us: float) -> dict[str, Verdict]:
    """The verdicts, by the letters of their bars, on a case whose medians are these."""
    case = standard(result)
    clients = {
        name: msgspec.structs.replace(client, step=timing(p50_us[name], p50_us.get(f"{name}_p99")))
        for name, client in case.clients.items()
    }
    raw = RawRequest(
        a_core_each=True, request=timing(p50_us["raw"]), echo=timing(p50_us["echo"]), plain=timing(p50_us["plain"])
    )
    case = msgspec.structs.replace(case, clients=clients, raw_tcp=raw)
    idle = msgspec.structs.replace(
        result.idle, paused_server_percent=0.1, direct_server_percent=1.9,
        paused_client_percent=p50_us.get("client_percent", 0.0), direct_client_percent=0.0,
    )  # fmt: skip
    soak_result = msgspec.structs.replace(result.soak, client_growth_mb=p50_us.get("growth_mb", 0.0))
    return dict(zip("abcdsijfm", judge_transports([case], idle, soak_result), strict=True))


GOOD = {"inprocess": 50.0, "shm": 80.0, "ipc": 140.0, "tcp": 150.0, "raw": 124.0, "echo": 80.0, "plain": 20.0}


def test_medians_within_every_bar_pass(result: TransportsResult) -> None:
    assert [letter for letter, one in judged(result, **GOOD).items() if not one.passed] == []


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        ({"shm": 81.0}, "a"),
        ({"shm": 101.0, "tcp": 250.0}, "b"),
        ({"shm_p99": 321.0}, "c"),
        ({"raw": 126.0}, "d"),
        ({"client_percent": 2.0}, "j"),
        ({"growth_mb": 1.1}, "m"),
    ],
)
def test_each_bar_fails_beyond_its_value(result: TransportsResult, changed: dict[str, float], failing: str) -> None:
    found = judged(result, **GOOD | changed)
    assert "".join(letter for letter, one in found.items() if not one.passed) == failing


def test_bars_of_latency_are_judged_for_every_scene(result: TransportsResult) -> None:
    other = msgspec.structs.replace(standard(result), scene="quadruped")
    names = [one.name for one in judge_transports([*result.cases, other], result.idle, result.soak)]
    for scene in ("arm", "quadruped"):
        assert sum(name.startswith(f"{scene}: ") for name in names) == 4


def test_a_run_passes_when_every_bar_does(result: TransportsResult) -> None:
    assert result.passed == all(one.passed for one in result.verdicts)
    assert result.verdicts == judge_transports(result.cases, result.idle, result.soak)


# -- what is left behind ------------------------------------------------------------------------------------------


def test_the_json_names_machine_versions_and_plan(printed: str) -> None:
    document = json.loads(printed)
    assert document["machine"]["versions"].keys() >= {"python", "mujoco", "pyzmq", "numpy", "urlab"}
    assert (document["plan"]["scenes"], document["plan"]["soak_steps"]) == (["arm"], PLAN.soak_steps)


def test_a_report_names_every_case_every_transport_and_every_bar(result: TransportsResult) -> None:
    console = Console(width=200, file=io.StringIO(), record=True)
    print_transports(result, console)
    report = console.export_text()
    assert all(case.label in report for case in PLAN.cases())
    assert all(name in report for name in TRANSPORTS.values())
    assert all(one.name in report for one in result.verdicts)


def test_the_command_leaves_the_json_and_a_picture_that_a_page_can_hold(printed: str, out: Path) -> None:
    assert (out / "transports.json").read_text() == printed
    with Image.open(out / "transports.png") as picture:
        assert picture.size[0] == 2 * 900


def test_without_the_plot_library_there_is_no_picture_but_the_line_that_installs_it(
    result: TransportsResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "urlab.cli.bench.transports.plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_files(PARTS["transports"], result, tmp_path, Console(quiet=True))
    assert [path.name for path in tmp_path.iterdir()] == ["transports.json"]
    assert INSTALL in capsys.readouterr().err


def test_scenes_are_those_of_the_part_that_is_asked_for() -> None:
    done = CliRunner().invoke(app, ["transports", "--scenes", "demo"])
    assert done.exit_code == 2
    assert all(word in done.output for word in ("demo", *SCENE_NAMES))


def test_a_part_that_does_not_exist_is_refused_with_those_that_do() -> None:
    done = CliRunner().invoke(app, ["teleports"])
    assert done.exit_code == 2
    assert "transports" in done.output
