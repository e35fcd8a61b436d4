"""`urlab bench ros2`: what it measures, how it judges, what it leaves behind."""

import io
import json
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

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
from urlab.cli.bench.parts import INSTALL, PARTS
from urlab.cli.bench.results import Verdict
from urlab.cli.bench.ros2 import ROS2_SCENES, make_ros2_plan, processes
from urlab.cli.bench.ros2 import plan as plans
from urlab.cli.bench.ros2.arrivals import age_of, rate_of, stamp_ns
from urlab.cli.bench.ros2.plan import FULL, LOAD_TITLES, LOADS, QUICK
from urlab.cli.bench.ros2.processes import free_domain, only_here
from urlab.cli.bench.ros2.report import print_ros2
from urlab.cli.bench.ros2.results import LoadResult, Ros2Result, Ros2Scene
from urlab.cli.bench.ros2.verdicts import judge_ros2
from urlab.ros2 import messages

SMALL = replace(QUICK, watched_s=1.0, samples=20, warm_up=3)
ASKED = ("ros2", "--quick", "--scenes", "arm", "--json")
MS = 10**6
DOMAINS = range(10, 30)
"""None of those in which other tests may be at the same time."""

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
        patch.setattr(processes, "_DOMAINS", DOMAINS)
        done = CliRunner().invoke(app, [*ASKED, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert psutil.Process().children(recursive=True) == before, "the run left processes behind"
    return done.stdout


@pytest.fixture(scope="module")
def result(printed: str) -> Ros2Result:
    return msgspec.json.decode(printed, type=Ros2Result)


@pytest.fixture
def scene(result: Ros2Result) -> Ros2Scene:
    (scene,) = result.scenes
    return scene


# -- what is measured ---------------------------------------------------------------------------------------------


def test_every_load_has_the_rates_of_what_is_subscribed(scene: Ros2Scene) -> None:
    assert {one.load: tuple(one.rates) for one in scene.loads} == LOADS
    assert scene.physics_hz == 500
    for load in scene.loads:
        for rate in load.rates.values():
            assert rate.count > 0, rate
            assert 0 < rate.rate_hz < 600
            assert 0 < rate.silence_ms <= 1000 * SMALL.watched_s


def test_topics_are_those_of_the_robot(scene: Ros2Scene) -> None:
    topics = [rate.topic for rate in scene.loads[-1].rates.values()]
    assert topics == ["/clock", "/panda/joint_states", "/tf", "/panda/camera/overhead/image_raw"]


def test_the_age_of_states_is_there_once_somebody_listens(scene: Ros2Scene) -> None:
    assert (scene.loads[0].age, scene.loads[0].direct_age) == (None, None)
    for load in scene.loads[1:]:
        assert load.age is not None
        assert load.direct_age is not None
        assert load.age.count > 0
        assert min(load.direct_age.p50_ms, load.age.p50_ms) > 0
        assert load.age.p50_ms <= load.age.p99_ms <= load.age.max_ms


def test_the_cpu_of_the_bridge_is_there_for_every_load(scene: Ros2Scene) -> None:
    assert all(one.bridge_cpu_percent > 0 for one in scene.loads)


def test_messages_are_timed_beside_their_bare_bytes(scene: Ros2Scene) -> None:
    assert [one.what for one in scene.messages] == ["joint_states", "tf", "image"]
    assert scene.messages[2].size_bytes > 640 * 480 * 3
    for one in scene.messages:
        assert one.whole.count == one.bare.count == SMALL.rounds * SMALL.samples
        assert min(one.bare.min_us, one.whole.min_us) > 0
    assert scene.decode.count == SMALL.rounds * SMALL.samples


def test_the_full_plan_is_what_the_command_says() -> None:
    assert make_ros2_plan(quick=False, scenes=ROS2_SCENES, rounds=None) == FULL
    assert make_ros2_plan(quick=True, scenes=("arm",), rounds=4) == replace(QUICK, scenes=("arm",), rounds=4)
    assert LOADS.keys() == LOAD_TITLES.keys()


# -- how it is measured -------------------------------------------------------------------------------------------


def test_a_stamp_is_read_from_the_bytes_of_a_message() -> None:
    stamp = messages.make("builtin_interfaces/msg/Time", sec=12, nanosec=345)
    header = messages.make("std_msgs/msg/Header", stamp=stamp, frame_id="base")
    joints = messages.make("sensor_msgs/msg/JointState", header=header, name=["a"])
    clock = messages.make("rosgraph_msgs/msg/Clock", clock=stamp)
    for message, kind in ((joints, "sensor_msgs/msg/JointState"), (clock, "rosgraph_msgs/msg/Clock")):
        assert stamp_ns(bytes(messages.serialise(message, kind))) == 12 * 10**9 + 345


def test_a_stamp_that_is_not_there_is_an_error() -> None:
    with pytest.raises(struct.error):
        stamp_ns(b"\0\1\0\0")


def test_a_rate_counts_what_came_in_time_and_the_longest_silence() -> None:
    rate = rate_of("/clock", [50 * MS, 100 * MS, 200 * MS, 900 * MS, 1200 * MS], 100 * MS, 1100 * MS)
    assert (rate.count, rate.rate_hz, rate.silence_ms) == (3, 3.0, 700.0)


def test_silence_lasts_until_the_end() -> None:
    assert rate_of("/clock", [], 0, 500 * MS).silence_ms == 500
    assert rate_of("/clock", [10 * MS], 0, 500 * MS).silence_ms == 490


def test_age_is_arrival_less_publication_of_the_same_stamp() -> None:
    published = {stamp: 1000 * MS + stamp for stamp in range(100)}
    arrivals = [(stamp, 1000 * MS + stamp + (stamp + 1) * MS) for stamp in range(100)]
    age = age_of([*arrivals, (999, 0)], published)
    assert age is not None
    assert age.count == 100
    assert (age.p50_ms, age.p99_ms, age.max_ms) == pytest.approx((*np.percentile(range(1, 101), [50, 99]), 100))


def test_ages_of_unknown_stamps_are_none() -> None:
    assert age_of([(1, 2)], {}) is None


def test_everything_stays_on_this_machine_and_the_environment_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE", raising=False)
    before = dict(os.environ)
    with only_here():
        assert os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
        assert "ROS_DOMAIN_ID" not in os.environ
    assert dict(os.environ) == before
    assert 30 <= free_domain() < 100


# -- how it is judged ---------------------------------------------------------------------------------------------


def judged(scene: Ros2Scene, load: str, **rates_hz: float) -> list[Verdict]:
    """The verdicts on that scene with these rates under one load, and good ones under the others."""

    def changed(one: LoadResult) -> LoadResult:
        wanted = {"clock": 500.0, "joint_states": 200.0, "tf": 200.0, "image": 30.0}
        wanted |= rates_hz if one.load == load else {}
        rates = {word: msgspec.structs.replace(rate, rate_hz=wanted[word]) for word, rate in one.rates.items()}
        return msgspec.structs.replace(one, rates=rates)

    return judge_ros2([msgspec.structs.replace(scene, loads=[changed(one) for one in scene.loads])])


@pytest.mark.parametrize("load", ["pictures", "stalled"])
@pytest.mark.parametrize(
    ("word", "passing", "failing"), [("joint_states", 195, 194.9), ("image", 15, 14.9), ("clock", 450, 449)]
)
def test_each_bar_fails_below_its_value(scene: Ros2Scene, load: str, word: str, passing: float, failing: float) -> None:
    assert all(one.passed for one in judged(scene, load, **{word: passing}))
    (failed,) = (one for one in judged(scene, load, **{word: failing}) if not one.passed)
    assert LOAD_TITLES[load] in failed.name
    assert word in failed.name.replace("image_raw", "image")


def test_states_alone_are_not_judged(scene: Ros2Scene) -> None:
    assert all(one.passed for one in judged(scene, "states", joint_states=1.0))


def test_a_run_passes_when_every_bar_does(result: Ros2Result) -> None:
    assert result.passed == all(one.passed for one in result.verdicts)
    assert result.verdicts == judge_ros2(result.scenes)


# -- what is left behind ------------------------------------------------------------------------------------------


def test_the_json_names_machine_versions_and_plan(printed: str) -> None:
    document = json.loads(printed)
    assert document["machine"]["versions"].keys() >= {"python", "urlab", "cyclonedds", "rosbags"}
    assert (document["plan"]["scenes"], document["plan"]["watched_s"]) == (["arm"], SMALL.watched_s)


def test_a_report_names_every_load_every_message_and_every_bar(result: Ros2Result, scene: Ros2Scene) -> None:
    console = Console(width=200, file=io.StringIO(), record=True)
    print_ros2(result, console)
    report = console.export_text()
    assert all(title in report for title in LOAD_TITLES.values())
    assert all(one.what in report for one in scene.messages)
    assert all(one.name in report for one in result.verdicts)


def test_the_command_leaves_the_json_and_a_picture_that_a_page_can_hold(printed: str, out: Path) -> None:
    assert (out / "ros2.json").read_text() == printed
    with Image.open(out / "ros2.png") as picture:
        assert picture.size[0] == 2 * 900


def test_without_the_plot_library_there_is_no_picture_but_the_line_that_installs_it(
    result: Ros2Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "urlab.cli.bench.ros2.plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_files(PARTS["ros2"], result, tmp_path, Console(quiet=True))
    assert [path.name for path in tmp_path.iterdir()] == ["ros2.json"]
    assert INSTALL in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "told"),
    [(("--scenes", "demo"), (*ROS2_SCENES, "demo")), (("--steps", "5"), ("no soak",))],
)
def test_what_does_not_fit_is_refused_with_what_does(asked: tuple[str, ...], told: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["ros2", *asked])
    assert done.exit_code == 2
    assert all(word in done.output for word in told)


def test_a_missing_extra_is_answered_with_the_line_that_installs_it() -> None:
    script = "import sys; sys.modules['rosbags'] = None; from urlab.cli import main; main()"
    command = [sys.executable, "-c", script, "bench", "ros2", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = " ".join(done.stderr.split())
    assert done.returncode == 1
    assert "measures the bridge" in said
    assert "pip install 'urlab-headless[bench,ros2]'" in said
