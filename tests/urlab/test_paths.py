"""Paths that requests name: what they mean, which are allowed, and opening them without following links."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from urlab.paths import (
    AskedPath,
    BadPath,
    FileKind,
    FileRoots,
    OutsideRoots,
    open_folder,
    open_to_read,
    read_path,
    why_not_replaced,
)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("/Game/Levels/lab", AskedPath(virtual=("Levels", "lab"))),
        ("/Game/URLab//elsewhere/robot.xml", AskedPath(virtual=("URLab", "elsewhere", "robot.xml"))),
        ("//Game/./URLab/x", AskedPath(virtual=("URLab", "x"))),
        ("/a/b.xml", AskedPath(file=Path("/a/b.xml"))),
        ("//a//b.xml", AskedPath(file=Path("/a/b.xml"))),
        ("/a/../b.xml", AskedPath(file=Path("/a/../b.xml"))),
        ("ep", AskedPath(relative="ep")),
        ("day//./ep.json", AskedPath(relative="day/ep.json")),
        ("a/../../ep", AskedPath(relative="../ep")),
        ("Game/URLab/x", AskedPath(relative="Game/URLab/x")),
        ("/Gamex/y", AskedPath(file=Path("/Gamex/y"))),
    ],
)
def test_a_text_has_one_meaning(text: str, meaning: AskedPath) -> None:
    assert read_path(text) == meaning


@pytest.mark.parametrize(
    "text",
    [
        "", "/", ".", "././", "a\0b", "/a\0b", "half\ud800", "x" * 5000, "file:///etc/passwd", "http://host/x",
        "C:/x", "~", "~/x", "/Game", "/Game/", "/Game/../etc/x", "/Game/URLab/../../etc/x", "/Game/URLab/..",
        "\\\\host\\x", "/Game/URLab/..\\x",
    ],
)  # fmt: skip
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(BadPath):
        read_path(text)


@pytest.fixture
def jail(tmp_path: Path) -> FileRoots:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("s")
    (tmp_path / "in" / "way_out").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "secret").symlink_to(tmp_path / "out" / "secret")
    (tmp_path / "in" / "deep" / "way_out").symlink_to(tmp_path / "out")
    (tmp_path / "out" / "way_in").symlink_to(tmp_path / "in" / "deep")
    return FileRoots(read=(tmp_path / "in",), write=(tmp_path / "in" / "deep",))


@pytest.mark.parametrize(
    ("asked", "real"),
    [
        ("in", "in"), ("in/a.xml", "in/a.xml"), ("in/deep/../c", "in/c"), ("in/./deep", "in/deep"),
        ("out/way_in/x", "in/deep/x"), ("out/../in/x", "in/x"), ("in/way_out/way_in/x", "in/deep/x"),
    ],
)  # fmt: skip
def test_what_is_in_a_root_may_be_read_under_its_real_path(
    jail: FileRoots, tmp_path: Path, asked: str, real: str
) -> None:
    assert jail.to_read(tmp_path / asked) == tmp_path / real


@pytest.mark.parametrize(
    "outside",
    [
        "", "out/secret", "in/../out/secret", "in/way_out/secret", "in/way_out/missing", "in/secret",
        "in/deep/../../out", "inside", "/proc/self/root/etc/passwd",
    ],
)  # fmt: skip
def test_what_leads_out_of_a_root_may_be_neither_read_nor_written(
    jail: FileRoots, tmp_path: Path, outside: str
) -> None:
    with pytest.raises(OutsideRoots):
        jail.to_read(tmp_path / outside)
    with pytest.raises(OutsideRoots):
        jail.to_write(tmp_path / outside)


def test_reading_and_writing_have_their_own_roots(jail: FileRoots, tmp_path: Path) -> None:
    with pytest.raises(OutsideRoots):
        jail.to_write(tmp_path / "in" / "x")
    assert jail.to_write(tmp_path / "in" / "deep" / "x") == tmp_path / "in" / "deep" / "x"


def test_a_folder_that_may_be_written_may_be_spelled_through_links_above_it(jail: FileRoots, tmp_path: Path) -> None:
    (tmp_path / "other_name").symlink_to(tmp_path / "in")
    assert jail.to_write(tmp_path / "other_name" / "deep" / "x") == tmp_path / "in" / "deep" / "x"


@pytest.mark.parametrize("hidden", [".x", ".git/x", "a/.b/x", "..x"])
def test_hidden_names_are_not_written(jail: FileRoots, tmp_path: Path, hidden: str) -> None:
    with pytest.raises(BadPath, match="hidden"):
        jail.to_write(tmp_path / "in" / "deep" / hidden)


def test_a_hidden_folder_that_was_named_itself_is_written(tmp_path: Path) -> None:
    roots = FileRoots(write=(tmp_path, tmp_path / ".data" / "project"))
    path = tmp_path / ".data" / "project" / "x"
    assert roots.to_write(path) == path


def test_no_roots_open_nothing(tmp_path: Path) -> None:
    for judge in (FileRoots().to_read, FileRoots().to_write):
        with pytest.raises(OutsideRoots):
            judge(tmp_path)


def test_with_the_callers_own_rights_every_path_is_open_and_links_to_folders_are_followed(
    jail: FileRoots, tmp_path: Path
) -> None:
    own = FileRoots(own_rights=True)
    assert own.to_read(tmp_path / "in" / "secret") == tmp_path / "out" / "secret"
    assert own.to_write(tmp_path / "in" / "way_out" / ".x") == tmp_path / "out" / ".x"


# -- opening ------------------------------------------------------------------------------------------------------


def test_no_part_of_an_opened_path_is_a_link(jail: FileRoots, tmp_path: Path) -> None:
    with open_to_read(tmp_path / "out" / "secret") as file:
        assert file.read() == b"s"
    for path in ("in/secret", "in/way_out/secret"):
        with pytest.raises(OSError, match="link"):
            open_to_read(tmp_path / path)


def test_missing_folders_are_made_below_what_was_opened(tmp_path: Path) -> None:
    made: list[Path] = []
    os.close(open_folder(tmp_path / "a" / "b", made=made))
    assert made == [tmp_path / "a", tmp_path / "a" / "b"]
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize("swapped", ["the file", "a folder on the way"])
def test_a_link_that_is_swapped_all_the_time_never_leads_out(
    tmp_path: Path, swapping: Callable[..., None], swapped: str
) -> None:
    for name in ("in", "out"):
        (tmp_path / name / "folder").mkdir(parents=True)
        (tmp_path / name / "folder" / "file").write_text(name)
    spot, sub = tmp_path / "in" / "spot", "folder/file" if swapped == "the file" else "folder"
    roots = FileRoots(read=(tmp_path / "in",))
    swapping(spot, tmp_path / "in" / sub, tmp_path / "out" / sub)
    found, reads = set[str](), 0
    while reads < 5000 or not found >= {"in", "outside"}:  # until the links were swapped in between
        found.add(_content(roots, spot if swapped == "the file" else spot / "file"))
        reads += 1
        assert found <= {"in", "refused", "outside"}


def _content(roots: FileRoots, asked: Path) -> str:
    try:
        with open_to_read(roots.to_read(asked)) as file:
            return file.read().decode()
    except OutsideRoots:
        return "outside"
    except OSError:
        return "refused"


TEXT = FileKind("a text", ".txt", lambda head: head.startswith(b"ours"))


@pytest.mark.parametrize(
    ("content", "reason"), [(b"ours, and more", ""), (b"yours", "not a text"), (b"", "not a text")]
)
def test_only_a_file_of_ours_is_replaced(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x").write_bytes(content)
    folder = open_folder(tmp_path)
    why = why_not_replaced("x", folder, TEXT)
    os.close(folder)
    assert reason in why
    assert bool(reason) == bool(why)


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("ours")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    folder = open_folder(tmp_path)
    reasons = [why_not_replaced(name, folder, TEXT) for name in ("link", "folder", "pipe", "nothing")]
    os.close(folder)
    assert "link" in reasons[0]
    assert "folder" in reasons[1]
    assert "pipe" in reasons[2]
    assert reasons[3] == ""
