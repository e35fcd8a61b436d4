"""Files of cameras: what they say is what policies get, and what is wrong with them is said with file, line, field."""

import inspect
import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from urlab.cli.console import CommandError
from urlab.cli.eval.options import camera_choice
from urlab.cli.eval.run import RunOptions, plan_of
from urlab.evaluation import camera_config
from urlab.evaluation.camera_config import CameraChoice, CameraConfigError, parse_cameras
from urlab.evaluation.embodiments import EMBODIMENTS, FRANKA_PANDA, load_rig
from urlab.evaluation.encoding import BodyFormat, decode
from urlab.evaluation.runs.runner import server_options
from urlab.evaluation.simulation.simulation import Simulation
from urlab.evaluation.tasks.layout import Layout
from urlab.evaluation.tasks.task import Task, TaskError, load_task, parse_task
from urlab.evaluation.workers.messages import Begin, WorkerFrame, WorkerSettings
from urlab.evaluation.workers.worker import Worker

SMALL = """\
embodiment = "franka_panda"

[cameras.front]
resolution = [160, 120]
fovy_deg = 60
pos = [0.9, 0.0, 1.6]
look_at = [0.0, 0.0, 1.0]

[cameras.wrist]
resolution = [96, 96]
focal_px = [60, 60]
body = "hand"
pos = [0.05, 0.0, 0.0]
quat_wxyz = [0.0, 0.70710678, 0.0, 0.70710678]
depth = false
"""


def rig_file(folder: Path, text: str = SMALL) -> Path:
    path = folder / "small.toml"
    path.write_text(text)
    return path


def test_the_cameras_of_a_file_are_those_that_a_policy_sees(tmp_path: Path, panda_task: Task, layout: Layout) -> None:
    mounts = load_rig(rig_file(tmp_path)).mounts
    simulation = Simulation(panda_task, replace(FRANKA_PANDA, cameras=mounts), cameras=True)
    simulation.reset(layout)
    views = simulation.render()
    simulation.close()
    assert {name: view["rgb"].shape for name, view in views.items()} == {"front": (120, 160, 3), "wrist": (96, 96, 3)}
    assert views["front"]["depth"].shape == (120, 160)
    assert "depth" not in views["wrist"]
    np.testing.assert_allclose(views["front"]["p"], (0.9, 0.0, 1.6), atol=1e-6)
    focal = 60 / np.tan(np.radians(30))
    np.testing.assert_allclose(views["front"]["intrinsics_matrix"], [[focal, 0, 80], [0, focal, 60], [0, 0, 1]])


def test_a_camera_that_looks_at_the_table_has_its_middle_in_the_middle_of_the_picture(
    tmp_path: Path, panda_task: Task, layout: Layout
) -> None:
    mounts = load_rig(
        rig_file(tmp_path, SMALL.replace("look_at = [0.0, 0.0, 1.0]", "look_at = [0.0, 0.4, 1.0]"))
    ).mounts
    simulation = Simulation(panda_task, replace(FRANKA_PANDA, cameras=mounts[:1]), cameras=True)
    simulation.reset(layout)
    depth = simulation.render()["front"]["depth"]
    simulation.close()
    distance = np.linalg.norm(np.subtract((0.9, 0.0, 1.6), (0.0, 0.4, 1.0)))
    assert depth[59:61, 79:81].mean() == pytest.approx(distance, abs=0.01)


def test_another_size_shows_as_much_from_top_to_bottom() -> None:
    mount = FRANKA_PANDA.cameras[0]
    square = mount.resized(224, 224)
    assert (square.width, square.height, square.cx, square.cy) == (224, 224, 112.0, 112.0)
    assert square.height / square.fy == pytest.approx(mount.height / mount.fy)
    assert square.fx == pytest.approx(square.fy)


def test_a_choice_names_the_cameras_that_are_drawn_and_their_sizes() -> None:
    choice = CameraChoice(wanted={"obs_camera": (224, 224), "realsense": None, "top_camera": None}, depth=False)
    drawn = choice.mounts("franka_panda", FRANKA_PANDA.cameras)
    assert [(one.name, one.width, one.depth) for one in drawn] == [
        ("obs_camera", 224, False),
        ("realsense", 640, False),
    ]
    assert CameraChoice().mounts("franka_panda", FRANKA_PANDA.cameras) == FRANKA_PANDA.cameras


def test_a_rig_of_a_file_replaces_the_robot_s_own(tmp_path: Path) -> None:
    rig = load_rig(rig_file(tmp_path))
    choice = CameraChoice({rig.embodiment: rig.mounts})
    assert [one.name for one in choice.mounts("franka_panda", FRANKA_PANDA.cameras)] == ["front", "wrist"]
    assert choice.mounts("aloha", EMBODIMENTS["aloha"].cameras) == EMBODIMENTS["aloha"].cameras


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('body = "hand"', 'body = "hend"', "small.toml:12: cameras.wrist.body: the robot has no body 'hend'"),
        ('"franka_panda"', '"my_ur5"', "small.toml:1: embodiment: there is no robot 'my_ur5'; allowed: franka_panda"),
        ("fovy_deg = 60", "fovy_deg = 600", "small.toml:5: cameras.front.fovy_deg: expected"),
        ("fovy_deg = 60", "", "small.toml:3: cameras.front.fovy_deg: needs either fovy_deg or focal_px"),
        ("look_at = [0.0, 0.0, 1.0]", "", "small.toml:3: cameras.front.quat_wxyz: needs either quat_wxyz or look_at"),
        ("look_at = [0.0, 0.0, 1.0]", "look_at = [0.9, 0.0, 1.6]", "cameras.front.look_at: is where the camera is"),
        ("resolution = [160, 120]", "resolution = [160]", "small.toml:4: cameras.front.resolution: "),
        ("depth = false", "deepth = false", "small.toml:15: cameras.wrist.deepth: unknown key"),
        (SMALL[SMALL.index("[cameras") :], "[cameras]", "small.toml:3: cameras: a file of cameras needs at least one"),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_field(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = rig_file(tmp_path, SMALL.replace(before, after))
    with pytest.raises(CameraConfigError) as refused:
        load_rig(path)
    assert message in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CameraConfigError, match=r"nowhere\.toml: cannot be read"):
        load_rig(tmp_path / "nowhere.toml")


@pytest.mark.parametrize("name", EMBODIMENTS)
def test_every_robot_has_a_shipped_file(name: str) -> None:
    from urlab.evaluation.camera_config import SHIPPED_CAMERAS

    assert load_rig(SHIPPED_CAMERAS / f"{name}.toml").mounts == EMBODIMENTS[name].cameras


def test_the_file_in_the_docstring_is_one() -> None:
    text = re.findall(r"```toml\n(.*?)```", inspect.getdoc(camera_config) or "", re.DOTALL)
    (mount,) = parse_cameras(text[0], source="docstring").mounts
    assert (mount.name, mount.width, mount.height, mount.depth) == ("obs_camera", 640, 480, True)


TASK = (Path(__file__).parent / "cube_on_plate.toml").read_text()


def test_a_task_may_name_a_file_of_cameras_beside_it(tmp_path: Path) -> None:
    rig_file(tmp_path)
    (tmp_path / "task.toml").write_text(f'cameras = "small.toml"\n{TASK}')
    task = load_task(tmp_path / "task.toml")
    assert task.cameras is not None
    assert [one.name for one in task.cameras] == ["front", "wrist"]


def test_a_task_for_another_robot_than_its_cameras_is_refused(tmp_path: Path) -> None:
    rig_file(tmp_path, SMALL.replace("franka_panda", "franka_robotiq"))
    (tmp_path / "task.toml").write_text(f'cameras = "small.toml"\n{TASK}')
    with pytest.raises(TaskError, match=r"task\.toml:1: cameras: small\.toml has cameras of franka_robotiq"):
        load_task(tmp_path / "task.toml")


def test_a_principal_point_beside_the_middle_is_kept() -> None:
    text = SMALL.replace("focal_px = [60, 60]", "focal_px = [60, 61]\ncenter_px = [40, 50]")
    wrist = parse_cameras(text, source="x.toml").mounts[1]
    assert (wrist.fx, wrist.fy, wrist.cx, wrist.cy) == (60, 61, 40, 50)


def test_a_worker_draws_the_cameras_of_its_run(tmp_path: Path) -> None:
    rig = load_rig(rig_file(tmp_path))
    choice = CameraChoice({rig.embodiment: rig.mounts}, {"front": (64, 48)})
    worker = Worker(WorkerSettings(cameras=True, privileged=False, videos=False, camera_choice=choice))
    begin = Begin(0, 50, "urlab/a/b/000", str(tmp_path), BodyFormat.PICKLE)
    answer = worker.answer(WorkerFrame(begin, pickle.dumps(parse_task(TASK, name="task", source="task.toml"))))
    worker.close()
    seen = decode(pickle.loads(answer.body))
    assert {name: view["rgb"].shape for name, view in seen["camera_data"].items()} == {"front": (48, 64, 3)}
    assert seen["video.front_view"].shape == (48, 64, 3)


def test_the_command_line_hands_files_of_cameras_to_the_server(tmp_path: Path) -> None:
    file = rig_file(tmp_path)
    options = RunOptions("random", [], "panda_open_drawer", 1, 0, None, None, None, tmp_path, None, None, None)
    plan = plan_of(replace(options, camera_files=(file,)))
    words = server_options(plan, "first")
    assert words[words.index("--camera-config") + 1] == str(file)
    assert f"--camera-config {file}" in plan.command
    choice = camera_choice([file])
    assert choice is not None
    assert choice.mounts("franka_panda", FRANKA_PANDA.cameras) == load_rig(file).mounts
    file.write_text(SMALL.replace("hand", "hend"))
    with pytest.raises(CameraConfigError, match="no body 'hend'"):
        plan_of(replace(options, camera_files=(file,)))
    with pytest.raises(CommandError, match="with --url the server chooses"):
        plan_of(replace(options, camera_files=(file,), url="127.0.0.1:1"))


@pytest.mark.parametrize(("cameras", "word"), [(True, "--cameras"), (False, "--no-cameras"), (None, None)])
def test_the_line_that_runs_a_run_again_says_whether_there_were_pictures(
    tmp_path: Path, cameras: bool | None, word: str | None
) -> None:
    options = RunOptions("random", [], "panda_open_drawer", 1, 0, None, cameras, None, tmp_path, None, None, None)
    words = plan_of(options).command.split()
    assert [one for one in words if one.endswith("cameras")] == ([] if word is None else [word])
