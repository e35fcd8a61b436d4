"""Exports, read by the libraries of others and compared with a plain MuJoCo run of the same controls."""

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import h5py
import mcap.reader
import mujoco
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from rosbags.highlevel import AnyReader

import urlab
from urlab.recording import read_recording
from urlab.video import ffmpeg

STEPS, HELD = 200, 20
FPS = 25
ROBOT = """
<mujoco model="arm"><option timestep="0.002"/><worldbody><light pos="0 0 3"/>
  <camera name="eye" pos="0 -2 .5" xyaxes="1 0 0 0 0 1" resolution="32 24"/>
  <body name="link" pos="0 0 .5"><joint name="hinge" axis="0 1 0" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".05" rgba="1 0 0 1"/><site name="tip" pos=".3 0 0"/></body>
  <body name="box" pos="0 .5 .3"><freejoint name="float"/><geom type="box" size=".1 .1 .1"/></body></worldbody>
  <actuator><position name="turn" joint="hinge" kp="5"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/><framepos name="tip_at" objtype="site" objname="tip"/></sensor></mujoco>
"""


class Run:
    """The same run in MuJoCo alone: what every step led to."""

    def __init__(self) -> None:
        model = mujoco.MjModel.from_xml_string(ROBOT)
        data, rows = mujoco.MjData(model), []
        for step in range(STEPS):
            data.ctrl[0] = step // HELD * 0.1
            mujoco.mj_step(model, data)
            kept = (data.time, data.qpos, data.qvel, data.ctrl, data.sensordata)
            rows.append([np.array(one, dtype=float) for one in kept])
        self.time, self.qpos, self.qvel, self.ctrl, self.sensordata = (np.array(one) for one in zip(*rows, strict=True))
        self.model = model
        period = round(1 / FPS / 0.002)
        self.sampled = np.arange(0, STEPS, period)


@pytest.fixture(scope="module")
def run() -> Run:
    return Run()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every export of the run, and what was streamed meanwhile."""
    folder = tmp_path_factory.mktemp("exports")
    (folder / "arm.xml").write_text(ROBOT)
    with urlab.launch(folder / "arm.xml", project=folder / "project") as client:
        for record in ({"path": folder / "streamed.mcap"}, {}):
            client.reset()
            client.recording.start("run", **record)
            for step in range(0, STEPS, HELD):
                client.articulations["arm"].ctrl_array[0] = step // HELD * 0.1
                client.step(HELD)
            client.recording.stop()
        client.recording.save(folder / "run.json")
        export, recording = client.recording.export, folder / "run.json"
        export(recording, folder / "run.mcap", format="mcap", cameras=["eye"], fps=FPS)
        export(recording, folder / "all.mcap", format="mcap")
        export(recording, folder / "run.parquet", format="parquet")
        twice = {"also": [recording], "fps": FPS, "task": "turn the link"}
        export(recording, folder / "run.hdf5", format="hdf5", cameras=["eye"], **twice)
        export(recording, folder / "dataset", format="lerobot", **twice)
    return folder


@pytest.mark.parametrize("name", ["run.json", "all.mcap", "streamed.mcap"])
def test_a_recording_holds_states_controls_and_sensors(folder: Path, run: Run, name: str) -> None:
    recording = read_recording(folder / name)
    for kept, expected in (("times", run.time), ("qpos", run.qpos), ("qvel", run.qvel), ("ctrl", run.ctrl)):
        np.testing.assert_array_equal(getattr(recording, kept), expected, err_msg=kept)
    np.testing.assert_array_equal(recording.sensordata, run.sensordata)
    assert recording.signals.controls == ("arm_turn",)
    assert recording.signals.sensors == (("arm_angle", 1), ("arm_tip_at", 3))


@pytest.mark.parametrize("name", ["all.mcap", "streamed.mcap"])
def test_rosbags_reads_every_message(folder: Path, run: Run, name: str) -> None:
    found: dict[str, list[Any]] = {}
    with AnyReader([folder / name]) as reader:
        for connection, stamp_ns, raw in reader.messages():
            found.setdefault(connection.topic, []).append((stamp_ns, reader.deserialize(raw, connection.msgtype)))
    joints = [one for _, one in found["/joint_states"]]
    assert joints[0].name == ["arm_hinge"]
    np.testing.assert_array_equal([one.position[0] for one in joints], run.qpos[:, 0])
    np.testing.assert_array_equal([one.velocity[0] for one in joints], run.qvel[:, 0])
    stamps = [one.header.stamp.sec + 1e-9 * one.header.stamp.nanosec for one in joints]
    np.testing.assert_allclose(stamps, run.time, atol=1e-9)
    np.testing.assert_allclose([stamp_ns * 1e-9 for stamp_ns, _ in found["/clock"]], run.time, atol=1e-9)
    np.testing.assert_array_equal([one.value for _, one in found["/controls"]], run.ctrl)
    np.testing.assert_array_equal([one.value for _, one in found["/sensors"]], run.sensordata)
    assert found["/sensors"][0][1].name == ["arm_angle", "arm_tip_at[0]", "arm_tip_at[1]", "arm_tip_at[2]"]
    np.testing.assert_array_equal([one.qpos for _, one in found["/urlab/state"]], run.qpos)


def test_transforms_are_where_mujoco_has_the_bodies(folder: Path, run: Run) -> None:
    data = mujoco.MjData(run.model)
    with AnyReader([folder / "all.mcap"]) as reader:
        chosen = [one for one in reader.connections if one.topic == "/tf"]
        *_, (connection, _, raw) = reader.messages(chosen)
        message = reader.deserialize(raw, connection.msgtype)
    data.qpos[:] = run.qpos[-1]
    mujoco.mj_kinematics(run.model, data)
    assert [one.child_frame_id for one in message.transforms] == ["arm_link", "arm_box"]
    for body, one in enumerate(message.transforms, 1):
        at, turned = one.transform.translation, one.transform.rotation
        np.testing.assert_allclose([at.x, at.y, at.z], data.xpos[body], atol=1e-12)
        np.testing.assert_allclose([turned.w, turned.x, turned.y, turned.z], data.xquat[body], atol=1e-12)


def test_mcap_has_an_index_and_pictures(folder: Path, run: Run) -> None:
    with (folder / "run.mcap").open("rb") as file:
        reader = mcap.reader.make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        pictures = [message.data for _, _, message in reader.iter_messages(topics=["/cameras/arm_eye/compressed"])]
    assert summary is not None
    counts = {summary.channels[one].topic: n for one, n in summary.statistics.channel_message_counts.items()}
    assert counts["/joint_states"] == counts["/cameras/arm_eye/compressed"] == len(run.sampled)
    first = Image.open(io.BytesIO(pictures[0][pictures[0].index(b"\xff\xd8") :]))
    assert first.size == (32, 24)
    assert np.asarray(first)[:, :, 0].max() > 60, "the red link is seen"


def test_parquet_has_a_row_per_frame(folder: Path, run: Run) -> None:
    table = pq.read_table(folder / "run.parquet")
    np.testing.assert_array_equal(table["time"].to_numpy(), run.time)
    np.testing.assert_array_equal(table["qpos/arm_hinge"].to_numpy(), run.qpos[:, 0])
    np.testing.assert_array_equal(np.stack(table["qpos/arm_float"].to_numpy()), run.qpos[:, 1:])
    np.testing.assert_array_equal(table["ctrl/arm_turn"].to_numpy(), run.ctrl[:, 0])
    np.testing.assert_array_equal(np.stack(table["sensor/arm_tip_at"].to_numpy()), run.sensordata[:, 1:])
    assert json.loads(table.schema.metadata[b"urlab"])["timestep"] == 0.002


def test_hdf5_is_laid_out_as_robomimic_reads_it(folder: Path, run: Run) -> None:
    frames, following = run.sampled[:-1], run.sampled[1:]
    with h5py.File(folder / "run.hdf5") as file:
        assert sorted(file["data"]) == ["demo_0", "demo_1"]
        assert file["data"].attrs["total"] == 2 * len(frames)
        assert json.loads(file["data"].attrs["env_args"])["env_kwargs"]["control_freq"] == FPS
        demo = file["data/demo_1"]
        assert demo.attrs["num_samples"] == len(frames)
        np.testing.assert_array_equal(demo["actions"], run.ctrl[frames + 1])
        states = np.concatenate((run.time[:, None], run.qpos, run.qvel), axis=1)
        np.testing.assert_array_equal(demo["states"], states[frames])
        np.testing.assert_array_equal(demo["obs/joint_pos"], run.qpos[frames, :1])
        np.testing.assert_array_equal(demo["next_obs/joint_vel"], run.qvel[following, :1])
        np.testing.assert_array_equal(demo["obs/object"], run.qpos[frames, 1:])
        np.testing.assert_array_equal(demo["obs/arm_tip_at"], run.sensordata[frames, 1:])
        assert demo["obs/arm_eye_image"].shape == (len(frames), 24, 32, 3)
        np.testing.assert_array_equal(demo["obs/arm_eye_image"][1:], demo["next_obs/arm_eye_image"][:-1])
        assert demo["dones"][:].tolist() == [0] * (len(frames) - 1) + [1]
        model = mujoco.MjModel.from_xml_string(demo.attrs["model_file"])
        assert (model.nq, model.nu) == (run.model.nq, run.model.nu)


def test_a_lerobot_dataset_says_what_it_has(folder: Path, run: Run) -> None:
    root, count = folder / "dataset", len(run.sampled) - 1
    info = json.loads((root / "meta/info.json").read_bytes())
    assert (info["codebase_version"], info["fps"], info["total_episodes"]) == ("v3.0", FPS, 2)
    assert info["total_frames"] == 2 * count
    assert info["features"]["action"] == {"dtype": "float32", "shape": [1], "names": ["arm_turn"]}
    assert info["features"]["observation.images.arm_eye"]["shape"] == [24, 32, 3]
    episodes = pq.read_table(root / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert [(one["dataset_from_index"], one["dataset_to_index"]) for one in episodes] == [
        (0, count),
        (count, 2 * count),
    ]
    assert pq.read_table(root / "meta/tasks.parquet").to_pydict() == {"task_index": [0], "task": ["turn the link"]}
    data = pq.read_table(root / info["data_path"].format(chunk_index=0, file_index=1))
    np.testing.assert_array_equal(data["index"].to_numpy(), count + np.arange(count))
    np.testing.assert_array_equal(data["action"].to_numpy(), run.ctrl[run.sampled[:-1] + 1, 0].astype(np.float32))
    state = run.qpos[run.sampled[:-1]].astype(np.float32)
    np.testing.assert_array_equal(data["observation.state"].to_numpy(), state[:, 0])
    np.testing.assert_array_equal(np.stack(data["observation.environment_state"].to_numpy()), state[:, 1:])
    stats = json.loads((root / "meta/stats.json").read_bytes())
    np.testing.assert_allclose(
        stats["observation.state"]["mean"], run.qpos[run.sampled[:-1], :1].mean(axis=0), rtol=1e-6
    )
    film = root / info["video_path"].format(video_key="observation.images.arm_eye", chunk_index=0, file_index=1)
    command = [ffmpeg(), "-v", "error", "-i", str(film), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    pictures = np.frombuffer(subprocess.run(command, capture_output=True, check=True).stdout, np.uint8)
    assert pictures.reshape(-1, 24, 32, 3).shape[0] == count
    assert [one.name for one in root.iterdir() if one.name.startswith(".")] == []
