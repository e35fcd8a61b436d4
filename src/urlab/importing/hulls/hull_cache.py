"""Hulls as bytes, and on disk by the content of the mesh that they were cut from."""

import hashlib
import io
import json
import logging
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.compile.hulls import Hull
from urlab.errors import PathNotWritable
from urlab.files import replacing

_log = logging.getLogger("urlab.importing")

PARAMETERS: dict[str, Any] = {
    "max_convex_hull": -1,
    "preprocess_mode": "auto",
    "preprocess_resolution": 30,
    "resolution": 1000,
    "mcts_nodes": 20,
    "mcts_iterations": 150,
    "mcts_max_depth": 3,
    "pca": False,
    "merge": True,
    "decimate": False,
    "max_ch_vertex": 100,
    "extrude": False,
    "extrude_margin": 0.01,
    "apx_mode": "ch",
    "seed": 0,
    "real_metric": False,
}
"""Every keyword of ``coacd.run_coacd`` but the threshold. A change here makes new entries in the cache."""

_LEAST_VERTICES = 4
_VERTICES, _FACES, _VERTEX_COUNTS, _FACE_COUNTS = "vertices", "faces", "vertex_counts", "face_counts"


def hull_key(mesh: bytes, suffix: str, threshold: float) -> str:
    """A digest of all that decides the hulls: the mesh's bytes and kind, the threshold, the parameters."""
    digest = hashlib.sha256(mesh)
    digest.update(json.dumps([suffix, threshold, PARAMETERS], sort_keys=True).encode())
    return digest.hexdigest()


class HullCache:
    """One file per key in ``folder``, which is made when it is needed. Any thread may call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, key: str) -> list[Hull] | None:
        """The hulls, or None when there are none or the file is damaged."""
        path = self._path(key)
        try:
            return unpacked(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as damaged:
            _log.warning("%s cannot be used and is made anew: %s", path, damaged)
            return None

    def save(self, key: str, hulls: list[Hull]) -> None:
        """Keep them. A disk that refuses costs a warning and the work of cutting the mesh again, one day."""
        try:
            with replacing(self._path(key)) as file:
                file.write(packed(hulls))
        except PathNotWritable as refused:
            _log.warning("the hulls are not kept: %s", refused.message)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.npz"


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
