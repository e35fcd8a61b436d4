"""The child process that cuts one mesh. Its arguments are the mesh's suffix and the threshold, its task the mesh."""

import importlib
import sys
from typing import Any

import numpy as np

from urlab.compile.hulls import Hull, read_triangles
from urlab.importing.hulls.hull_cache import PARAMETERS, packed
from urlab.importing.limited_process import serve_once


def cut(mesh: bytes, suffix: str, threshold: float) -> bytes:
    """The hulls of a mesh, packed."""
    coacd: Any = importlib.import_module("coacd")
    coacd.set_log_level("error")
    triangles = read_triangles(mesh, suffix)
    source = coacd.Mesh(triangles.vertices, triangles.faces)
    pieces: list[Any] = coacd.run_coacd(source, threshold=threshold, **PARAMETERS)
    if not pieces:
        raise ValueError("CoACD found no solid part in it")
    return packed([Hull(np.asarray(points), np.asarray(faces, np.int32)) for points, faces in pieces])


if __name__ == "__main__":
    serve_once(lambda mesh: cut(mesh, sys.argv[1], float(sys.argv[2])))
