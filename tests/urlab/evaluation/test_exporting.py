"""Runs as datasets: read by the libraries of others, and compared with what the policy was shown and what it sent."""

import json
import pickle
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import mcap.reader
import numpy as np
import pyarrow.parquet as pq
import pytest
from rosbags.highlevel import AnyReader

from urlab.errors import BadValue, PathNotWritable
from urlab.evaluation.camera_config import CameraChoice
from urlab.evaluation.encoding import BodyFormat, decode
from urlab.evaluation.exporting import RunSelection, export_run
from urlab.evaluation.runs.results import RunFolderError
from urlab.evaluation.simulation.actions import Action, ArmTarget, ControlType
from urlab.evaluation.tasks.task import Task, load_task
from urlab.evaluation.workers.messages import Begin, Flush, Step, WorkerFrame, WorkerSettings
from urlab.evaluation.workers.worker import Worker
from urlab.recording import read_recording
from urlab.scene.randomisation import parse_randomisation
from urlab.video import ffmpeg

TASK = Path(__file__).parent / "cube_on_plate.toml"
STEPS = 4
SIZE = (64, 48)
JOINTS = [*(f"joint{number}" for number in range(1, 8)), "finger_joint1", "finger_joint2"]


def swing(step: int) -> Action:
    return Action(ControlType.JOINT_POSITION, is_rel=True, joints=(0.01 * step, 0.02, *(0.0,) * 5, 0.04, 0.04))


def pose(step: int) -> Action:
    target = ArmTarget((0.4, 0.01 * step, 0.4), (0.0, 1.0, 0.0, 0.0), (0.04, 0.04))
    return Action(ControlType.EE_POSE, is_rel=False, arms=(target,))


@dataclass
class Seen:
    """Of one episode, what the policy was shown, and what it sent."""

    observations: list[dict[str, Any]]
    actions: list[Action]

    def pictures(self, camera: str) -> Any:
        return np.array([one["camera_data"][camera]["rgb"] for one in self.observations])

    def joints(self) -> Any:
        return np.array([one["joint_position_state"] for one in self.observations])


def run_episode(worker: Worker, folder: Path, task: Task, seed: int, act: Any) -> Seen:
    begin = Begin(seed, 50, f"{task.name}/{seed:03d}", str(folder / task.name / f"{seed:03d}"), BodyFormat.PICKLE)
    actions = [act(step) for step in range(STEPS)]
    steps = [WorkerFrame(Step((one,), BodyFormat.PICKLE, 50, terminal=True)) for one in actions]
    frames = [worker.answer(one) for one in (WorkerFrame(begin, pickle.dumps(task)), *steps)]
    assert frames[-1].message.result.steps == STEPS
    assert worker.answer(WorkerFrame(Flush())).message.problems == ()
    return Seen([decode(pickle.loads(one.body)) for one in frames], actions)


@pytest.fixture(scope="module")
def task() -> Task:
    """Its cube has another colour in every episode."""
    colour = {"kind": "geom", "name": "cube*", "field": "rgba", "distribution": "uniform"}
    drawn = parse_randomisation({"colour": {**colour, "low": [0.0, 0.0, 0.0, 1.0], "high": [1.0, 1.0, 1.0, 1.0]}})
    return replace(load_task(TASK), num_steps=STEPS, randomize=drawn)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, task: Task) -> tuple[Path, list[Seen]]:
    """A run of two episodes of one task."""
    folder = tmp_path_factory.mktemp("runs") / "monday"
    choice = CameraChoice(wanted={"obs_camera": SIZE, "realsense": SIZE}, depth=False)
    worker = Worker(WorkerSettings(cameras=True, privileged=False, videos=False, camera_choice=choice))
    seen = [run_episode(worker, folder, task, seed, swing) for seed in (0, 7)]
    worker.close()
    return folder, seen


def sent(seen: Seen) -> Any:
    return np.array([one.joints for one in seen.actions])


def test_a_demonstration_is_what_the_policy_saw_and_sent(run: Any, task: Task, tmp_path: Path) -> None:
    folder, seen = run
    told: list[tuple[int, int]] = []
    done = export_run(
        folder,
        tmp_path / "run.hdf5",
        "hdf5",
        cameras=["realsense"],
        own_tasks=[task],
        progress=lambda *one: told.append(one),
    )
    assert (done.episodes, done.frames, done.warnings) == (2, 2 * (STEPS + 1), [])
    assert told == [(number, done.frames) for number in range(1, done.frames + 1)]
    with h5py.File(tmp_path / "run.hdf5") as file:
        assert json.loads(file["data"].attrs["env_args"])["env_kwargs"]["control_freq"] == 30
        for number, one in enumerate(seen):
            demo = file[f"data/demo_{number}"]
            np.testing.assert_array_equal(demo["actions"], sent(one))
            np.testing.assert_array_equal(demo["obs/joint_pos"][:].astype(np.float32), one.joints()[:-1])
            np.testing.assert_array_equal(demo["obs/realsense_image"], one.pictures("realsense")[:-1])
            np.testing.assert_array_equal(demo["next_obs/realsense_image"], one.pictures("realsense")[1:])
            hand = np.array([np.concatenate(view["state.ee_pose"]) for view in one.observations])
            np.testing.assert_allclose(demo["next_obs/ee_pose"][:], hand[1:], atol=1e-6)
            assert (demo.attrs["success"], demo.attrs["score"]) == (False, 0.0)
            assert demo.attrs["seed"] == (0, 7)[number]
            assert demo.attrs["task"] == one.observations[0]["instruction"]
            assert "robot_joint1" in demo.attrs["model_file"]


def test_a_lerobot_dataset_has_the_episodes_with_their_cameras(run: Any, task: Task, tmp_path: Path) -> None:
    folder, seen = run
    export_run(folder, tmp_path / "set", "lerobot", own_tasks=[task])
    info = json.loads((tmp_path / "set/meta/info.json").read_bytes())
    assert (info["fps"], info["total_episodes"], info["total_frames"]) == (30, 2, 2 * STEPS)
    assert info["features"]["action"]["names"] == JOINTS
    assert info["features"]["observation.state"]["names"] == [f"robot_{one}" for one in JOINTS]
    assert info["features"]["observation.environment_state"]["shape"] == [14], "a cube and a plate, which are free"
    assert info["features"]["next.success"] == {"dtype": "bool", "shape": [1], "names": None}
    for number, one in enumerate(seen):
        data = pq.read_table(tmp_path / "set" / info["data_path"].format(chunk_index=0, file_index=number))
        np.testing.assert_array_equal(np.stack(data["action"].to_numpy()), sent(one).astype(np.float32))
        np.testing.assert_array_equal(np.stack(data["observation.state"].to_numpy()), one.joints()[:-1])
        assert data["next.done"].to_pylist() == [False] * (STEPS - 1) + [True]
        assert data["next.success"].to_pylist() == [False] * STEPS
        assert data["next.reward"].to_pylist() == [0.0] * STEPS
        for camera in ("obs_camera", "realsense"):
            key = f"observation.images.{camera}"
            film = tmp_path / "set" / info["video_path"].format(video_key=key, chunk_index=0, file_index=number)
            command = [ffmpeg(), "-v", "error", "-i", str(film), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
            raw = subprocess.run(command, capture_output=True, check=True).stdout
            shown = np.frombuffer(raw, np.uint8).reshape(STEPS, SIZE[1], SIZE[0], 3).astype(float)
            assert np.abs(shown - one.pictures(camera)[:-1]).mean() < 4
    episodes = pq.read_table(tmp_path / "set/meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert [(one["seed"], one["success"], one["termination_reason"]) for one in episodes] == [
        (0, False, "step_limit"),
        (7, False, "step_limit"),
    ]
    tasks = pq.read_table(tmp_path / "set/meta/tasks.parquet")["task"].to_pylist()
    assert tasks == list(dict.fromkeys(one.observations[0]["instruction"] for one in seen))


def test_a_table_and_messages_have_every_state(run: Any, task: Task, tmp_path: Path) -> None:
    folder, seen = run
    export_run(folder, tmp_path / "run.parquet", "parquet")
    table = pq.read_table(tmp_path / "run.parquet")
    assert table["seed"].to_pylist() == [0] * (STEPS + 1) + [7] * (STEPS + 1)
    joint = table["qpos/robot_joint1"].to_numpy().reshape(2, -1)
    np.testing.assert_array_equal(joint.astype(np.float32), [one.joints()[:, 0] for one in seen])
    control = table["ctrl/joint1"].to_numpy().reshape(2, -1)
    assert np.isnan(control[:, 0]).all(), "no action has led to the first state"
    np.testing.assert_array_equal(control[:, 1:], [sent(one)[:, 0] for one in seen])
    assert set(table["success"].to_pylist()) == {False}
    export_run(folder, tmp_path / "run.mcap", "mcap", cameras=["obs_camera"], own_tasks=[task])
    with AnyReader([tmp_path / "run.mcap"]) as reader:
        chosen = [one for one in reader.connections if one.topic == "/joint_states"]
        found = [(stamp, reader.deserialize(raw, one.msgtype)) for one, stamp, raw in reader.messages(chosen)]
    stamps = [stamp for stamp, _ in found]
    assert stamps == sorted(set(stamps)), "times go on from episode to episode"
    place = found[0][1].name.index("robot_joint1")
    positions = np.array([one.position[place] for _, one in found]).reshape(2, -1)
    np.testing.assert_array_equal(positions, joint)
    with (tmp_path / "run.mcap").open("rb") as file:
        reader = mcap.reader.make_reader(file, validate_crcs=True)
        about = json.loads(next(iter(reader.iter_metadata())).metadata["about"])
        pictures = sum(1 for _ in reader.iter_messages(topics=["/cameras/obs_camera/compressed"]))
    assert pictures == 2 * (STEPS + 1)
    assert [(one["name"], one["frames"], one["success"]) for one in about["episodes"]] == [
        ("cube_on_plate/000", STEPS + 1, False),
        ("cube_on_plate/007", STEPS + 1, False),
    ]
    again = read_recording(tmp_path / "run.mcap")
    assert again.frame_count == 2 * (STEPS + 1)


def test_several_tasks_are_one_dataset_without_their_objects(task: Task, tmp_path: Path) -> None:
    block = replace(task.objects["cube"], name="block")
    other = replace(task, name="with_block", objects={**task.objects, "block": block})
    worker = Worker(WorkerSettings(cameras=False, privileged=False, videos=False))
    seen = [run_episode(worker, tmp_path / "run", one, 1, swing) for one in (task, other)]
    worker.close()
    own = {"own_tasks": [task, other]}
    export_run(tmp_path / "run", tmp_path / "set", "lerobot", cameras=["obs_camera"], size=SIZE, **own)
    info = json.loads((tmp_path / "set/meta/info.json").read_bytes())
    assert info["total_episodes"] == 2
    assert "observation.environment_state" not in info["features"]
    assert info["features"]["observation.images.obs_camera"]["shape"] == [SIZE[1], SIZE[0], 3]
    for number, one in enumerate(seen):
        data = pq.read_table(tmp_path / "set" / info["data_path"].format(chunk_index=0, file_index=number))
        np.testing.assert_array_equal(np.stack(data["observation.state"].to_numpy()), one.joints()[:-1])
    with pytest.raises(BadValue, match=r"'with_block/001' has other joints.* than 'cube_on_plate.*; choose among"):
        export_run(tmp_path / "run", tmp_path / "run.parquet", "parquet")
    only = RunSelection(("with_block",))
    assert export_run(tmp_path / "run", tmp_path / "run.parquet", "parquet", chosen=only).episodes == 1


def test_poses_are_actions_too(task: Task, tmp_path: Path) -> None:
    worker = Worker(WorkerSettings(cameras=False, privileged=False, videos=False))
    seen = run_episode(worker, tmp_path / "run", task, 3, pose)
    export_run(tmp_path / "run", tmp_path / "poses", "lerobot", cameras=[], task="reach", chosen=RunSelection())
    info = json.loads((tmp_path / "poses/meta/info.json").read_bytes())
    axes = ("x", "y", "z", "qw", "qx", "qy", "qz")
    assert info["features"]["action"]["names"] == [*(f"arm_{one}" for one in axes), "finger_joint1", "finger_joint2"]
    data = pq.read_table(tmp_path / "poses" / info["data_path"].format(chunk_index=0, file_index=0))
    numbers = [(*one.arms[0].pos, *one.arms[0].quat_wxyz, *one.arms[0].gripper) for one in seen.actions]
    np.testing.assert_array_equal(np.stack(data["action"].to_numpy()), np.float32(numbers))
    run_episode(worker, tmp_path / "run", task, 4, swing)
    worker.close()
    with pytest.raises(BadValue, match=r"actions of several kinds.*absolute ee_pose in .*/003; relative joint_pos"):
        export_run(tmp_path / "run", tmp_path / "both", "lerobot", cameras=[])
    assert not (tmp_path / "both").exists()


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(run: Any, task: Task, tmp_path: Path) -> None:
    folder, _ = run
    for word, options, error, message in [
        ("lerobot", {}, BadValue, "'cube_on_plate' is no shipped task: name its file, --task-file"),
        ("hdf5", {"own_tasks": [replace(task, title="x")]}, BadValue, "was changed since the run"),
        ("hdf5", {"cameras": ["nose"], "own_tasks": [task]}, BadValue, "has no camera 'nose'; it has: obs_camera"),
        ("parquet", {"cameras": ["realsense"]}, BadValue, "format parquet has no pictures"),
        ("mp4", {}, BadValue, "format mp4 is one film"),
        (
            "parquet",
            {"chosen": RunSelection(("stack",))},
            BadValue,
            "has no episodes of 'stack'; it has: cube_on_plate",
        ),
        ("parquet", {"chosen": RunSelection(successful=True)}, BadValue, "run monday has no successful episode"),
        ("hdf5", {"out": "x.h5"}, PathNotWritable, "ends in .hdf5"),
    ]:
        suffix = {"lerobot": "", "mp4": ".mp4"}.get(word, f".{word}")
        out = tmp_path / str(options.pop("out", f"x{suffix}"))  # type: ignore[attr-defined]
        with pytest.raises(error, match=message):
            export_run(folder, out, word, **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_states_is_refused_and_an_episode_without_a_step_is_left_out(run: Any, tmp_path: Path) -> None:
    folder, _ = run
    bare = tmp_path / "bare/cube_on_plate/000"
    bare.mkdir(parents=True)
    (bare / "result.json").write_text('{"score": 1.0, "sr": 1.0}')
    with pytest.raises(RunFolderError, match=r"run bare has no states\.npz and trace\.jsonl in cube_on_plate/000"):
        export_run(tmp_path / "bare", tmp_path / "x.parquet", "parquet")
    for source in (folder / "cube_on_plate/007").iterdir():
        target = tmp_path / "bare/cube_on_plate/007" / source.name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(source.read_bytes())
    done = export_run(tmp_path / "bare", tmp_path / "x.parquet", "parquet")
    assert done.warnings == ["1 episodes are left out, as no step of them was kept: cube_on_plate/000"]
    assert done.frames == STEPS + 1
    (bare.parent / "007/states.npz").write_bytes(b"PK torn")
    with pytest.raises(RunFolderError, match=r"cannot read .*states\.npz"):
        export_run(tmp_path / "bare", tmp_path / "y.parquet", "parquet")
