import struct

import numpy as np
import pytest

from urlab.compile.hulls import Triangles, read_triangles

CORNERS = np.array([[x, y, z] for x in (0.0, 2.0) for y in (0.0, 3.0) for z in (0.0, 5.0)])
BOX = "013 032 467 475 045 051 237 276 026 064 157 173"
FACES = np.array([[int(corner) for corner in face] for face in BOX.split()])


def stl(faces: np.ndarray) -> bytes:
    rows = [struct.pack("<12fH", 0, 0, 0, *CORNERS[face].ravel(), 0) for face in faces]
    return bytes(80) + struct.pack("<I", len(faces)) + b"".join(rows)


def obj_with_split_vertices(faces: np.ndarray) -> bytes:
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS[faces].reshape(-1, 3)]
    return "\n".join([*lines, *(f"f {3 * i + 1} {3 * i + 2} {3 * i + 3}" for i in range(len(faces)))]).encode()


@pytest.mark.parametrize("read", [(stl, ".stl"), (obj_with_split_vertices, ".obj")], ids=["stl", "obj"])
def test_vertices_are_where_the_file_has_them_and_listed_once(read: tuple) -> None:
    make, suffix = read
    triangles = read_triangles(make(FACES), suffix)
    order = np.lexsort(triangles.vertices.round(3).T[::-1])
    np.testing.assert_allclose(triangles.vertices[order], CORNERS, atol=1e-5)
    assert triangles.faces.shape == (12, 3)
    assert triangles.volume == pytest.approx(30.0, rel=1e-5)
    assert triangles.is_solid


@pytest.mark.parametrize(
    ("faces", "solid"),
    [
        (FACES, True),
        (FACES[:-1], False),
        (FACES[:, ::-1], False),
        (np.vstack([FACES[:6], FACES[6:, ::-1]]), False),
        (np.vstack([FACES, FACES]), False),
    ],
    ids=["closed", "open", "inside out", "mixed", "twice"],
)
def test_a_solid_is_closed_and_looks_outwards(faces: np.ndarray, solid: bool) -> None:
    assert Triangles(CORNERS, faces).is_solid is solid
