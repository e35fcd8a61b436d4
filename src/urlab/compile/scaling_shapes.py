"""Scaling shapes: what becomes of their sizes, and which of them survive a stretch."""

from typing import Any

import mujoco
import numpy as np

from urlab.compile.scaling_stretch import Array, Space, Stretch, spelled
from urlab.errors import EditError

_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)
_SPHERE = int(mujoco.mjtGeom.mjGEOM_SPHERE)
_CAPSULE = int(mujoco.mjtGeom.mjGEOM_CAPSULE)
_CYLINDER = int(mujoco.mjtGeom.mjGEOM_CYLINDER)
_SQUARE = (int(mujoco.mjtGeom.mjGEOM_BOX), int(mujoco.mjtGeom.mjGEOM_ELLIPSOID))
_OWN_MESH = (int(mujoco.mjtGeom.mjGEOM_MESH), int(mujoco.mjtGeom.mjGEOM_SDF))


def size_factors(element: Any, inside: Stretch) -> Array:
    """What the three sizes of a geom or site are multiplied by; ``inside`` is the stretch in its own frame.

    Round shapes that are stretched unevenly, which only sites may be, take the mean of the factors across. Sizes that
    the shape does not use stay.
    """
    x, y, z = inside.factors
    if int(element.type) == _SPHERE:
        return np.array([inside.mean, 1, 1])
    if int(element.type) in (_CAPSULE, _CYLINDER):
        return np.array([x if inside.is_uniform else np.sqrt(x * y), z, 1])
    return np.array([x, y, inside.mean if int(element.type) == _PLANE else z])  # a plane's third is its grid's spacing


def settle_fromto(element: Any, space: Space) -> None:
    """Before an uneven stretch, write a geom or site that goes from one point to another as pose and size.

    The sizes across may have to differ afterwards, which ``fromto`` cannot say.
    """
    if space.whole.is_uniform or np.isnan(element.fromto[0]):
        return
    begin, end = np.array(element.fromto[:3]), np.array(element.fromto[3:])
    half_length, quat_wxyz = np.linalg.norm(begin - end) / 2, np.zeros(4)
    mujoco.mju_quatZ2Vec(quat_wxyz, begin - end)
    element.pos, element.quat = (begin + end) / 2, quat_wxyz
    element.alt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
    across = element.size[0]
    if int(element.type) in _SQUARE:
        element.size = across, across, half_length
    else:
        element.size[1] = half_length
    element.fromto = np.full(6, np.nan)


def check_shape(geom: Any, inside: Stretch) -> None:
    """EditError when the geom would be of another kind after the stretch, which ``inside`` gives in its own frame."""
    if geom.plugin.active:
        raise EditError(f"geom {geom.name!r} is shaped by a plugin, whose parameters nobody but the plugin can scale")
    if not inside.is_uniform:
        _check_stretch(geom, inside)


def _check_stretch(geom: Any, inside: Stretch) -> None:
    kind = int(geom.type)
    called = f"geom {geom.name!r} ({mujoco.mjtGeom(kind).name.removeprefix('mjGEOM_').lower()})"
    one_factor = f"takes one factor for all axes, not {spelled(inside.factors)}"
    if geom.meshname and kind not in _OWN_MESH:
        raise EditError(f"{called}, which is fitted to mesh {geom.meshname!r}, {one_factor}")
    if kind in (_SPHERE, _CAPSULE) and not inside.agrees_along(0, 1, 2):
        hint = "; an ellipsoid can be stretched" if kind == _SPHERE else ""
        raise EditError(f"{called} {one_factor}{hint}")
    if not inside.is_aligned:
        raise EditError(
            f"{called} is turned against the axes of the scale; "
            "under different factors it may only be turned by multiples of 90 degrees"
        )
    if kind == _CYLINDER and not inside.agrees_along(0, 1):
        raise EditError(f"{called} takes one factor across its axis, not {spelled(inside.factors[:2])}")
