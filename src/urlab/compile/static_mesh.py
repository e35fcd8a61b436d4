"""Quick convert: gives the mesh of a static-mesh import a collision shape, and lets it stand, fall or be driven."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.compile.blueprint import MUJOCO_ERRORS, compile_spec
from urlab.compile.hulls import HullSource, Triangles, compiled_triangles
from urlab.errors import EditError, ImportFailed
from urlab.geometry import Vec3
from urlab.scene.blueprint_record import BlueprintKind, BlueprintRecord
from urlab.scene.level import QuickConvert

VISUAL, COLLISION, HULL, FREE = "visual", "collision", "hull", "free"
"""The names of the geoms and of the joint; hulls have a number behind."""

_COLLISION_GROUP = 3
_DENSITY = 1000.0
_SOLREF = (0.02, 1.0)
_SOLIMP = (0.9, 0.95, 0.001)
_THIN = 0.002
"""A shape that is thinner than this part of its length has no hull that could be relied on."""


def convert_spec(
    spec: Any, record: BlueprintRecord, convert: QuickConvert, scale: Vec3, hull_source: HullSource | None
) -> None:
    """Change the spec of a static-mesh import, already scaled by ``scale``, in place.

    The body stands still, follows its mocap pose or has a free joint, and gets collision geoms in group 3: the mesh,
    whose convex hull collides, or the hulls of its decomposition, which is waited for. It weighs 1000 kg per cubic
    metre: of the mesh, if that is closed and taken whole, else of what collides. The visual geom stays as it is.
    """
    if record.kind is not BlueprintKind.STATIC_MESH:
        raise EditError(f"{record.short_name!r} has physics of its own: only static meshes can be converted")
    body, visual = spec.bodies[1], spec.geom(VISUAL)
    if convert.complex_mesh:
        shapes = _hulls(spec, visual.meshname, _pieces(record, convert, hull_source), scale)
    else:
        shapes = {COLLISION: _whole(spec, record, visual.meshname)}
    for name, mesh in shapes.items():
        _add_collision(body, name, mesh, convert.friction)
    if convert.driven:
        body.mocap = True
    elif not convert.static:
        body.add_freejoint(name=FREE)


def mesh_file(record: BlueprintRecord) -> Path:
    """The mesh of a static-mesh import; EditError when it is none, ImportFailed when the file is gone."""
    if record.kind is not BlueprintKind.STATIC_MESH:
        raise EditError(f"{record.short_name!r} is not a static mesh")
    try:
        asset = ET.parse(record.file).find("asset/mesh")
    except (OSError, ET.ParseError) as broken:
        raise ImportFailed(f"{record.file} cannot be read: {broken}") from broken
    path = record.file.parent / ("" if asset is None else asset.get("file", ""))
    if not path.is_file():
        raise ImportFailed(f"the mesh of {record.short_name!r} is gone: {path} is no file; import it again")
    return path


def _whole(spec: Any, record: BlueprintRecord, mesh_name: str) -> str:
    """The name of a mesh that collides as one convex hull."""
    triangles, mesh = _triangles(spec, record), spec.mesh(mesh_name)
    points = _thickened(triangles.vertices)
    if len(points) > len(triangles.vertices):
        return _add_mesh(spec, f"{mesh_name}_{COLLISION}", points)
    kinds = mujoco.mjtMeshInertia
    mesh.inertia = kinds.mjMESH_INERTIA_EXACT if triangles.is_solid else kinds.mjMESH_INERTIA_CONVEX
    return mesh_name


def _triangles(spec: Any, record: BlueprintRecord) -> Triangles:
    try:
        model, _ = compile_spec(spec.copy())
    except MUJOCO_ERRORS as refused:
        raise ImportFailed(f"{record.file}: {refused}") from refused
    return compiled_triangles(model, 0)


def _pieces(
    record: BlueprintRecord, convert: QuickConvert, hull_source: HullSource | None
) -> Iterable[NDArray[np.float64]]:
    if hull_source is None:
        raise ImportFailed(f"{record.short_name!r} with complex_mesh: nothing here can cut meshes into convex pieces")
    hulls = hull_source.hulls(mesh_file(record), convert.coacd_threshold)
    return [hull.vertices for hull in hulls]


def _hulls(spec: Any, mesh_name: str, pieces: Iterable[NDArray[np.float64]], scale: Vec3) -> dict[str, str]:
    """One mesh per piece; the geoms' names with those of their meshes."""
    shapes = {}
    for index, points in enumerate(pieces):
        name = f"{HULL}_{index}"
        shapes[name] = _add_mesh(spec, f"{mesh_name}_{name}", _thickened(points * scale))
    return shapes


def _add_mesh(spec: Any, name: str, points: NDArray[np.float64]) -> str:
    """A convex mesh around points: MuJoCo makes its faces."""
    mesh = spec.add_mesh(name=name, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX)
    mesh.uservert = points.ravel()
    return name


def _add_collision(body: Any, name: str, mesh_name: str, friction: Vec3) -> None:
    geom = body.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=mesh_name, group=_COLLISION_GROUP)
    geom.friction = friction
    geom.density = _DENSITY
    geom.solref[:2] = _SOLREF
    geom.solimp[:3] = _SOLIMP


def _thickened(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The points, or, of a flat or straight set, copies of them on both sides: MuJoCo needs a volume to collide."""
    _, axes = np.linalg.eigh(np.cov(points, rowvar=False))
    spans = np.ptp(points @ axes, axis=0)
    least = _THIN * spans.max()
    for axis in axes.T[spans < least]:
        points = np.concatenate([points + axis * least / 2, points - axis * least / 2])
    return points
