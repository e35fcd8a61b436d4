"""A model as physics sees it: what collides, all of it visible; the rest out of sight."""

import copy
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

SHOWN_GROUP, HIDDEN_GROUP = 0, 5
_UNSET_RGBA = np.array([0.5, 0.5, 0.5, 1.0], dtype=np.float32)
_RGB_OF_INVISIBLE = (1.0, 0.55, 0.1)


def collision_shapes(model: Any) -> Any:
    """A copy of a model whose colliding geoms and flexes are opaque, and of the one group that is shown."""
    shapes = copy.copy(model)
    shapes.geom_group[:] = _groups(colliding_geoms(model))
    shapes.flex_group[:] = _groups((model.flex_contype | model.flex_conaffinity) != 0)
    rgba = _colours(model)
    invisible = rgba[:, 3] == 0
    rgba[invisible, :3] = _RGB_OF_INVISIBLE
    rgba[:, 3] = 1.0
    shapes.geom_rgba[:] = rgba
    shapes.geom_matid[invisible] = -1
    return shapes


def collision_option() -> Any:
    """What to show of that copy: meshes as their convex hulls, no sites, tendons or skins."""
    option = mujoco.MjvOption()
    for groups in (option.geomgroup, option.flexgroup):
        groups[:] = 0
        groups[SHOWN_GROUP] = 1
    option.sitegroup[:] = 0
    flag = mujoco.mjtVisFlag
    option.flags[flag.mjVIS_CONVEXHULL] = 1
    for hidden in (flag.mjVIS_TENDON, flag.mjVIS_SKIN, flag.mjVIS_RANGEFINDER):
        option.flags[hidden] = 0
    return option


def colliding_geoms(model: Any) -> NDArray[np.bool_]:
    """Whether each geom can touch anything, by its masks or by an explicit pair, (ngeom,)."""
    collides: NDArray[np.bool_] = (model.geom_contype | model.geom_conaffinity) != 0
    for pair in (model.pair_geom1, model.pair_geom2):
        collides[pair] = True
    return collides


def _groups(shown: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.where(shown, SHOWN_GROUP, HIDDEN_GROUP)


def _colours(model: Any) -> NDArray[np.float32]:
    """The colour of each geom: its own or, where it states none, that of its material, (ngeom, 4)."""
    rgba: NDArray[np.float32] = model.geom_rgba.copy()
    by_material = (model.geom_matid >= 0) & (rgba == _UNSET_RGBA).all(axis=1)
    rgba[by_material] = model.mat_rgba[model.geom_matid[by_material]]
    return rgba
