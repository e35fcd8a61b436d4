import io
from pathlib import Path

import numpy as np
import pytest

from urlab.compile.hulls import Hull
from urlab.importing.hulls.hull_cache import HullCache, hull_key, packed, unpacked

FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)


def tetrahedron(edge: float) -> Hull:
    return Hull(np.vstack([np.zeros(3), np.eye(3)]) * edge, FACES)


def bytes_of(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def test_hulls_come_back_as_they_were() -> None:
    small, large = tetrahedron(1 / 3), tetrahedron(7.0)
    back = unpacked(packed([small, large]))
    assert len(back) == 2
    for hull, original in zip(back, (small, large), strict=True):
        np.testing.assert_array_equal(hull.vertices, original.vertices)
        np.testing.assert_array_equal(hull.faces, original.faces)
        assert (hull.vertices.dtype, hull.faces.dtype) == (np.float64, np.int32)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        packed([tetrahedron(1.0)])[:-40],
        bytes_of(vertices=np.zeros((4, 3))),
        bytes_of(vertices=np.zeros((0, 3)), faces=np.zeros((0, 3)), vertex_counts=np.zeros(0), face_counts=np.zeros(0)),
        packed([Hull(np.full((4, 3), np.nan), FACES)]),
        packed([Hull(np.zeros((3, 3)), FACES % 3)]),
        packed([Hull(np.zeros((4, 3)), FACES + 1)]),
        packed([Hull(np.zeros((4, 2)), FACES)]),
    ],
    ids=["empty", "text", "cut short", "one array", "no hulls", "nan", "three vertices", "wrong faces", "flat"],
)
def test_damaged_bytes_are_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpacked(content)


HULLS = [Hull(np.vstack([np.zeros(3), np.eye(3)]), np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32))]


def test_the_key_tells_meshes_kinds_and_thresholds_apart() -> None:
    keys = {hull_key(mesh, kind, at) for mesh in (b"a", b"b") for kind in (".obj", ".stl") for at in (0.05, 0.1)}
    assert len(keys) == 8
    assert hull_key(b"a", ".obj", 0.05) in keys


def test_what_was_saved_is_loaded_by_another_cache_on_the_folder(tmp_path: Path) -> None:
    HullCache(tmp_path / "made" / "here").save("key", HULLS)
    loaded = HullCache(tmp_path / "made" / "here").load("key")
    assert loaded is not None
    np.testing.assert_array_equal(loaded[0].vertices, HULLS[0].vertices)
    assert [path.name for path in (tmp_path / "made" / "here").iterdir()] == ["key.npz"]


def test_an_unknown_key_and_a_damaged_file_are_none(tmp_path: Path) -> None:
    cache = HullCache(tmp_path)
    assert cache.load("key") is None
    (tmp_path / "key.npz").write_bytes(b"PK\x03\x04 but not much more")
    assert cache.load("key") is None


def test_a_folder_that_cannot_be_written_costs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    HullCache(tmp_path / "file").save("key", HULLS)
    assert "the hulls are not kept" in caplog.text
