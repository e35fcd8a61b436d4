from pathlib import Path

import pytest

from urlab.errors import BadValue, PathNotReadable, PathNotWritable
from urlab.recording import load_path, save_path


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
