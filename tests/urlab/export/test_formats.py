import gc

import h5py
import mcap.reader
import numpy as np
import pytest

import urlab.export
from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.errors import BadValue
from urlab.export import Clip, ExportFormat, ExportSource, Hdf5, Mcap, Mp4, Parquet, RecordedEpisode, export_format
from urlab.export.formats import tokens
from urlab.recording import RecordedJoint, RecordedSignals, Recording, fitted
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level

ARM = """<mujoco model="arm"><worldbody><body><joint name="hip"/><geom size=".1"/></body></worldbody></mujoco>"""


@pytest.fixture
def make_source(tmp_path, pictures):
    """Six frames of an arm with a sensor called ``joint_pos``, seen by the cameras that are named."""
    (tmp_path / "arm.xml").write_text(ARM)
    scene = compile_scene(Level("l", (Actor("arm", str(tmp_path / "arm.xml")),)), Library(file_record))

    def make(*cameras):
        rows = np.arange(6.0)[:, None]
        signals = RecordedSignals(("push",), (("joint_pos", 1), ("joint_pos_sensor", 1)))
        recording = Recording(
            "ep", (RecordedJoint("arm_hip", 1, 1),), np.arange(6) * 0.1, rows, rows, signals, rows,
            np.concatenate((rows, rows), axis=1),
        )  # fmt: skip
        clip = Clip(fitted("ep", recording, scene.joints), 0, 5, 1, np.zeros(1), np.zeros((0, 3)), np.zeros((0, 4)))
        episode = RecordedEpisode(clip, clip.all_frames(), "push")
        return ExportSource(lambda _: scene, [episode], dict.fromkeys(cameras, pictures))

    return make


def test_names_become_tokens_that_stay_apart():
    assert tokens(["a/b", "a.b", "a b", "ä"], "_") == {"a/b": "a_b", "a.b": "a_b_2", "a b": "a_b_3", "ä": "_"}
    assert tokens(["a_2", "a.", "a "], "_") == {"a_2": "a_2", "a.": "a_", "a ": "a__2"}


def test_cameras_and_sensors_whose_names_would_be_one_are_kept_apart(make_source, tmp_path):
    source = make_source("left/eye", "left_eye")
    Hdf5(10).write(source, tmp_path / "x.hdf5", lambda: None)
    with h5py.File(tmp_path / "x.hdf5") as file:
        names = set(file["data/demo_0/obs"])
    sensors = {"joint_pos_sensor", "joint_pos_sensor_sensor"}
    assert names == {"joint_pos", "joint_vel", "left_eye_image", "left_eye_2_image"} | sensors
    Mcap(10).write(source, tmp_path / "x.mcap", lambda: None)
    with (tmp_path / "x.mcap").open("rb") as file:
        summary = mcap.reader.make_reader(file).get_summary()
    found = sorted(one.topic for one in summary.channels.values() if one.topic.startswith("/cameras"))
    assert found == ["/cameras/left_eye/compressed", "/cameras/left_eye_2/compressed"]


@pytest.mark.parametrize("made", [Parquet, Hdf5, Mcap])
def test_an_export_that_is_given_up_leaves_nothing(make_source, tmp_path, made):
    out = tmp_path / "new"

    def give_up() -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        made(10).write(make_source(), out / f"x{made.kind.suffix}", give_up)
    assert not out.exists()
    gc.collect()  # a writer that was left open would complain now


def test_a_format_is_found_by_its_name():
    assert export_format("mp4") is Mp4


def test_an_unknown_format_is_refused_with_those_that_exist():
    with pytest.raises(
        BadValue, match="there is no export format 'betamax'; there are: hdf5, lerobot, mcap, mp4, parquet"
    ):
        export_format("betamax")


def test_no_two_formats_share_a_name():
    with pytest.raises(TypeError, match="export format 'mp4' is already Mp4"):

        class _Other(ExportFormat, name="mp4"):
            pass


def test_the_front_door_is_what_it_promises():
    assert all(hasattr(urlab.export, name) for name in urlab.export.__all__)
