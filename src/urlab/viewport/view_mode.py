"""The ways in which a viewport shows the world, and the model as physics sees it, which one of them shows."""

import copy
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.errors import InvalidMode, known

_SHOWN_GROUP, _HIDDEN_GROUP = 0, 5
_UNSET_RGBA = np.array([0.5, 0.5, 0.5, 1.0], dtype=np.float32)
_RGB_OF_INVISIBLE = (1.0, 0.55, 0.1)


class ViewMode(StrEnum):
    """The word of a mode on the wire."""

    LIT = "lit"
    UNLIT = "unlit"
    WIREFRAME = "wireframe"
    COLLISION = "collision"
    REFLECTIONS = "reflections"

    @classmethod
    def of(cls, word: str) -> "ViewMode":
        """The mode of a word, in any case; InvalidMode lists the words."""
        try:
            return cls(word.lower())
        except ValueError:
            raise InvalidMode(f"mode must be one of {known(map(str, cls))}, not {word!r}") from None


@dataclass(frozen=True, slots=True)
class ViewStyle:
    """What a mode means for a renderer.

    ``flat`` is the plain colours of the materials, ``shapes`` only what collides, in the shape in which it does, and
    with ``plain`` there is nothing behind the model, whatever sky it brings.
    Mirrors and shadows cost a software renderer several times the picture, so only one mode has them.
    """

    flat: bool = False
    wires: bool = False
    shapes: bool = False
    mirrors: bool = False
    plain: bool = False


STYLES = {
    ViewMode.LIT: ViewStyle(),
    ViewMode.UNLIT: ViewStyle(flat=True),
    ViewMode.WIREFRAME: ViewStyle(flat=True, wires=True),
    ViewMode.COLLISION: ViewStyle(shapes=True),
    ViewMode.REFLECTIONS: ViewStyle(mirrors=True),
}


def collision_model(model: Any) -> Any:
    """A copy of a model whose colliding geoms and flexes are opaque, and of the one group that is shown."""
    shapes = copy.copy(model)
    shapes.geom_group[:] = _groups(_colliding_geoms(model))
    shapes.flex_group[:] = _groups((model.flex_contype | model.flex_conaffinity) != 0)
    rgba = _colors(model)
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
        groups[_SHOWN_GROUP] = 1
    option.sitegroup[:] = 0
    flag = mujoco.mjtVisFlag
    option.flags[flag.mjVIS_CONVEXHULL] = 1
    for hidden in (flag.mjVIS_TENDON, flag.mjVIS_SKIN, flag.mjVIS_RANGEFINDER):
        option.flags[hidden] = 0
    return option


def _colliding_geoms(model: Any) -> NDArray[np.bool_]:
    """Whether each geom can touch anything, by its masks or by an explicit pair, (ngeom,)."""
    collides: NDArray[np.bool_] = (model.geom_contype | model.geom_conaffinity) != 0
    for pair in (model.pair_geom1, model.pair_geom2):
        collides[pair] = True
    return collides


def _groups(shown: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.where(shown, _SHOWN_GROUP, _HIDDEN_GROUP)


def _colors(model: Any) -> NDArray[np.float32]:
    """The colour of each geom: its own or, where it states none, that of its material, (ngeom, 4)."""
    rgba: NDArray[np.float32] = model.geom_rgba.copy()
    by_material = (model.geom_matid >= 0) & (rgba == _UNSET_RGBA).all(axis=1)
    rgba[by_material] = model.mat_rgba[model.geom_matid[by_material]]
    return rgba
