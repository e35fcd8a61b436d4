import json
import math
import tracemalloc

import numpy as np
import pytest

from urlab.errors import PathNotWritable
from urlab.recording import RecordedJoint, Recording, write_recording


def test_the_file_is_the_documented_object_for_an_independent_reader(tmp_path, make_recording):
    recording = make_recording(("r_root", 7, 6), "r_hip", ("r_neck", 4, 3), frames=3)
    assert write_recording(recording, tmp_path / "ep.json") == 3
    frames = json.loads((tmp_path / "ep.json").read_bytes())["Frames"]
    for number, frame in enumerate(frames):
        qpos, qvel = recording.qpos[number].tolist(), recording.qvel[number].tolist()
        assert frame == {
            "timestamp": recording.times[number],
            "jointStates": {
                "r_root": {"qPos": qpos[:7], "qVel": qvel[:6]},
                "r_hip": {"qPos": qpos[7:8], "qVel": qvel[6:7]},
                "r_neck": {"qPos": qpos[8:], "qVel": qvel[7:]},
            },
            "cameraPosition": {"x": 0, "y": 0, "z": 0},
            "cameraRotation": {"pitch": 0, "yaw": 0, "roll": 0},
            "bHasCameraData": False,
        }


def test_metadata_is_under_its_own_key(tmp_path, make_recording):
    write_recording(make_recording("hip"), tmp_path / "ep.json", {"model_hash": "abc", "name": "not this"})
    assert json.loads((tmp_path / "ep.json").read_bytes())["urlab"] == {
        "model_hash": "abc",
        "format": 1,
        "name": "ep",
        "frame_count": 5,
        "left_out_non_finite": 0,
        "joints": [{"name": "hip", "qpos": 1, "qvel": 1}],
    }


def test_a_recording_without_frames_is_not_written(tmp_path, make_recording):
    with pytest.raises(PathNotWritable, match="no frames") as refusal:
        write_recording(make_recording("hip", frames=0), tmp_path / "ep.json")
    assert refusal.value.absolute_path == str(tmp_path / "ep.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_frames_that_json_cannot_hold_are_left_out_and_counted(tmp_path, make_recording, bad):
    sound = make_recording("hip", frames=4)
    qpos = sound.qpos.copy()
    qpos[2, 0] = bad
    recording = Recording("ep", sound.joints, sound.times, qpos, sound.qvel)
    assert write_recording(recording, tmp_path / "ep.json") == 3
    written = json.loads((tmp_path / "ep.json").read_bytes())
    assert [one["timestamp"] for one in written["Frames"]] == [0.0, 0.002, 0.006]
    assert written["urlab"]["left_out_non_finite"] == 1


def test_metadata_that_json_cannot_hold_leaves_no_file(tmp_path, make_recording):
    with pytest.raises(TypeError):
        write_recording(make_recording("hip"), tmp_path / "ep.json", {"odd": object()})
    assert not list(tmp_path.iterdir())


def test_frames_are_written_one_by_one_and_not_held_as_text(tmp_path):
    joints = tuple(RecordedJoint(f"r_joint_{i}", 1, 1) for i in range(60))
    states = np.random.default_rng(0).normal(size=(1000, 60))
    recording = Recording("ep", joints, np.arange(1000.0), states, states)
    tracemalloc.start()
    write_recording(recording, tmp_path / "ep.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "ep.json").stat().st_size > 3e6
    assert peak < 2e6
