"""Recordings on disk: where they may be, and CSV files."""

import contextlib
import tracemalloc

import numpy as np
import pytest

from urlab.errors import BadValue, PathNotReadable, PathNotWritable
from urlab.paths import FileRoots
from urlab.recording import RecordedJoint, Recording, load_path, read_recording, save_path, write_json


@pytest.fixture
def replays(tmp_path):
    folder = tmp_path.resolve() / "Replays"
    folder.mkdir()
    return folder


@pytest.fixture
def roots(tmp_path):
    """All of the test's folder."""
    return FileRoots(read=(tmp_path.resolve(),), write=(tmp_path.resolve(),))


@pytest.mark.parametrize("resolve", [save_path, load_path])
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("ep.json", "ep.json"),
        ("ep", "ep.json"),
        ("ep.v2.json", "ep.v2.json"),
        ("a/b/ep", "a/b/ep.json"),
        ("a/../ep.json", "ep.json"),
        ("./ep.json", "ep.json"),
    ],
)
def test_relative_paths_are_under_the_replay_folder(replays, roots, resolve, asked, expected):
    assert resolve(asked, replays, roots) == replays / expected


@pytest.mark.parametrize("resolve", [save_path, load_path])
def test_absolute_paths_stay_what_they_are(replays, roots, tmp_path, resolve):
    path = tmp_path.resolve() / "other" / "ep.json"
    assert resolve(str(path), replays, roots) == path


def test_saving_without_a_path_has_a_default(replays, roots):
    assert save_path(None, replays, roots) == replays / "recording.json"


@pytest.mark.parametrize("name", ["ep.csv", "ep.CSV", "ep.v2", "ep.json.sh", "ep.mcap"])
def test_a_recording_that_is_saved_ends_in_json(replays, roots, name):
    assert load_path(name, replays, roots) == replays / name
    with pytest.raises(PathNotWritable, match=r"a recording ends in \.json"):
        save_path(name, replays, roots)


@pytest.mark.parametrize("name", [".ep.json", ".config/ep.json", "a/.b/ep.json"])
def test_hidden_files_are_not_saved(replays, roots, name):
    with pytest.raises(PathNotWritable, match="hidden"):
        save_path(name, replays, roots)


@pytest.mark.parametrize("asked", ["../ep.json", "a/../../ep.json", "..", "../Replays2/ep"])
def test_relative_paths_must_not_leave_the_replay_folder(replays, roots, asked):
    with pytest.raises(PathNotWritable, match=r"leaves the replay folder.*--write-root"):
        save_path(asked, replays, roots)
    with pytest.raises(PathNotReadable, match=r"leaves the replay folder.*--model-root"):
        load_path(asked, replays, roots)


def test_a_refused_path_names_the_option_that_would_allow_it(replays, tmp_path):
    target, only = tmp_path.resolve() / "elsewhere" / "ep.json", FileRoots(read=(replays,), write=(replays,))
    with pytest.raises(PathNotWritable, match=f"--write-root {target.parent}") as refusal:
        save_path(str(target), replays, only)
    assert refusal.value.absolute_path == str(target)
    with pytest.raises(PathNotReadable, match=f"--model-root {target.parent}"):
        load_path(str(target), replays, only)


@pytest.mark.parametrize("target", ["there", "missing"])
def test_what_a_link_leads_to_is_not_told(replays, tmp_path, target):
    outside = tmp_path.resolve() / "outside"
    outside.mkdir()
    (outside / "there").touch()
    (replays / "link").symlink_to(outside)
    (replays / "ep.json").symlink_to(outside / target)
    only = FileRoots(read=(replays,), write=(replays,))
    for asked in ("ep.json", "link/ep.json"):
        with pytest.raises(PathNotReadable) as refusal:
            load_path(asked, replays, only)
        assert str(refusal.value) == (
            f"cannot read {replays / asked}: it is outside the folders that may be read here; "
            f"--model-root {(replays / asked).parent} would allow it"
        )


@pytest.mark.parametrize(
    "asked", ["", ".", "/", "nul\0byte.json", "/nul\0byte.json", "half\ud800.json", "/Game/ep.json", "file:///ep.json"]
)
def test_what_names_no_file_is_a_bad_value(replays, roots, asked):
    for resolve in (load_path, save_path):
        with pytest.raises(BadValue, match="path"):
            resolve(asked, replays, roots)


def test_a_loop_of_symlinks_is_refused(replays, roots):
    (replays / "loop").symlink_to(replays / "loop")
    with pytest.raises(PathNotReadable, match="link"):
        read_recording(load_path("loop/ep.json", replays, roots))


# -- saving over what is there ------------------------------------------------------------------------------------


@pytest.fixture
def recording():
    state = np.zeros((1, 1))
    return Recording("ep", (RecordedJoint("hip", 1, 1),), np.zeros(1), state, state)


@pytest.mark.parametrize("before", ["export PATH=/bin\n", '{"name": "my-package"}', "[1, 2]", "", "ssh-rsa AAAA"])
def test_a_file_that_is_no_recording_is_never_replaced(replays, recording, before):
    (replays / "ep.json").write_text(before)
    with pytest.raises(PathNotWritable, match="it exists and is not a recording, so it is kept"):
        write_json(recording, replays / "ep.json")
    assert (replays / "ep.json").read_text() == before
    assert [one.name for one in replays.iterdir()] == ["ep.json"]


@pytest.mark.parametrize("before", [None, '{"Frames": []}', '\ufeff{\n\t"frames": [', '{"urlab":{},"Frames":'])
def test_a_recording_is_replaced(replays, recording, before):
    if before is None:
        write_json(recording, replays / "ep.json")
    else:
        (replays / "ep.json").write_text(before, encoding="utf-8")
    assert write_json(recording, replays / "ep.json") == 1
    assert read_recording(replays / "ep.json").frame_count == 1
    assert [one.name for one in replays.iterdir()] == ["ep.json"]


@pytest.mark.parametrize("link", ["the file", "its folder"])
def test_a_save_follows_no_link(replays, recording, tmp_path, link):
    outside = tmp_path / "outside"
    outside.mkdir()
    write_json(recording, outside / "ep.json")
    before = (outside / "ep.json").read_bytes()
    if link == "the file":
        (replays / "ep.json").symlink_to(outside / "ep.json")
        path = replays / "ep.json"
    else:
        (replays / "day").symlink_to(outside)
        path = replays / "day" / "other.json"
    with pytest.raises(PathNotWritable, match="link"):
        write_json(recording, path)
    assert [one.name for one in outside.iterdir()] == ["ep.json"]
    assert (outside / "ep.json").read_bytes() == before


@pytest.fixture
def load(tmp_path):
    def read(text, encoding="utf-8", name="ep.csv"):
        (tmp_path / name).write_bytes(text.encode(encoding))
        return read_recording(tmp_path / name)

    return read


@pytest.mark.parametrize("title", ["time", "timestamp", "Time", "TimeStamp"])
def test_columns_are_joints_and_one_is_time(load, title):
    recording = load(f"{title},hip,knee\n0.1,1,2\n0.2,3,4.5\n")
    assert recording.joints == (RecordedJoint("hip", 1, 1), RecordedJoint("knee", 1, 1))
    assert recording.times.tolist() == [0.1, 0.2]
    assert recording.qpos.tolist() == [[1.0, 2.0], [3.0, 4.5]]
    assert recording.qvel.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert recording.name == "ep"


def test_without_time_rows_are_two_milliseconds_apart(load):
    assert load("hip\n1\n2\n3\n").times.tolist() == [0.0, 0.002, 0.004]


def test_indexed_columns_are_one_joint_in_any_order(load):
    recording = load("neck[1],hip,neck[0],neck[3],neck[2]\n1,9,0,3,2\n")
    assert recording.joints == (RecordedJoint("neck", 4, 3), RecordedJoint("hip", 1, 1))
    assert recording.qpos.tolist() == [[0.0, 1.0, 2.0, 3.0, 9.0]]
    assert recording.qvel.shape == (1, 4)


def test_camera_columns_are_ignored(load):
    recording = load("time,hip,cam_x,cam_y,cam_z,cam_pitch,cam_yaw,cam_roll\n0,1,2,3,4,5,6,7\n")
    assert recording.qpos.tolist() == [[1.0]]


def test_marks_quotes_spaces_and_empty_lines_are_understood(load):
    text = 'time, "a,b" ,hip\r\n\r\n0, 1 ,2\r\n'.replace(' "a,b" ', '"a,b"')
    for encoding in ("utf-8-sig", "utf-16"):
        recording = load(text, encoding)
        assert [one.name for one in recording.joints] == ["a,b", "hip"]
        assert recording.qpos.tolist() == [[1.0, 2.0]]


def test_repeated_rows_are_dropped(load):
    assert load("time,hip\n0,1\n0,1\n1,1\n").times.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("name", ["ep.csv", "ep.CSV"])
def test_the_suffix_decides(load, name):
    assert load("hip\n1\n", name=name).frame_count == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("time,hip\n", "no rows"),
        ("\n1\n", "line 2 has 1 cells, the header has 0"),
        ("time\n1\n", "names no joints: time"),
        ("hip,hip\n1,2\n", "column 2 .* there twice: 'hip'"),
        ("hip,hip[0]\n1,2\n", "there twice"),
        ("hip,\n1,2\n", "column 2 .* empty"),
        ("neck[0],neck[2]\n1,2\n", r"'neck' has columns \[0, 2\]"),
        ("neck[0],neck[1]\n1,2\n", "joints have 1, 4 or 7"),
        ("time,hip\n0,1\n1\n", r"line 3 has 1 cells, the header has 2 \(half-written\?\)"),
        ("time,hip\n0,one\n", "line 2: could not convert"),
        ("time,hip\n0,nan\n", "line 2 .* not finite"),
        ("time,hip\n0,1e999\n", "line 2 .* not finite"),
        ("", "empty"),
        (f"hip\n{'1' * 200_000}\n", "field larger"),
    ],
)
def test_a_broken_file_is_refused_with_its_reason(load, text, reason):
    with pytest.raises(PathNotReadable, match=reason):
        load(text)


# -- large files --------------------------------------------------------------------------------------------------


def traced_peak_bytes(call):
    tracemalloc.start()
    try:
        with contextlib.suppress(PathNotReadable):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_our_own_files_are_read_frame_by_frame(tmp_path):
    joints = tuple(RecordedJoint(f"r_joint_{i}", 1, 1) for i in range(60))
    states = np.random.default_rng(0).normal(size=(2000, 60))
    write_json(Recording("ep", joints, np.arange(2000.0), states, states), tmp_path / "ep.json")
    assert (tmp_path / "ep.json").stat().st_size > 6e6
    assert traced_peak_bytes(lambda: read_recording(tmp_path / "ep.json")) < 6e6
    found = read_recording(tmp_path / "ep.json")
    assert found.joints == joints
    assert (found.qpos == states).all()


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_a_large_file_of_another_writer_is_read_in_a_child_process(tmp_path, suffix):
    count, path = 40_000, tmp_path / f"ep{suffix}"
    if suffix == ".csv":
        rows = "".join(f"{number}.5,{number}.25\n" for number in range(count))
        path.write_text(f"time,r_hip\n{rows}" + "\n" * (1 << 20))
    else:
        states = '"jointStates": {"r_hip": {"qPos": [%s.25], "qVel": [1.0]}}'
        frames = ",".join(f'{{"timestamp": {number}.5, {states % number}}}' for number in range(count))
        path.write_text(f'{{"Frames": [{frames}]}}')
    assert path.stat().st_size > 1 << 20
    assert traced_peak_bytes(lambda: read_recording(path)) < 4e6
    recording = read_recording(path)
    assert recording.name == "ep"
    assert recording.joints == (RecordedJoint("r_hip", 1, 1),)
    assert (recording.times == np.arange(count) + 0.5).all()
    assert (recording.qpos[:, 0] == np.arange(count) + 0.25).all()


@pytest.mark.parametrize(
    ("beginning", "reason"),
    [
        (b"", "no JSON object begins there"),
        (b'{"Frames": [', "JSON|memory"),
        (b'{"urlab":{},\n"Frames":[\n', "JSON|memory"),
        (b'{"urlab":{},\n"Frames":[\n{"timestamp":0,"jointStates":{}},\n', "JSON|memory"),
    ],
)
def test_a_file_of_nothing_but_length_costs_no_memory(tmp_path, beginning, reason):
    with (tmp_path / "ep.json").open("wb") as file:
        file.write(beginning)
        file.truncate(100 << 20)
    assert traced_peak_bytes(lambda: read_recording(tmp_path / "ep.json")) < 8e6
    with pytest.raises(PathNotReadable, match=reason):
        read_recording(tmp_path / "ep.json")


def test_what_is_wrong_with_a_large_file_is_told_from_the_child_process(tmp_path):
    (tmp_path / "ep.json").write_text('{"Frames": [3' + " " * (2 << 20) + "]}")
    with pytest.raises(PathNotReadable, match="frame 0: Expected `object`"):
        read_recording(tmp_path / "ep.json")


def test_a_recording_that_is_swapped_for_a_link_all_the_time_is_never_read_outside(replays, tmp_path, swapping):
    def one_frame(joint):
        state = np.zeros((1, 1))
        return Recording("ep", (RecordedJoint(joint, 1, 1),), np.zeros(1), state, state)

    write_json(one_frame("inside"), replays / "ep.json")
    write_json(one_frame("outside"), tmp_path.resolve() / "secret.json")
    swapping(replays / "spot.json", replays / "ep.json", tmp_path / "secret.json")
    only, found = FileRoots(read=(replays,)), set()
    for _ in range(3000):
        with contextlib.suppress(PathNotReadable):
            found.add(read_recording(load_path("spot", replays, only)).joints[0].name)
    assert found == {"inside"}
