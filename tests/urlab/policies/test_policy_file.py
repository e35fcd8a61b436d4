"""Policy files: what is wrong with one is told with its line, and patterns mean joints."""

from pathlib import Path

import pytest

from urlab.policies.policy_file import PolicyFileError, find_policy_file, matching, per_joint, read_policy_file

GOOD = """
network = "net.onnx"
n_steps = 10

[action]
joints = [".*_hip", "FL_calf"]
scale = 0.5
offset = {".*_hip" = 0.1, ".*" = 0.2}

[[observations]]
term = "clock"
period = 0.4
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a network, which reading a file does not open."""
    (tmp_path / "net.onnx").write_bytes(b"")
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "walk.toml"
    path.write_text(text)
    return path


def test_a_file_is_read(folder: Path) -> None:
    found = read_policy_file(written(folder, GOOD))
    assert found.network == folder / "net.onnx"
    assert found.content.n_steps == 10
    assert found.content.observations[0].period == 0.4
    assert found.content.robot is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("n_steps = 10", "n_steps = 0", r"walk.toml:3: n_steps: expected a whole number >= 1, not 0"),
        ("n_steps = 10", "", "n_steps: is missing"),
        ("scale = 0.5", "scal = 0.5", r"walk.toml:7: action.scal: unknown key .did you mean 'scale'"),
        ('"clock"', '"clok"', r"walk.toml:11: observations\[0\].term: is 'clok', expected one of .*clock"),
        ("period = 0.4", "", "period: is missing: the term 'clock' needs it"),
        ("period = 0.4", 'period = 0.4\nsensor = "imu"', "sensor: has no effect"),
        ('"net.onnx"', '"other.onnx"', "network: there is no file .*other.onnx"),
        ('".*_hip", ', '"(", ', "is no regular expression"),
        ("n_steps = 10", "n_steps = [", "walk.toml:"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(folder: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(PolicyFileError, match=said):
        read_policy_file(written(folder, GOOD.replace(old, new)))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileError, match="cannot be read"):
        read_policy_file(find_policy_file(str(tmp_path / "nothing.toml")))


def test_a_name_that_we_do_not_ship_is_told_which_there_are() -> None:
    with pytest.raises(PolicyFileError, match=r"we ship .*quadruped_walk"):
        find_policy_file("quadruped_wlak")


NAMES = ["FL_hip", "FL_calf", "FR_hip"]


def test_patterns_choose_joints_in_their_own_order() -> None:
    assert matching([".*_calf", "F.*"], NAMES) == ["FL_calf", "FL_hip", "FR_hip"]
    with pytest.raises(PolicyFileError, match=r"no joint matches 'RL.*'; there are FL_calf, FL_hip, FR_hip"):
        matching(["RL.*"], NAMES)


def test_a_number_per_joint_is_that_of_the_first_pattern_that_fits() -> None:
    assert per_joint("scale", 2, NAMES) == [2.0, 2.0, 2.0]
    assert per_joint("scale", {".*_hip": 1, ".*": 3}, NAMES) == [1.0, 3.0, 1.0]
    with pytest.raises(PolicyFileError, match="scale: no pattern matches the joint 'FL_calf'"):
        per_joint("scale", {".*_hip": 1}, NAMES)
