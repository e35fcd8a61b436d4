"""`urlab bench eval`: what it measures, how it judges, what it leaves behind; and the table of parts."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil
import pytest
import typer
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from urlab.cli.bench import bench
from urlab.cli.bench.command import write_files
from urlab.cli.bench.evaluation import EVAL_SCENES, make_eval_plan
from urlab.cli.bench.evaluation import plan as plans
from urlab.cli.bench.evaluation.pipe_child import ONCE, PipeChild, tell_all
from urlab.cli.bench.evaluation.plan import FULL, QUICK, TASKS, Block
from urlab.cli.bench.evaluation.plot import shares_ms
from urlab.cli.bench.evaluation.report import label, print_eval
from urlab.cli.bench.evaluation.results import EvalResult, StepsResult, WholeResult
from urlab.cli.bench.evaluation.stepping import _Found, pair_of
from urlab.cli.bench.evaluation.trail import SEED, BareSteps, Trail
from urlab.cli.bench.evaluation.verdicts import judge_eval
from urlab.cli.bench.evaluation.whole import chosen_tasks, whole_of
from urlab.cli.bench.parts import INSTALL, MACHINE, PARTS, Part
from urlab.cli.bench.results import Timing, Verdict
from urlab.cli.bench.timing import summarize
from urlab.cli.bench.turns import Taken
from urlab.cli.complaint import CommandError
from urlab.evaluation.embodiments import EMBODIMENTS
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.goals.scoring import sample_layout
from urlab.evaluation.runs.runner import RunOutcome
from urlab.evaluation.simulation.simulation import Simulation
from urlab.evaluation.tasks.task import find_task, task_names

SCENE = "franka_panda"
SMALL = replace(
    QUICK,
    steps=Block(samples=8, warm_up=2, turn=4),
    frames=Block(samples=2, warm_up=1, turn=2),
    most_tasks=1,
)
ASKED = ("eval", "--quick", "--scenes", SCENE, "--json")
WAYS = ("http", "episode", "simulation", "physics")

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
def result(printed: str) -> EvalResult:
    return msgspec.json.decode(printed, type=EvalResult)


@pytest.fixture
def steps(result: EvalResult) -> StepsResult:
    return result.steps[0]


# -- what is measured ---------------------------------------------------------------------------------------------


def test_a_robot_is_measured_without_cameras_and_with_them(result: EvalResult) -> None:
    assert [(one.scene, one.task, one.cameras) for one in result.steps] == [
        (SCENE, TASKS[SCENE], False),
        (SCENE, TASKS[SCENE], True),
    ]
    for one, block in zip(result.steps, (SMALL.steps, SMALL.frames), strict=True):
        assert all(getattr(one, way).count == SMALL.rounds * block.samples for way in WAYS)
        assert one.workers.two.count == one.http.count


def test_every_way_ends_in_the_same_state(result: EvalResult) -> None:
    assert [one for one in result.steps if not one.same_state] == []


def test_what_http_adds_is_its_step_less_the_episodes(steps: StepsResult) -> None:
    assert min(steps.physics.min_us, steps.episode.min_us, steps.http.min_us) > 0
    assert steps.added_ms == pytest.approx((steps.http.p50_us - steps.episode.p50_us) / 1000)


def test_pictures_are_drawn_by_us_and_by_mujoco_alone(result: EvalResult) -> None:
    without, drawn = result.steps
    assert (without.render, without.bare_render, drawn.bare_pair) == (None, None, None)
    assert drawn.render is not None
    assert drawn.bare_render is not None
    assert min(drawn.render.min_us, drawn.bare_render.min_us) > 0


def test_cpu_memory_and_start_are_plausible(result: EvalResult) -> None:
    for one in result.steps:
        assert one.cpu_one.client_ms > 0
        assert 0 < one.cpu_one.server_ms < 1000
        assert len(one.memory.worker_mb) == 3
        assert all(20 < own < whole < 3000 for own, whole in _pairs(one))
        assert 0.05 < one.ready_s < 60
        assert 0.05 < one.first_reset_s < 60


def _pairs(steps: StepsResult) -> list[tuple[float, float]]:
    return list(zip(steps.memory.worker_own_mb, steps.memory.worker_mb, strict=True))


def test_a_whole_evaluation_tells_how_its_tasks_went(result: EvalResult) -> None:
    whole = result.whole
    (task,) = whole.tasks
    assert (task.task, task.episodes, whole.episodes) == (chosen_tasks(_asked())[0], 1, 1)
    assert (whole.is_complete, whole.problem, whole.is_judged) == (True, None, False)
    assert 0 < task.mean_steps == whole.control_steps <= find_task(task.task).num_steps
    assert whole.steps_per_s == pytest.approx(whole.control_steps / whole.took_s)


def _asked() -> plans.EvalPlan:
    return replace(SMALL, scenes=(SCENE,))


# -- the plan -----------------------------------------------------------------------------------------------------


def test_the_full_plan_is_what_the_command_says() -> None:
    assert make_eval_plan(quick=False, scenes=EVAL_SCENES, rounds=None) == FULL
    assert make_eval_plan(quick=True, scenes=(SCENE,), rounds=4) == replace(QUICK, scenes=(SCENE,), rounds=4)


def test_every_robot_has_a_task_of_its_own_that_is_long_enough() -> None:
    assert TASKS.keys() == EMBODIMENTS.keys()
    for scene, name in TASKS.items():
        task = find_task(name)
        assert task.embodiment == scene
        assert task.num_steps > 2 * FULL.steps.samples


def test_only_all_tasks_with_all_seeds_are_the_whole_evaluation() -> None:
    assert FULL.is_whole
    assert not QUICK.is_whole
    assert not replace(FULL, scenes=EVAL_SCENES[:2]).is_whole
    assert not replace(FULL, episodes=4).is_whole


def test_a_full_plan_runs_every_shipped_task_and_a_quick_one_the_first_of_two_robots() -> None:
    assert sorted(chosen_tasks(FULL)) == sorted(task_names())
    quick = chosen_tasks(QUICK)
    assert len({find_task(name).embodiment for name in quick}) == len(quick) == 2
    assert {find_task(name).embodiment for name in chosen_tasks(replace(FULL, scenes=("aloha",)))} == {"aloha"}


# -- how it is measured -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scene", EVAL_SCENES)
def test_bare_steps_are_those_of_a_simulation_to_the_last_bit(scene: str) -> None:
    trail = Trail(TASKS[scene], 12)
    bare, simulation = BareSteps(trail), Simulation(trail.task, trail.embodiment, cameras=False)
    simulation.reset(sample_layout(trail.task, SEED))
    bare.reset()
    begin = bare.joints
    for action in trail.actions:
        simulation.step(action)
        bare.once()
        assert np.array_equal(bare.joints, simulation.joints)
    assert np.abs(bare.joints - begin).max() > 0.01
    bare.reset()
    assert np.array_equal(bare.joints, begin)
    simulation.close()


def test_a_child_that_dies_is_told_about() -> None:
    with PipeChild("urlab.cli.bench.evaluation.physics_child", "no_such_task", "1") as child:
        with pytest.raises(CommandError, match="physics_child ended by itself, with code 1"):
            tell_all([child], ONCE)


def test_two_steps_in_a_request_count_twice() -> None:
    one, two = summarize([1_000_000, 3_000_000]), summarize([2_000_000, 3_000_000])
    assert pair_of(one, two).ratio == pytest.approx(2 * (2 / 5e-3) / (2 / 4e-3))


def test_an_outcome_is_counted_by_task() -> None:
    done = [
        EpisodeResult("a", "000", 1.0, True, 100, "success"),
        EpisodeResult("b", "000", 0.5, False, 300, "step_limit"),
        EpisodeResult("a", "001", 0.0, False, None, None),
    ]
    outcome = RunOutcome("run", Path(), total=4, finished=done, problem=ValueError("gone"))
    whole = whole_of(FULL, ["a", "b", "c"], outcome, took_s=8.0)
    assert [(one.task, one.successes, one.episodes, one.mean_score, one.mean_steps) for one in whole.tasks] == [
        ("a", 1, 2, 0.5, 50.0),
        ("b", 0, 1, 0.5, 300.0),
        ("c", 0, 0, 0.0, 0.0),
    ]
    assert (whole.control_steps, whole.steps_per_s, whole.is_complete, whole.problem) == (400, 50.0, False, "gone")


# -- how it is judged ---------------------------------------------------------------------------------------------


def _timing(ms: float) -> Timing:
    return summarize([int(ms * 1e6)] * 4)


def judged(result: EvalResult, *, two_ms: float = 1.0, took_s: float = 100.0, **changes: Any) -> list[Verdict]:
    """The verdicts on that run with one worker's step of 1 ms, and with these changes."""
    pair = pair_of(_timing(1.0), _timing(two_ms))
    steps = [
        msgspec.structs.replace(one, judged=None if one.cameras else pair, judged_rounds=1, same_state=True)
        for one in result.steps
    ]
    whole = msgspec.structs.replace(result.whole, **{"is_judged": True, "took_s": took_s, **changes})
    return judge_eval(steps, whole)


def failed(verdicts: list[Verdict]) -> list[str]:
    return [one.name for one in verdicts if not one.passed]


def test_two_workers_must_bring_seven_tenths_more_than_one(result: EvalResult) -> None:
    assert failed(judged(result, two_ms=2 / 1.71)) == []
    (name,) = failed(judged(result, two_ms=2 / 1.69))
    assert "two workers" in name


def test_cameras_are_told_and_not_judged(result: EvalResult) -> None:
    assert [one.judged for one in result.steps if one.cameras] == [None]
    slow = [msgspec.structs.replace(one, judged=None, same_state=True) for one in result.steps]
    assert [one.name for one in judge_eval(slow, result.whole) if "two workers" in one.name] == []


def test_rounds_without_two_cores_are_not_judged() -> None:
    """In the second of three rounds two bare processes take twice as long as one: somebody else was there."""
    found = _Found()
    for bare_two_ns, two_ns in ((1_000, 1_100), (2_000, 9_000), (1_050, 1_300)):
        for way, took_ns in (("bare_one", 1_000), ("bare_two", bare_two_ns), ("http", 1_000), ("two", two_ns)):
            found.rounds[way].append(Taken([took_ns] * 4))
    assert found.with_two_cores() == [0, 2]
    assert found.pair([0, 2]).ratio == pytest.approx(2 / 1.2)


@pytest.mark.parametrize("change", [{"took_s": 600.0}, {"is_complete": False, "problem": "gone"}])
def test_an_evaluation_that_is_slow_or_broken_fails(result: EvalResult, change: dict[str, Any]) -> None:
    assert failed(judged(result, took_s=599.9)) == []
    (name,) = failed(judged(result, **change))
    assert "oracles" in name


def test_less_than_everything_is_not_judged(result: EvalResult) -> None:
    assert failed(judged(result, is_judged=False, took_s=9999.0)) == []


def test_a_state_that_differs_fails(result: EvalResult) -> None:
    apart = [msgspec.structs.replace(one, same_state=one.cameras) for one in result.steps]
    assert any("state differs" in name for name in failed(judge_eval(apart, result.whole)))


def test_a_run_passes_when_every_bar_does(result: EvalResult) -> None:
    assert result.verdicts == judge_eval(result.steps, result.whole)
    assert result.passed == all(one.passed for one in result.verdicts)


# -- what is left behind ------------------------------------------------------------------------------------------


def test_the_json_names_machine_versions_renderer_and_plan(printed: str) -> None:
    document = json.loads(printed)
    assert document["machine"]["versions"].keys() >= {"python", "urlab", "mujoco", "fastapi", "uvicorn", "uvloop"}
    assert document["plan"]["scenes"] == [SCENE]
    assert document["plan"]["steps"]["samples"] == SMALL.steps.samples
    assert document["renderer"]


def test_a_report_names_every_case_every_task_and_every_bar(result: EvalResult) -> None:
    console = Console(width=200, file=io.StringIO(), record=True)
    print_eval(result, console)
    report = console.export_text()
    assert all(label(one) in report for one in result.steps)
    assert all(one.task in report for one in result.whole.tasks)
    assert all(one.name in report for one in result.verdicts)


def test_a_report_says_why_an_evaluation_ended_early(result: EvalResult) -> None:
    console = Console(width=200, file=io.StringIO(), record=True)
    whole: WholeResult = msgspec.structs.replace(result.whole, is_complete=False, problem="the server is gone")
    print_eval(msgspec.structs.replace(result, whole=whole), console)
    assert "it ended early: the server is gone" in console.export_text()


def test_the_parts_of_a_bar_add_up_to_the_step(result: EvalResult) -> None:
    for one in result.steps:
        shares = shares_ms(one)
        assert min(shares.values()) >= 0
        assert sum(shares.values()) >= one.http.p50_us / 1000 - 1e-9


def test_a_machine_that_cannot_draw_gets_a_picture_too(result: EvalResult, tmp_path: Path) -> None:
    from urlab.cli.bench.evaluation.plot import draw_eval

    draw_eval(msgspec.structs.replace(result, steps=result.steps[:1]), tmp_path / "eval.png")
    assert (tmp_path / "eval.png").stat().st_size > 1000


def test_the_command_leaves_the_json_and_a_picture_that_a_page_can_hold(printed: str, out: Path) -> None:
    assert (out / "eval.json").read_text() == printed
    with Image.open(out / "eval.png") as picture:
        assert picture.size[0] == 2 * 900


def test_without_the_plot_library_there_is_no_picture_but_the_line_that_installs_it(
    result: EvalResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "urlab.cli.bench.evaluation.plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_files(PARTS[Part.EVAL], result, tmp_path, Console(quiet=True))
    assert [path.name for path in tmp_path.iterdir()] == ["eval.json"]
    assert INSTALL in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "told"),
    [(("--scenes", "arm"), (*EVAL_SCENES, "arm")), (("--steps", "5"), ("no soak",))],
)
def test_what_does_not_fit_is_refused_with_what_does(asked: tuple[str, ...], told: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["eval", *asked])
    assert done.exit_code == 2
    assert all(word in done.output for word in told)


def test_a_missing_extra_is_answered_with_the_line_that_installs_it() -> None:
    script = "import sys; sys.modules['fastapi'] = None; from urlab.cli import main; main()"
    command = [sys.executable, "-c", script, "bench", "eval", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = " ".join(done.stderr.split())
    assert done.returncode == 1
    assert "fastapi" in said
    assert "pip install 'urlab-headless[bench,eval]'" in said


# -- the table of parts -------------------------------------------------------------------------------------------


def test_every_part_can_be_asked_for_and_has_files_of_its_own() -> None:
    assert list(PARTS) == list(Part)
    stems = [part.stem for part in (MACHINE, *PARTS.values())]
    assert len(set(stems)) == len(stems)


@pytest.mark.parametrize("part", [MACHINE, *PARTS.values()], ids=lambda part: part.stem)
def test_every_part_measures_reports_and_draws_with_what_it_says(part: Any) -> None:
    assert all(callable(one.load()) for one in (part.run, part.report, part.draw))
    full, quick = (_made(part, quick=quick) for quick in (False, True))
    assert (full.rounds, quick.rounds) == part.rounds
    assert full.scenes == part.scenes
    if part.soak_steps is not None:
        assert (full.soak_steps, quick.soak_steps) == part.soak_steps


def _made(part: Any, *, quick: bool) -> Any:
    soak = {} if part.soak_steps is None else {"steps": None}
    return part.make_plan(quick=quick, scenes=part.scenes, rounds=None, **soak)
