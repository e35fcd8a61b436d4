"""What a view frames: the box around what matters of a scene or an actor, where it is now."""

from collections.abc import Iterable, Sequence
from typing import Any

import mujoco
import numpy as np

from urlab.compile.bind import owner_of
from urlab.compile.bounds import Aabb, ShapeBox, world_shapes
from urlab.viewport.posed_model import PosedModel

_NEAR_SHARE = 0.5
"""Of the size of what moves: so far beside it, things that stand are framed with it."""

_FAR_SHARE = 20.0
"""Of the model's extent: what is farther from its middle has fallen off the world."""

_PLANE_HALF_M = 2.0
"""How much of a plane without end is framed."""


def box_of_scene(model: Any, data: Any) -> Aabb | None:
    """Around what can move, with what stands close to it; around all that stands where nothing moves.

    Floors and terrain count only where there is nothing else, and walls around a robot do not count. None when nothing
    has a finite size. ``data`` has the positions.
    """
    center, reach = np.array(model.stat.center), _FAR_SHARE * max(float(model.stat.extent), 1e-3)
    near = [one for one in world_shapes(model, data) if np.linalg.norm((one.lower + one.upper) / 2 - center) < reach]
    return _framed(model, near)


def box_of_actor(posed: PosedModel, data: Any, actor: str) -> Aabb | None:
    """The same for one actor, wherever it is. Of a plane without end, the part around its middle."""
    model, bodies = posed.model, posed.actors.get(actor, frozenset())
    shapes = list(world_shapes(model, data))
    box = _framed(model, [one for one in shapes if one.body in bodies])
    if box is not None:
        return box
    fixed = _world_geoms(posed, actor)
    return _framed(model, [one for one in shapes if one.geom in fixed]) or _plane_part(model, data, bodies, fixed)


def _framed(model: Any, shapes: Sequence[ShapeBox]) -> Aabb | None:
    solid = [one for one in shapes if not one.is_ground]
    moving = [one for one in solid if _moves(model, one.body)]
    if not moving:
        return _around(solid or shapes)
    box = _around(moving)
    assert box is not None
    margin = _NEAR_SHARE * 2 * float(np.linalg.norm(box.half_size))
    lower, upper = np.array(box.lower) - margin, np.array(box.upper) + margin
    beside = [one for one in solid if (one.lower >= lower).all() and (one.upper <= upper).all()]
    return _around([*moving, *beside])


def _moves(model: Any, body: int) -> bool:
    root = int(model.body_weldid[body])
    return root != 0 or int(model.body_mocapid[model.body_rootid[body]]) >= 0


def _around(shapes: Iterable[ShapeBox]) -> Aabb | None:
    finite = [one for one in shapes if np.isfinite(one.lower).all() and np.isfinite(one.upper).all()]
    if not finite:
        return None
    lower, upper = np.min([one.lower for one in finite], axis=0), np.max([one.upper for one in finite], axis=0)
    return Aabb(tuple(lower.tolist()), tuple(upper.tolist()))


def _world_geoms(posed: PosedModel, actor: str) -> frozenset[int]:
    """The geoms that an actor's file fixes to the world: they have no body of their own, but its name."""
    model, names = posed.model, frozenset(posed.actors)
    fixed = np.flatnonzero(model.geom_bodyid == 0).tolist()
    return frozenset(geom for geom in fixed if owner_of(model.geom(geom).name, names) == actor)


def _plane_part(model: Any, data: Any, bodies: frozenset[int], fixed: frozenset[int]) -> Aabb | None:
    planes = np.flatnonzero(model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE)).tolist()
    for geom in planes:
        if geom in fixed or int(model.geom_bodyid[geom]) in bodies:
            axes = np.abs(data.geom_xmat[geom].reshape(3, 3)[:, :2])
            half = _PLANE_HALF_M * axes.sum(axis=1)
            middle = data.geom_xpos[geom]
            return Aabb(tuple((middle - half).tolist()), tuple((middle + half).tolist()))
    return None
