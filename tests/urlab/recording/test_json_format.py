import json
import math
import os
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from urlab.errors import PathNotReadable, PathNotWritable
from urlab.recording import RecordedJoint, Recording, read_recording, write_json
from urlab.recording.files import MAX_FILE_BYTES

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def frame(timestamp=0.0, **joints):
    states = {name: {"qPos": qpos, "qVel": qvel} for name, (qpos, qvel) in joints.items()}
    return {"timestamp": timestamp, "jointStates": states}


def hinge_file(*frames):
    return {"Frames": list(frames)}


@pytest.fixture
def load(tmp_path):
    """Write what is given (bytes, text or an object) and read it as a recording."""

    def read(content, name="ep.json"):
        path = tmp_path / name
        content = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_recording(path)

    return read


@st.composite
def recordings(draw):
    names = draw(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), unique=True, max_size=4))
    dims = [draw(st.sampled_from([(7, 6), (4, 3), (1, 1)])) for _ in names]
    joints = tuple(RecordedJoint(name, *dim) for name, dim in zip(names, dims, strict=True))
    frames = draw(st.integers(1, 4))
    arrays = [
        draw(hnp.arrays(np.float64, shape, elements=FINITE))
        for shape in (frames, (frames, sum(q for q, _ in dims)), (frames, sum(v for _, v in dims)))
    ]
    return Recording("ep", joints, *arrays)


@given(recordings())
def test_what_is_written_comes_back_bit_for_bit(recording):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ep.json"
        write_json(recording, path)
        back = read_recording(path)
        independent = json.loads(path.read_bytes())["Frames"]
    assert back.joints == recording.joints
    for attribute in ("times", "qpos", "qvel"):
        assert getattr(back, attribute).tobytes() == getattr(recording, attribute).tobytes()
    numbers = [[x for one in row["jointStates"].values() for x in one["qPos"]] for row in independent]
    assert np.array(numbers, dtype=float).reshape(recording.qpos.shape).tobytes() == recording.qpos.tobytes()


def test_extreme_numbers_come_back_bit_for_bit(load):
    numbers = [5e-324, sys.float_info.max, -0.0, 0.1 + 0.2, 1e22, 123456789012345.67, sys.float_info.min]
    recording = load(hinge_file(frame(1 / 3, root=(numbers, [1e-300] * 6))))
    assert recording.qpos.tobytes() == np.array([numbers]).tobytes()
    assert recording.times.tolist() == [1 / 3]


def test_the_name_is_that_of_the_file(load):
    assert load(hinge_file(frame(hip=([1], [2]))), "walk.v2.json").name == "walk.v2"


@pytest.mark.parametrize("respell", [str.lower, str.upper, str.capitalize, lambda key: key[0].upper() + key[1:]])
def test_keys_are_read_in_any_case(load, respell):
    state = {respell("qPos"): [1], respell("qVel"): [2]}
    one = {respell("timestamp"): 0.5, respell("jointStates"): {"Hip_Q": state}, respell("bHasCameraData"): False}
    recording = load({respell("Frames"): [one]})
    assert recording.joints == (RecordedJoint("Hip_Q", 1, 1),)
    assert (recording.times.tolist(), recording.qpos.tolist(), recording.qvel.tolist()) == (
        [0.5],
        [[1.0]],
        [[2.0]],
    )


def test_only_velocities_in_another_case_are_not_lost(load):
    one = {"timestamp": 0.5, "jointStates": {"hip": {"qPos": [1], "qvel": [2]}}}
    assert load({"Frames": [one]}).qvel.tolist() == [[2.0]]


def test_joint_names_keep_their_case(load):
    recording = load(hinge_file(frame(hip=([1], [2]), HIP=([3], [4]))))
    assert [one.name for one in recording.joints] == ["hip", "HIP"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks_are_understood(load, encoding):
    recording = load(json.dumps(hinge_file(frame(hüfte=([1], [2]))), ensure_ascii=False).encode(encoding))
    assert recording.joints[0].name == "hüfte"


def test_big_endian_utf_16_is_understood(load):
    text = json.dumps(hinge_file(frame(hip=([1], [2]))))
    assert load(b"\xfe\xff" + text.encode("utf-16-be")).frame_count == 1


def test_pretty_printed_files_with_more_keys_are_read(load):
    content = {"version": 3, **hinge_file(frame(0.1, hip=([1], [2])), frame(0.2, hip=([3], [4])))}
    assert load(json.dumps(content, indent=4)).qpos.tolist() == [[1.0], [3.0]]


def test_the_order_of_joints_within_a_frame_does_not_matter(load):
    recording = load(hinge_file(frame(0, a=([1], [1]), b=([2], [2])), frame(1, b=([4], [4]), a=([3], [3]))))
    assert recording.qpos.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_repeated_frames_of_other_writers_are_dropped(load):
    same = frame(0.1, hip=([1], [2]))
    recording = load(hinge_file(same, same, frame(0.1, hip=([5], [2])), frame(0.2, hip=([5], [2])), same))
    assert recording.times.tolist() == [0.1, 0.1, 0.2, 0.1]


def test_repeated_frames_of_our_own_files_were_steps_and_stay(tmp_path):
    still = Recording("ep", (RecordedJoint("hip", 1, 1),), np.zeros(4), np.ones((4, 1)), np.ones((4, 1)))
    write_json(still, tmp_path / "ep.json")
    assert read_recording(tmp_path / "ep.json").frame_count == 4


@pytest.mark.parametrize("state", [{"qPos": [1]}, {"qPos": [1], "qVel": []}])
def test_frames_without_velocities_get_zeros(load, state):
    assert load({"Frames": [{"timestamp": 0, "jointStates": {"hip": state}}]}).qvel.tolist() == [[0.0]]


BROKEN = {
    "empty": (b"", "empty"),
    "not JSON": (b"hello", "line 1.*byte 0"),
    "binary": (b"\xff\x00\x80", "not text in UTF-8"),
    "odd UTF-16": (b"\xff\xfe{", "not text"),
    "nested": (b'{"Frames":' + b"[" * 100_000, "nested too deeply"),
    "a list": (b"[1]", "Expected `object`"),
    "no Frames": (b'{"frame": 1, "x": 2}', "no Frames; its keys are: frame, x"),
    "Frames of another kind": (b'{"Frames": 3}', "Expected `array`"),
    "no frames in Frames": (b'{"Frames": []}', "Frames are empty"),
    "a frame of another kind": (b'{"Frames": [3]}', "frame 0: Expected `object`"),
    "no timestamp": (b'{"Frames": [{"jointStates": {}}]}', "frame 0.*timestamp"),
    "no joints": (b'{"Frames": [{"timestamp": 1}]}', "frame 0.*jointStates"),
    "joints of another kind": (b'{"Frames": [{"timestamp": 1, "jointStates": [1]}]}', "frame 0.*jointStates"),
    "a state of another kind": (b'{"Frames": [{"timestamp": 1, "jointStates": {"a": 1}}]}', "frame 0"),
    "text for a number": (hinge_file(frame("now", hip=([1], [2]))), "frame 0: Expected `float`, got `str`"),
    "null for a number": (hinge_file(frame(0, hip=([None], [2]))), "frame 0: Expected `float`, got `null`"),
    "true for a number": (hinge_file(frame(0, hip=([True], [2]))), "frame 0: Expected `float`, got `bool`"),
    "NaN": (hinge_file(frame(0, hip=([float("nan")], [2]))), "line 1 has a number that is not finite"),
    "infinity": (hinge_file(frame(0, hip=([float("inf")], [2]))), "not finite"),
    "minus infinity": (hinge_file(frame(0, hip=([-float("inf")], [2]))), "not finite"),
    "a number too large": (b'{"Frames": [{"timestamp": 1e999, "jointStates": {}}]}', "frame 0.*out of range"),
    "odd size": (hinge_file(frame(0, hip=([1, 2], [2]))), "'hip' has 2 positions; joints have 1, 4 or 7"),
    "no positions": (hinge_file(frame(0, hip=([], []))), "'hip' has 0 positions"),
    "positions of another size": (
        hinge_file(frame(0, hip=([1], [2])), frame(1, hip=([1, 2], [2]))),
        "frame 1: joint 'hip' has 2 numbers in qPos, expected 1",
    ),
    "velocities of another size": (
        hinge_file(frame(0, hip=([1], [2])), frame(1, hip=([1], [2, 3]))),
        "frame 1: joint 'hip' has 2 numbers in qVel, expected 1",
    ),
    "other joints": (
        hinge_file(frame(0, a=([1], [2]), b=([1], [2])), frame(1, a=([1], [2]), c=([1], [2]))),
        "frame 1 has other joints than frame 0: missing b; additional c",
    ),
}


@pytest.mark.parametrize(("content", "reason"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_refused_with_its_reason(load, content, reason):
    with pytest.raises(PathNotReadable, match=reason):
        load(content)


def test_a_half_written_file_is_called_one_wherever_it_ends(load):
    whole = json.dumps(hinge_file(frame(0.25, hip=([1.5], [2.5])), frame(0.5, hip=([1.5], [2.5]))), indent=1)
    for end in range(1, len(whole)):
        with pytest.raises(PathNotReadable, match="half-written"):
            load(whole[:end])


def test_broken_json_tells_the_line(load):
    with pytest.raises(PathNotReadable, match="line 3"):
        load('{\n"Frames":\n[oops]}')


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(PathNotReadable, match=r"nowhere.json: No such file"):
        read_recording(tmp_path / "nowhere.json")


def test_a_folder_is_told(tmp_path):
    with pytest.raises(PathNotReadable, match="folder"):
        read_recording(tmp_path)


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(PathNotReadable, match="it is a pipe or device, not a file"):
        read_recording(tmp_path / "pipe.json")


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(PathNotReadable, match="too large"):
        read_recording(tmp_path / "huge.json")


# -- writing ------------------------------------------------------------------------------------------------------


def test_the_file_is_the_documented_object_for_an_independent_reader(tmp_path, make_recording):
    recording = make_recording(("r_root", 7, 6), "r_hip", ("r_neck", 4, 3), frames=3)
    assert write_json(recording, tmp_path / "ep.json") == 3
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
    write_json(make_recording("hip"), tmp_path / "ep.json", {"model_hash": "abc", "name": "not this"})
    assert json.loads((tmp_path / "ep.json").read_bytes())["urlab"] == {
        "model_hash": "abc",
        "format": 1,
        "name": "ep",
        "frame_count": 5,
        "left_out_non_finite": 0,
        "joints": [{"name": "hip", "qpos": 1, "qvel": 1}],
        "controls": [],
        "sensors": [],
    }


def test_a_recording_without_frames_is_not_written(tmp_path, make_recording):
    with pytest.raises(PathNotWritable, match="no frames") as refusal:
        write_json(make_recording("hip", frames=0), tmp_path / "ep.json")
    assert refusal.value.absolute_path == str(tmp_path / "ep.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_frames_that_json_cannot_hold_are_left_out_and_counted(tmp_path, make_recording, bad):
    sound = make_recording("hip", frames=4)
    qpos = sound.qpos.copy()
    qpos[2, 0] = bad
    recording = Recording("ep", sound.joints, sound.times, qpos, sound.qvel)
    assert write_json(recording, tmp_path / "ep.json") == 3
    written = json.loads((tmp_path / "ep.json").read_bytes())
    assert [one["timestamp"] for one in written["Frames"]] == [0.0, 0.002, 0.006]
    assert written["urlab"]["left_out_non_finite"] == 1


def test_metadata_that_json_cannot_hold_leaves_no_file(tmp_path, make_recording):
    with pytest.raises(TypeError):
        write_json(make_recording("hip"), tmp_path / "ep.json", {"odd": object()})
    assert not list(tmp_path.iterdir())


def test_frames_are_written_one_by_one_and_not_held_as_text(tmp_path):
    joints = tuple(RecordedJoint(f"r_joint_{i}", 1, 1) for i in range(60))
    states = np.random.default_rng(0).normal(size=(1000, 60))
    recording = Recording("ep", joints, np.arange(1000.0), states, states)
    tracemalloc.start()
    write_json(recording, tmp_path / "ep.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "ep.json").stat().st_size > 3e6
    assert peak < 2e6
