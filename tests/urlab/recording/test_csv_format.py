import pytest

from urlab.errors import PathNotReadable
from urlab.recording import RecordedJoint, read_recording


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
