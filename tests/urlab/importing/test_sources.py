import os
from dataclasses import replace
from pathlib import Path

import pytest

from urlab.errors import ImportFailed
from urlab.importing.sources import DEFAULT_LIMITS, SourceFiles
from urlab.paths import FileRoots


@pytest.fixture
def sources(roots: FileRoots) -> SourceFiles:
    return SourceFiles(roots, replace(DEFAULT_LIMITS, file_bytes=10, total_bytes=15))


def test_a_file_inside_the_roots_is_read(tree, sources: SourceFiles) -> None:
    assert sources.read(str(tree({"a": "hello"}) / "a"), "a test") == b"hello"


def test_a_file_that_is_not_there_is_none(tree, sources: SourceFiles) -> None:
    folder = tree({"a": ""})
    assert sources.read(str(folder / "b"), "a test") is None
    assert sources.read(str(folder / "a" / "b"), "a test") is None


def test_outside_the_roots_nothing_is_looked_at_and_the_option_is_named(
    tree, sources: SourceFiles, tmp_path: Path
) -> None:
    tree({})
    (tmp_path / "there").write_text("secret")
    for name in ("there", "not-there"):
        with pytest.raises(ImportFailed, match=f"{name}, which a test needs, is outside .*--model-root {tmp_path}"):
            sources.read(str(tmp_path / name), "a test")


def test_a_link_that_leads_out_of_the_roots_is_refused(tree, sources: SourceFiles, tmp_path: Path) -> None:
    folder = tree({"x": ""})
    (folder / "link").symlink_to(tmp_path)
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(ImportFailed, match="outside the folders"):
        sources.read(str(folder / "link" / "secret"), "a test")


def test_a_link_inside_the_roots_is_followed(tree, sources: SourceFiles) -> None:
    folder = tree({"deep/x": "hello"})
    (folder / "link").symlink_to("deep/x")
    assert sources.read(str(folder / "link"), "a test") == b"hello"


def test_folders_pipes_devices_loops_and_nul_are_refused_at_once(tree, sources: SourceFiles) -> None:
    folder = tree({"x": ""})
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    for name, words in (("", "a folder"), ("pipe", "a pipe or device"), ("loop", "symbolic links"), ("a\0b", "NUL")):
        with pytest.raises(ImportFailed, match=words):
            sources.read(f"{folder}/{name}", "a test")
    with pytest.raises(ImportFailed, match="a pipe or device"):
        SourceFiles(FileRoots(read=(Path("/dev"),)), DEFAULT_LIMITS).read("/dev/zero", "a test")


def test_a_name_that_no_file_can_have_is_refused_with_the_reason(tree, sources: SourceFiles) -> None:
    with pytest.raises(ImportFailed, match="File name too long"):
        sources.read(f"{tree({'x': ''})}/{'n' * 300}", "a test")


def test_files_that_are_too_large_are_refused(tree, sources: SourceFiles) -> None:
    folder = tree({"ten": "x" * 10, "eleven": "x" * 11})
    with pytest.raises(ImportFailed, match="eleven has more than"):
        sources.read(str(folder / "eleven"), "a test")


def test_too_many_bytes_in_all_are_refused(tree, sources: SourceFiles) -> None:
    folder = tree({"a": "x" * 9, "b": "x" * 9})
    sources.read(str(folder / "a"), "a test")
    with pytest.raises(ImportFailed, match="in all"):
        sources.read(str(folder / "b"), "a test")


def test_a_mesh_that_is_swapped_for_a_link_all_the_time_is_never_read_outside(
    tree, roots: FileRoots, tmp_path: Path, swapping
) -> None:
    folder = tree({"mesh.stl": "inside"})
    (tmp_path / "secret.stl").write_text("outside")
    swapping(folder / "spot.stl", folder / "mesh.stl", tmp_path / "secret.stl")
    sources, found = SourceFiles(roots), set()
    both, reads = {b"inside", b"outside the roots"}, 0
    while reads < 3000 or not found >= both:  # who swaps them may not have its turn for a while
        reads += 1
        try:
            found.add(sources.read(str(folder / "spot.stl"), "a test"))
        except ImportFailed as refused:
            found.add(b"outside the roots" if "--model-root" in refused.message else b"refused")
        assert found <= {*both, b"refused"}
