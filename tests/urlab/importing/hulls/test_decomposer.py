import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab.compile.hulls import Hull, HullProgress, Triangles
from urlab.errors import ImportFailed, OpTimeout, ShuttingDown
from urlab.importing.hulls import Decomposer
from urlab.importing.hulls.hull_cache import hull_key, unpacked

AT = 0.05
COMB = tuple((i, 0) for i in range(9)) + tuple((i, k) for i in range(0, 9, 2) for k in range(1, 4))


def volume(hull: Hull) -> float:
    return Triangles(hull.vertices, hull.faces.astype(np.int64)).volume


def hulls_around(hulls: list[Hull], point: tuple[float, float, float]) -> int:
    """How many hulls hold the point: it is behind all of their faces."""
    return sum(_is_inside(hull, np.array(point)) for hull in hulls)


def _is_inside(hull: Hull, point: np.ndarray) -> bool:
    a, b, c = (hull.vertices[hull.faces[:, i]] for i in range(3))
    return bool((np.einsum("ij,ij->i", np.cross(b - a, c - a), point - a) <= 1e-3).all())


def test_a_mesh_is_cut_in_the_background_with_progress_into_hulls_that_fill_it(
    decomposer: Decomposer, u_shape: Path, log: Any
) -> None:
    before = decomposer.progress(u_shape, AT)
    assert (before.state, before.elapsed_s) == ("waiting", 0.0)
    decomposer.start(u_shape, AT)
    decomposer.start(u_shape, AT)
    assert log.next_message().startswith("cutting up cells.obj at threshold 0.05, in process ")
    assert decomposer.progress(u_shape, AT).state == "running"
    hulls = decomposer.hulls(u_shape, AT)
    after = decomposer.progress(u_shape, AT)
    assert (after.state, after.message) == ("ready", f"cells.obj: {len(hulls)} hulls")
    assert after.elapsed_s == decomposer.progress(u_shape, AT).elapsed_s > 0.0
    assert log.next_message().startswith(f"cut cells.obj into {len(hulls)} hulls in ")
    assert log.records.empty()
    assert sum(map(volume, hulls)) == pytest.approx(5.0, rel=0.02)
    assert hulls_around(hulls, (1.5, 0.5, 1.5)) == 0
    for i, k in ((0, 0), (1, 0), (2, 0), (0, 1), (2, 1)):
        assert hulls_around(hulls, (i + 0.5, 0.5, k + 0.5)) == 1


def test_a_second_decomposer_finds_the_hulls_without_a_child_and_without_coacd(
    decomposer: Decomposer, u_shape: Path, tmp_path: Path, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of this threshold: another one is another decomposition."""
    assert len(decomposer.hulls(u_shape, 1.0)) == 1
    first = decomposer.hulls(u_shape, AT)
    assert len(first) > 1
    log.next_message(), log.next_message(), log.next_message(), log.next_message()
    monkeypatch.setitem(sys.modules, "coacd", None)
    other = Decomposer(tmp_path / "cache")
    assert other.progress(u_shape, AT) == HullProgress("ready", 0.0, f"cells.obj: {len(first)} hulls")
    second = other.hulls(u_shape, AT)
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.vertices, two.vertices)
        np.testing.assert_array_equal(one.faces, two.faces)
    assert log.records.empty()


def test_damaged_hulls_are_cut_anew(decomposer: Decomposer, u_shape: Path, tmp_path: Path) -> None:
    kept = tmp_path / "cache" / f"{hull_key(u_shape.read_bytes(), '.obj', AT)}.npz"
    kept.parent.mkdir()
    kept.write_bytes(b"PK\x03\x04 and then the power failed")
    hulls = decomposer.hulls(u_shape, AT)
    assert sum(map(volume, hulls)) == pytest.approx(5.0, rel=0.02)
    assert len(unpacked(kept.read_bytes())) == len(hulls)


def test_a_child_that_is_killed_is_an_error_and_the_next_try_works(
    decomposer: Decomposer, u_shape: Path, log: Any
) -> None:
    decomposer.start(u_shape, AT)
    os.kill(log.next_pid(), signal.SIGKILL)
    assert "SIGKILL" in log.next_message()
    with pytest.raises(ImportFailed, match=r"cells.obj cannot be cut into convex pieces: it was killed \(SIGKILL\)"):
        decomposer.hulls(u_shape, AT)
    assert decomposer.progress(u_shape, AT).state == "waiting"
    assert log.records.empty()
    assert sum(map(volume, decomposer.hulls(u_shape, AT))) == pytest.approx(5.0, rel=0.02)


def test_starting_again_after_a_failure_tries_again(decomposer: Decomposer, u_shape: Path, log: Any) -> None:
    decomposer.start(u_shape, AT)
    os.kill(log.next_pid(), signal.SIGKILL)
    log.next_message()
    assert wait_for_state(decomposer, u_shape, "failed").message.startswith(
        "cells.obj cannot be cut into convex pieces: it was killed (SIGKILL)"
    )
    decomposer.start(u_shape, AT)
    assert decomposer.progress(u_shape, AT).state in ("waiting", "running")


def wait_for_state(decomposer: Decomposer, mesh: Path, state: str) -> HullProgress:
    """The failure is logged just before it is told."""
    pause = threading.Event()
    while (progress := decomposer.progress(mesh, AT)).state != state:
        pause.wait(0.001)
    return progress


def test_too_long_is_an_error(u_shape: Path, tmp_path: Path) -> None:
    hurried = Decomposer(tmp_path / "cache", time_limit_s=0.05)
    with pytest.raises(ImportFailed, match=r"cells.obj .* it took longer than the 0.05 s"):
        hurried.hulls(u_shape, AT)
    hurried.close()


def test_who_does_not_want_to_wait_is_told_so_and_the_work_goes_on(decomposer: Decomposer, u_shape: Path) -> None:
    with pytest.raises(OpTimeout, match=r"cells.obj is still being cut up"):
        decomposer.hulls(u_shape, AT, timeout_s=0.0)
    assert decomposer.progress(u_shape, AT).state in ("waiting", "running")
    assert len(decomposer.hulls(u_shape, AT)) > 1


@pytest.mark.parametrize("text", ["garbage\n", "v 0 0 0\nv 1 0 0\nv 2 0 0\nv 3 0 0\nf 1 2 3\nf 2 3 4\n", "v nan 0 0\n"])
def test_a_mesh_that_is_none_is_an_error_with_the_reason(decomposer: Decomposer, tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.obj"
    path.write_text(text)
    with pytest.raises(ImportFailed, match=r"bad.obj cannot be cut into convex pieces: .+"):
        decomposer.hulls(path, AT)


def test_a_missing_file_and_a_missing_coacd_are_told_at_once(
    decomposer: Decomposer, u_shape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ImportFailed, match=r"gone.obj cannot be read: No such file"):
        decomposer.start(tmp_path / "gone.obj", AT)
    monkeypatch.setitem(sys.modules, "coacd", None)
    with pytest.raises(ImportFailed, match=r"pip install 'urlab-headless\[mesh\]'"):
        decomposer.start(u_shape, AT)


def test_closing_ends_the_child_and_wakes_who_waits(
    decomposer: Decomposer, write_cells: Callable[..., Path], log: Any
) -> None:
    comb, told = write_cells(COMB), []

    def wait() -> None:
        with pytest.raises(ShuttingDown, match=r"cells.obj was not cut up: the server is stopping"):
            decomposer.hulls(comb, 0.01)
        told.append(True)

    waiting = threading.Thread(target=wait)
    waiting.start()
    child = log.next_pid()
    decomposer.close()
    waiting.join(30)
    assert told
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    with pytest.raises(ShuttingDown):
        decomposer.start(comb, 0.02)


def test_at_most_two_are_cut_at_once(decomposer: Decomposer, u_shape: Path, log: Any) -> None:
    thresholds = (0.04, 0.05, 0.06)
    for threshold in thresholds:
        decomposer.start(u_shape, threshold)
    log.next_pid(), log.next_pid()
    assert sorted(decomposer.progress(u_shape, one).state for one in thresholds) == ["running", "running", "waiting"]
    assert log.next_message().startswith("cut cells.obj")
