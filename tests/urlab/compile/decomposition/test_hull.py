"""Hulls as bytes."""

import io

import numpy as np
import pytest

from urlab.compile.decomposition.hull import Hull, packed, unpacked

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
