"""How much space a model takes: the tight axis-aligned box, in world axes, around all its geometry."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.geometry import Pose, Vec3, rotate

Array = NDArray[np.float64]
Extent = tuple[Array, Array]
"""Lower and upper corner along the world's axes; of a single shape, measured from its own origin."""


@dataclass(frozen=True, slots=True)
class Aabb:
    """A box along the world's axes, in metres."""

    lower: Vec3
    upper: Vec3

    @property
    def center(self) -> Vec3:
        """The middle of the box, in metres."""
        return _vec3((np.array(self.lower) + np.array(self.upper)) / 2)

    @property
    def half_size(self) -> Vec3:
        """From its middle to its faces."""
        return _vec3((np.array(self.upper) - np.array(self.lower)) / 2)


def actor_aabb(
    model: Any, data: Any, pose: Pose, *, colliding_only: bool = False, with_ground: bool = True
) -> Aabb | None:
    """The box around an actor that stands at ``pose``; None when it has no geometry of finite size.

    ``model`` is its blueprint compiled alone, ``data`` is as ``mj_kinematics`` left it; both are only read. Geoms,
    flexes and skins count, visible or not; infinite planes do not. With ``colliding_only``, only what can touch
    something counts (``contype`` or ``conaffinity`` is set), which leaves skins out. Without ``with_ground``,
    planes and heightfields that cannot move do not count: the floor that a robot's file brings.
    """
    axes = np.array([rotate(pose.quat_wxyz, axis) for axis in np.eye(3).tolist()]).T
    extents = list(_extents(model, data, axes, colliding_only, with_ground))
    if not extents:
        return None
    lower = np.min([extent[0] for extent in extents], axis=0)
    upper = np.max([extent[1] for extent in extents], axis=0)
    return Aabb(_vec3(lower + pose.pos), _vec3(upper + pose.pos))


@dataclass(frozen=True, slots=True)
class ShapeBox:
    """The box around one shape of a model along the world's axes, metres, (3,) each.

    ``body`` carries it; ``geom`` is its id, -1 of a flex. A plane or a heightfield is ``is_ground``.
    """

    body: int
    geom: int
    is_ground: bool
    lower: Array
    upper: Array


def world_shapes(model: Any, data: Any) -> Iterator[ShapeBox]:
    """Every geom of finite size and every flex, where ``data`` has it; the positions of flexes are computed there."""
    for geom in range(model.ngeom):
        found = _extent(model, geom, data.geom_xmat[geom].reshape(3, 3))
        if found is not None:
            center, is_ground = data.geom_xpos[geom], int(model.geom_type[geom]) in _GROUND
            yield ShapeBox(int(model.geom_bodyid[geom]), geom, is_ground, center + found[0], center + found[1])
    for flex in range(model.nflex):
        start, count = int(model.flex_vertadr[flex]), int(model.flex_vertnum[flex])
        vertices, radius = data.flexvert_xpos[start : start + count], float(model.flex_radius[flex])
        body = max(0, int(model.flex_vertbodyid[start : start + count].max()))
        yield ShapeBox(body, -1, False, vertices.min(axis=0) - radius, vertices.max(axis=0) + radius)


def _extents(model: Any, data: Any, axes: Array, colliding_only: bool, with_ground: bool) -> Iterator[Extent]:
    """One per shape, from the actor's origin; ``axes`` has the actor's own axes as columns."""
    for geom in _chosen(model.geom_contype, model.geom_conaffinity, colliding_only):
        if not with_ground and int(model.geom_type[geom]) in _GROUND and not model.body_weldid[model.geom_bodyid[geom]]:
            continue
        found = _extent(model, geom, axes @ data.geom_xmat[geom].reshape(3, 3))
        if found is not None:
            center = axes @ data.geom_xpos[geom]
            yield found[0] + center, found[1] + center
    for flex in _chosen(model.flex_contype, model.flex_conaffinity, colliding_only):
        yield _around(_flex_vertices(model, data, flex), axes, float(model.flex_radius[flex]))
    for skin in () if colliding_only else range(model.nskin):
        yield _around(_skin_vertices(model, data, skin), axes, abs(float(model.skin_inflate[skin])))


def _extent(model: Any, geom: int, axes: Array) -> Extent | None:
    """Of a geom whose own axes are the columns of ``axes``; None when it is infinite, or has no shape."""
    kind = int(model.geom_type[geom])
    if kind in _HALF_SIZES:
        half = _HALF_SIZES[kind](model.geom_size[geom], axes)
        return -half, half
    return _SHAPES[kind](model, geom, axes) if kind in _SHAPES else None


def _chosen(contype: NDArray[np.int32], conaffinity: NDArray[np.int32], colliding_only: bool) -> list[int]:
    wanted = (contype | conaffinity) != 0 if colliding_only else np.ones(len(contype), dtype=bool)
    return [int(index) for index in np.flatnonzero(wanted)]


def _around(points: Array, axes: Array, radius: float = 0.0) -> Extent:
    """The extent of points, shape (n, 3), each a ball of that radius."""
    turned = axes @ points.T  # one row per world axis, so that minima run over contiguous numbers
    return turned.min(axis=1) - radius, turned.max(axis=1) + radius


def _plane(model: Any, geom: int, axes: Array) -> Extent | None:
    """None when it is infinite, along either of its axes."""
    half = np.abs(axes[:, :2]) @ model.geom_size[geom, :2]
    return (-half, half) if model.geom_size[geom, :2].min() > 0 else None


def _mesh(model: Any, geom: int, axes: Array) -> Extent:
    mesh = int(model.geom_dataid[geom])
    start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    return _around(model.mesh_vert[start : start + count], axes)


def _hfield(model: Any, geom: int, axes: Array) -> Extent:
    """Around the heights that are there and the four lower corners of the base."""
    field = int(model.geom_dataid[geom])
    x_half, y_half, top, base = model.hfield_size[field]
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    start = int(model.hfield_adr[field])
    heights = top * model.hfield_data[start : start + rows * columns].astype(np.float64).reshape(rows, columns)
    x, y = np.linspace(-x_half, x_half, columns), np.linspace(-y_half, y_half, rows)[:, None]
    surface = [axis[0] * x + axis[1] * y + axis[2] * heights for axis in axes]
    below = np.abs(axes[:, :2]) @ (x_half, y_half)
    lower = np.minimum([values.min() for values in surface], -below - base * axes[:, 2])
    upper = np.maximum([values.max() for values in surface], below - base * axes[:, 2])
    return lower, upper


def _vec3(values: Array) -> Vec3:
    x, y, z = values.tolist()
    return x, y, z


_GEOM = mujoco.mjtGeom
_HALF_SIZES: dict[int, Callable[[Array, Array], Array]] = {
    int(_GEOM.mjGEOM_SPHERE): lambda size, _: np.full(3, size[0]),
    int(_GEOM.mjGEOM_CAPSULE): lambda size, axes: size[0] + size[1] * np.abs(axes[:, 2]),
    int(_GEOM.mjGEOM_ELLIPSOID): lambda size, axes: np.linalg.norm(axes * size, axis=1),
    int(_GEOM.mjGEOM_CYLINDER): lambda size, axes: (
        size[0] * np.linalg.norm(axes[:, :2], axis=1) + size[1] * np.abs(axes[:, 2])
    ),
    int(_GEOM.mjGEOM_BOX): lambda size, axes: np.abs(axes) @ size,
}
"""Of shapes that are symmetric: half their extent, from their size and axes."""

_SHAPES: dict[int, Callable[[Any, int, Array], Extent | None]] = {
    int(_GEOM.mjGEOM_PLANE): _plane,
    int(_GEOM.mjGEOM_HFIELD): _hfield,
    int(_GEOM.mjGEOM_MESH): _mesh,
    int(_GEOM.mjGEOM_SDF): _mesh,
}


_GROUND = (int(_GEOM.mjGEOM_PLANE), int(_GEOM.mjGEOM_HFIELD))


def _flex_vertices(model: Any, data: Any, flex: int) -> Array:
    """World positions in metres, shape (n, 3). ``mj_kinematics`` does not place them, so it is done on a copy."""
    placed = mujoco.MjData(model)
    placed.qpos, placed.mocap_pos, placed.mocap_quat = data.qpos, data.mocap_pos, data.mocap_quat
    mujoco.mj_kinematics(model, placed)
    mujoco.mj_comPos(model, placed)
    mujoco.mj_flex(model, placed)
    start, count = int(model.flex_vertadr[flex]), int(model.flex_vertnum[flex])
    return np.array(placed.flexvert_xpos[start : start + count])


def _skin_vertices(model: Any, data: Any, skin: int) -> Array:
    """World positions in metres, shape (n, 3): each vertex is the weighted mean of where its bones carry it.

    MuJoCo has made the weights of a vertex add up to one.
    """
    start, count = int(model.skin_vertadr[skin]), int(model.skin_vertnum[skin])
    rest, placed = model.skin_vert[start : start + count].astype(np.float64), np.zeros((count, 3))
    first = int(model.skin_boneadr[skin])
    for bone in range(first, first + int(model.skin_bonenum[skin])):
        begin, number = int(model.skin_bonevertadr[bone]), int(model.skin_bonevertnum[bone])
        carried = model.skin_bonevertid[begin : begin + number]
        weight = model.skin_bonevertweight[begin : begin + number].astype(np.float64)
        turn, shift = _bone_motion(model, data, bone)
        np.add.at(placed, carried, weight[:, None] * (rest[carried] @ turn.T + shift))
    return placed


def _bone_motion(model: Any, data: Any, bone: int) -> tuple[Array, Array]:
    """The rotation and the translation that take the skin from its rest pose to where this bone's body is."""
    body, bind = int(model.skin_bonebodyid[bone]), np.zeros(9)
    mujoco.mju_quat2Mat(bind, model.skin_bonebindquat[bone].astype(np.float64))
    turn = data.xmat[body].reshape(3, 3) @ bind.reshape(3, 3).T
    return turn, data.xpos[body] - turn @ model.skin_bonebindpos[bone].astype(np.float64)
