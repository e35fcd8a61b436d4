"""The child process that reads one mesh file which MuJoCo does not read, with trimesh."""

import importlib
import io
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from urlab.importing.formats import MeshResult, MeshTask, Rgba
from urlab.importing.limited_process import serve_once

MAX_TRIANGLES = 2_000_000
_Shape = tuple[NDArray[np.float64], NDArray[np.int64]]

_Y_UP = ("glb", "gltf")
_Z_FROM_Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])


def read_mesh(task: MeshTask) -> MeshResult:
    """One mesh of all parts, each where the file's scene has it.

    glTF says that Y is up, so those files are turned to stand upright; units are metres, as they are. ValueError, or
    whatever trimesh raises, when the file holds no usable triangles.
    """
    trimesh: Any = importlib.import_module("trimesh")
    scene = trimesh.load_scene(io.BytesIO(task.content), file_type=task.file_type, resolver=task.files, process=False)
    parts = _parts(scene)
    _check_size(len(mesh.faces) for _, mesh in parts)
    vertices, faces = _merged([_placed(transform, mesh) for transform, mesh in parts])
    if task.file_type in _Y_UP:
        vertices = vertices @ _Z_FROM_Y_UP.T
    colours = {_colour(mesh.visual) for _, mesh in parts}
    return MeshResult(_obj_file(vertices, faces), colours.pop() if len(colours) == 1 else None)


def _parts(scene: Any) -> list[tuple[NDArray[np.float64], Any]]:
    """Every triangle mesh of the scene with its (4, 4) transform."""
    placed = [scene.graph[node] for node in scene.graph.nodes_geometry]
    parts = [(np.asarray(transform, np.float64), scene.geometry[name]) for transform, name in placed]
    return [(transform, mesh) for transform, mesh in parts if len(getattr(mesh, "faces", ())) > 0]


def _check_size(face_counts: Iterable[int]) -> None:
    """Parts may be placed many times, so a small file can ask for a lot."""
    count = sum(face_counts)
    if count == 0:
        raise ValueError("it has no triangles")
    if count > MAX_TRIANGLES:
        raise ValueError(f"it has {count} triangles; at most {MAX_TRIANGLES} can be used")


def _placed(transform: NDArray[np.float64], mesh: Any) -> _Shape:
    vertices = np.asarray(mesh.vertices, np.float64) @ transform[:3, :3].T + transform[:3, 3]
    faces = np.asarray(mesh.faces, np.int64)
    mirrored = np.linalg.det(transform[:3, :3]) < 0.0
    return vertices, faces[:, ::-1] if mirrored else faces


def _merged(shapes: Sequence[_Shape]) -> _Shape:
    """All in one, with vertices that coincide listed once."""
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in shapes)])
    faces = np.concatenate([corners + start for (_, corners), start in zip(shapes, starts, strict=False)])
    vertices = np.concatenate([points for points, _ in shapes])
    if not np.isfinite(vertices).all():
        raise ValueError("it has vertices that are not finite")
    unique, index = np.unique(vertices, axis=0, return_inverse=True)
    return unique, index.ravel()[faces]


def _obj_file(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> bytes:
    """With as many digits as MuJoCo keeps."""
    points = "".join(f"v {x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in vertices.tolist())
    corners = "".join(f"f {a} {b} {c}\n" for a, b, c in (faces + 1).tolist())
    return (points + corners).encode()


def _colour(visual: Any) -> Rgba | None:
    """The base colour of a material, or the colour that all faces or vertices share."""
    if visual.kind == "texture":
        base = getattr(visual.material, "baseColorFactor", None)
        shown = [] if base is None else [base]
    elif visual.kind in ("face", "vertex"):
        shown = list(np.unique(getattr(visual, f"{visual.kind}_colors"), axis=0))
    else:
        shown = []
    if len(shown) != 1:
        return None
    red, green, blue, alpha = (round(int(one) / 255, 4) for one in shown[0])
    return red, green, blue, alpha


def read(task: bytes) -> bytes:
    """Serve one `MeshTask` with a `MeshResult`, both as msgpack."""
    return msgspec.msgpack.encode(read_mesh(msgspec.msgpack.decode(task, type=MeshTask)))


if __name__ == "__main__":
    serve_once(read)
