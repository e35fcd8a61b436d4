"""What quick convert works with: a mesh as triangles, and as the convex hulls that it is cut into.

Cutting takes child processes and minutes, so it is done elsewhere: a `HullSource` is given to the library.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Hull:
    """``vertices`` (n, 3) float64 in the mesh's own frame and unit; ``faces`` (m, 3) int32, seen from outside."""

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class HullProgress:
    """How far a decomposition is. CoACD does not tell how much is left, so there is the time that it took so far.

    ``elapsed_s`` stands still when the work has ended; ``message`` is one line for people.
    """

    state: Literal["waiting", "running", "ready", "failed"]
    elapsed_s: float
    message: str


class HullSource(Protocol):
    """Cuts meshes into convex hulls, in the background. Any thread may call it.

    ``mesh`` is an STL or OBJ file; ImportFailed says why it cannot be cut.
    """

    def start(self, mesh: Path, threshold: float) -> None:
        """Begin to cut the mesh, unless that is done or under way."""

    def hulls(self, mesh: Path, threshold: float, timeout_s: float | None = None) -> list[Hull]:
        """The hulls, begun if need be and waited for; OpTimeout when they are not there in time."""

    def progress(self, mesh: Path, threshold: float) -> HullProgress:
        """How far it is."""

    def cancel(self) -> None:
        """End what runs now; a caller that waits for it gets ImportFailed."""


@dataclass(frozen=True, eq=False)
class Triangles:
    """``vertices`` (n, 3) float64 in the frame of the file; ``faces`` (m, 3) int64 into them."""

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]

    @property
    def is_solid(self) -> bool:
        """Whether the faces enclose a volume: each edge borders two, and all look outwards."""
        starts, ends = self.faces.ravel(), np.roll(self.faces, -1, axis=1).ravel()
        count = len(self.vertices)
        edges, mirrored = np.sort(starts * count + ends), np.sort(ends * count + starts)
        once_each = bool((np.diff(edges) > 0).all())
        return once_each and np.array_equal(edges, mirrored) and self.volume > 0.0

    @property
    def volume(self) -> float:
        """The enclosed volume; negative when the faces look inwards."""
        corners = self.vertices[self.faces] - self.vertices.mean(axis=0)
        return float(np.linalg.det(corners).sum() / 6.0)


def read_triangles(content: bytes, suffix: str) -> Triangles:
    """The triangles of a mesh file's content; MuJoCo's errors pass through."""
    name = f"mesh{suffix}"
    spec = mujoco.MjSpec()
    spec.assets = {name: content}
    spec.add_mesh(name="mesh", file=name, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh", contype=0, conaffinity=0)
    return compiled_triangles(spec.compile(), 0)


def compiled_triangles(model: Any, mesh_id: int) -> Triangles:
    """The triangles of a compiled mesh, scaled, and moved back to where its file has them."""
    start, count = int(model.mesh_vertadr[mesh_id]), int(model.mesh_vertnum[mesh_id])
    first, faces = int(model.mesh_faceadr[mesh_id]), int(model.mesh_facenum[mesh_id])
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, model.mesh_quat[mesh_id])
    unique, index = np.unique(model.mesh_vert[start : start + count], axis=0, return_inverse=True)
    vertices = unique.astype(np.float64) @ rotation.reshape(3, 3).T + model.mesh_pos[mesh_id]
    corners = index.ravel()[model.mesh_face[first : first + faces]]
    distinct = (corners != np.roll(corners, -1, axis=1)).all(axis=1)
    return Triangles(vertices, corners[distinct])  # a face that has a corner twice is a line, and encloses nothing
