"""What is saved in a folder of recordings, told from the beginnings of its files."""

import json
import os
from pathlib import Path

import pytest

from urlab.errors import PathNotReadable
from urlab.paths import FileRoots
from urlab.recording import list_recordings, read_header, write_json
from urlab.recording import listing as module

FOREIGN = '{"Frames":[{"timestamp":0,"jointStates":{"hip":{"qPos":[0],"qVel":[0]}}}]}'


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "Replays"
    folder.mkdir()
    return folder


@pytest.fixture
def roots(tmp_path):
    return FileRoots(read=(tmp_path.resolve(),))


def saved(folder, make_recording, name, *, at_s=1000.0, frames=5, **metadata):
    path = folder / name
    write_json(make_recording("r_hip", frames=frames), path, metadata=metadata)
    os.utime(path, (at_s, at_s))
    return path


def test_the_newest_recording_comes_first_with_what_its_header_tells(folder, roots, make_recording):
    saved(folder, make_recording, "old.json", at_s=1000.0, timestep=0.002, level="/Game/Levels/yard")
    newer = saved(folder, make_recording, "day/new.json", at_s=2000.0, frames=7)
    (new, old), is_cut = list_recordings(folder, roots)
    assert (new.name, old.name, is_cut) == ("day/new.json", "old.json", False)
    assert (old.written_s, old.format, old.problem) == (1000.0, "json", None)
    assert (old.header.frame_count, old.header.sim_duration_s, old.header.level) == (5, 0.01, "/Game/Levels/yard")
    assert (new.size_bytes, new.header.frame_count, new.header.sim_duration_s) == (newer.stat().st_size, 7, None)


def test_files_of_other_writers_are_listed_without_their_frames(folder, roots):
    (folder / "theirs.json").write_text(FOREIGN)
    (folder / "marked.json").write_text("\ufeff" + FOREIGN)
    (folder / "wide.json").write_bytes(FOREIGN.encode("utf-16"))
    (folder / "table.csv").write_text("time,hip\n0,1\n")
    found, _ = list_recordings(folder, roots)
    assert {one.name: (one.format, one.header.frame_count, one.problem) for one in found} == {
        "theirs.json": ("json", None, None),
        "marked.json": ("json", None, None),
        "wide.json": ("json", None, None),
        "table.csv": ("csv", None, None),
    }


SPOILT = {
    "empty": (lambda _: "", "the file is empty"),
    "a list": (lambda _: "[1, 2]", "no JSON object begins there"),
    "half": (lambda text: text[: len(text) // 2], "it ends in the middle"),
    "wrong count": (lambda text: text.replace('"frame_count":5', '"frame_count":"5"'), "its first line is not as we"),
    "a count below 0": (lambda text: text.replace('"frame_count":5', '"frame_count":-5'), "its first line is not as"),
    "a huge count": (lambda text: text.replace('"frame_count":5', f'"frame_count":{10**30}'), "its first line is not"),
}


@pytest.mark.parametrize(("spoil", "words"), SPOILT.values(), ids=SPOILT)
def test_a_file_that_cannot_be_read_says_so(folder, roots, make_recording, spoil, words):
    good = saved(folder, make_recording, "good.json")
    (folder / "bad.json").write_text(spoil(good.read_text()))
    found, _ = list_recordings(folder, roots)
    problems = {one.name: one.problem for one in found}
    assert problems["good.json"] is None
    assert words in str(problems["bad.json"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_opened_says_so(folder, roots, make_recording):
    saved(folder, make_recording, "shut.json").chmod(0)
    ((shut,), _) = list_recordings(folder, roots)
    assert shut.problem == "Permission denied"


def test_a_duration_beyond_all_numbers_is_left_out(folder, roots, make_recording):
    saved(folder, make_recording, "long.json", timestep=1e308)
    ((found,), _) = list_recordings(folder, roots)
    assert (found.header.frame_count, found.header.sim_duration_s) == (5, None)


def test_links_pipes_hidden_and_other_files_are_passed_over(folder, roots, make_recording, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    saved(outside, make_recording, "secret.json")
    (folder / "link.json").symlink_to(outside / "secret.json")
    (folder / "door").symlink_to(outside)
    (folder / "folder.json").mkdir()
    (folder / ".hidden").mkdir()
    saved(folder, make_recording, ".part.json")
    saved(folder / ".hidden", make_recording, "inner.json")
    (folder / "film.mp4").write_bytes(b"film")
    os.mkfifo(folder / "pipe.json")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.json")).write_text(FOREIGN)
    assert list_recordings(folder, roots) == ([], False)


def test_a_folder_that_is_not_there_has_no_recordings(tmp_path, roots):
    assert list_recordings(tmp_path / "nothing", roots) == ([], False)


def test_a_folder_that_leads_out_is_refused(tmp_path, folder):
    with pytest.raises(PathNotReadable, match="--model-root"):
        list_recordings(folder, FileRoots(read=(tmp_path / "elsewhere",)))


def test_only_the_newest_of_very_many_are_listed(folder, roots, monkeypatch):
    for number in range(5):
        (folder / f"{number}.json").write_text(FOREIGN)
        os.utime(folder / f"{number}.json", (number, number))
    monkeypatch.setattr(module, "MAX_LISTED", 2)
    found, is_cut = list_recordings(folder, roots)
    assert ([one.name for one in found], is_cut) == (["4.json", "3.json"], True)
    monkeypatch.setattr(module, "_MAX_ENTRIES", 3)
    assert list_recordings(folder, roots)[1]


def test_of_a_large_file_only_the_beginning_and_the_end_are_read(folder, roots, make_recording):
    path = saved(folder, make_recording, "large.json", timestep=0.002)
    head, _, tail = path.read_bytes().partition(b'"Frames":[\n')
    with path.open("wb") as file:
        file.write(head + b'"Frames":[\n')
        file.truncate(1 << 40)  # a hole: reading it would take minutes
        file.seek(0, os.SEEK_END)
        file.write(tail)
    ((found,), _) = list_recordings(folder, roots)
    assert (found.header.frame_count, found.problem, found.size_bytes > 1 << 40) == (5, None, True)


def test_the_header_of_one_file_is_read_alone(folder, make_recording, tmp_path):
    path = saved(folder, make_recording, "ep.json", level="/Game/Levels/yard")
    assert read_header(path).level == "/Game/Levels/yard"
    for text in ("", "[]", FOREIGN, json.dumps({"urlab": 3})):
        (tmp_path / "odd.json").write_text(text)
        assert read_header(tmp_path / "odd.json").level is None
    assert read_header(tmp_path / "nothing.json").level is None
