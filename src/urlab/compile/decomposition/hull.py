"""A convex piece of a mesh, and how a list of them is kept as bytes."""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEAST_VERTICES = 4
_VERTICES, _FACES, _VERTEX_COUNTS, _FACE_COUNTS = "vertices", "faces", "vertex_counts", "face_counts"


@dataclass(frozen=True, eq=False)
class Hull:
    """``vertices`` (n, 3) float64 in the mesh's own frame and unit; ``faces`` (m, 3) int32, seen from outside."""

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]


def packed(hulls: Sequence[Hull]) -> bytes:
    """The hulls as the bytes of an ``.npz`` file."""
    out = io.BytesIO()
    arrays: dict[str, Any] = {
        _VERTICES: np.concatenate([hull.vertices for hull in hulls]),
        _FACES: np.concatenate([hull.faces for hull in hulls]),
        _VERTEX_COUNTS: np.array([len(hull.vertices) for hull in hulls]),
        _FACE_COUNTS: np.array([len(hull.faces) for hull in hulls]),
    }
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def unpacked(content: bytes) -> list[Hull]:
    """What ``packed`` made; ValueError when the bytes hold anything but sound hulls."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            hulls = _split(*(file[name] for name in (_VERTICES, _FACES, _VERTEX_COUNTS, _FACE_COUNTS)))
    except (KeyError, OSError, EOFError, TypeError, IndexError, zipfile.BadZipFile) as broken:
        raise ValueError(f"not a file of hulls: {broken}") from broken
    if not hulls:
        raise ValueError("there are no hulls")
    for hull in hulls:
        _check(hull)
    return hulls


def _split(
    vertices: NDArray[Any], faces: NDArray[Any], vertex_counts: NDArray[Any], face_counts: NDArray[Any]
) -> list[Hull]:
    if vertex_counts.sum() != len(vertices) or face_counts.sum() != len(faces):
        raise ValueError("the counts do not fit the hulls")
    pieces = zip(_runs(vertices, vertex_counts), _runs(faces, face_counts), strict=True)
    return [Hull(np.asarray(points, np.float64), np.asarray(corners, np.int32)) for points, corners in pieces]


def _runs(rows: NDArray[Any], counts: NDArray[Any]) -> list[NDArray[Any]]:
    return np.split(rows, np.cumsum(counts)[:-1]) if len(counts) else []


def _check(hull: Hull) -> None:
    count = len(hull.vertices)
    if hull.vertices.shape != (count, 3) or hull.faces.shape != (len(hull.faces), 3) or count < _LEAST_VERTICES:
        raise ValueError(f"a hull has vertices {hull.vertices.shape} and faces {hull.faces.shape}")
    if not np.isfinite(hull.vertices).all():
        raise ValueError("a hull has vertices that are not finite")
    if len(hull.faces) == 0 or hull.faces.min() < 0 or hull.faces.max() >= count:
        raise ValueError("a hull's faces refer to vertices that it does not have")
