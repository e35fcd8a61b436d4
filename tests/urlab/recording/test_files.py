"""Recordings on disk: where they may be, and CSV files."""

from pathlib import Path

import pytest

from urlab.errors import BadValue, PathNotReadable, PathNotWritable
from urlab.recording import RecordedJoint, load_path, read_recording, save_path


def anywhere(path: Path) -> bool:
    return True


@pytest.fixture
def replays(tmp_path):
    folder = tmp_path.resolve() / "Replays"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("resolve", [save_path, load_path])
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("ep.json", "ep.json"),
        ("ep", "ep.json"),
        ("ep.v2", "ep.v2"),
        ("a/b/ep", "a/b/ep.json"),
        ("a/../ep.json", "ep.json"),
        ("./ep.json", "ep.json"),
        (".hidden", ".hidden.json"),
    ],
)
def test_relative_paths_are_under_the_replay_folder(replays, resolve, asked, expected):
    assert resolve(asked, replays, anywhere) == replays / expected


@pytest.mark.parametrize("resolve", [save_path, load_path])
def test_absolute_paths_stay_what_they_are(replays, tmp_path, resolve):
    assert resolve(str(tmp_path / "other" / "ep"), replays, anywhere) == tmp_path.resolve() / "other" / "ep"


def test_saving_without_a_path_has_a_default(replays):
    assert save_path(None, replays, anywhere) == replays / "recording.json"


def test_csv_can_be_loaded_and_not_saved(replays):
    assert load_path("ep.csv", replays, anywhere) == replays / "ep.csv"
    with pytest.raises(PathNotWritable, match=r"saved as \.json"):
        save_path("ep.CSV", replays, anywhere)


@pytest.mark.parametrize("asked", ["../ep.json", "a/../../ep.json", "..", "../Replays2/ep"])
def test_relative_paths_must_not_leave_the_replay_folder(replays, asked):
    with pytest.raises(PathNotWritable, match=r"leaves the replay folder.*--write-root"):
        save_path(asked, replays, anywhere)
    with pytest.raises(PathNotReadable, match=r"leaves the replay folder.*--model-root"):
        load_path(asked, replays, anywhere)


def test_a_refused_path_names_the_option_that_would_allow_it(replays, tmp_path):
    target = tmp_path.resolve() / "elsewhere" / "ep.json"
    with pytest.raises(PathNotWritable, match=f"--write-root {target.parent}") as refusal:
        save_path(str(target), replays, lambda path: path.is_relative_to(replays))
    assert refusal.value.absolute_path == str(target)
    with pytest.raises(PathNotReadable, match=f"--model-root {target.parent}"):
        load_path(str(target), replays, lambda path: path.is_relative_to(replays))


@pytest.mark.parametrize("asked", ["link/ep.json", "ep.json"])
def test_symlinks_are_resolved_before_they_are_judged(replays, tmp_path, asked):
    outside = tmp_path / "outside"
    outside.mkdir()
    (replays / "link").symlink_to(outside)
    (replays / "ep.json").symlink_to(outside / "ep.json")
    with pytest.raises(PathNotWritable, match=r"outside/ep\.json"):
        save_path(asked, replays, lambda path: path.is_relative_to(replays))


@pytest.mark.parametrize("asked", ["", ".", "/", "a/..", "nul\0byte.json", "/nul\0byte.json", "half\ud800.json"])
def test_what_names_no_file_is_a_bad_value(replays, asked):
    with pytest.raises(BadValue, match="path"):
        load_path(asked, replays, anywhere)


def test_a_loop_of_symlinks_is_a_bad_value(replays):
    (replays / "loop").symlink_to(replays / "loop")
    with pytest.raises(BadValue, match="loop"):
        load_path("loop/ep.json", replays, anywhere)


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
