import pytest

from urlab.importing.mjcf_document import is_absolute, joined, last


@pytest.mark.parametrize("path", ["/a", "\\a", "C:/a", "C:\\a", "package://p/a", "file:///a"])
def test_paths_that_mujoco_leaves_alone_are_absolute(path: str) -> None:
    assert is_absolute(path)


@pytest.mark.parametrize("path", ["a", "./a", "../a", "a:b", "~/a", "a/b:c", ""])
def test_other_paths_are_not(path: str) -> None:
    assert not is_absolute(path)


def test_parts_are_joined_without_following_links() -> None:
    assert joined("/a/b", "m\\k", "../x/./y.stl") == "/a/b/m/x/y.stl"
    assert joined("/a", "", "x.stl") == "/a/x.stl"
    assert joined("/a", "/b", "c") == "/b/c"
    assert joined("/a", "../../..", "c") == "/c"


def test_the_last_part_is_what_follows_either_slash() -> None:
    assert [last(path) for path in ("a/b.stl", "a\\b.stl", "package://p/b.stl", "b.stl")] == ["b.stl"] * 4
