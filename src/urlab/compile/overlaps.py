"""What is likely to be a mistake in how actors stand at the start: one inside another, two floors at one height."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import mujoco
import numpy as np

from urlab.compile.bind import owner_of
from urlab.compile.blueprint import MUJOCO_ERRORS
from urlab.compile.compiled_scene import CompiledArticulation

_DEEP_M = 0.001
_MOST = 8
"""So many pairs are named."""

_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)
_OBJ = mujoco.mjtObj


def start_notes(model: Any, articulations: Sequence[CompiledArticulation], actor_names: Iterable[str]) -> list[str]:
    """Pairs of actors that begin more than a millimetre inside each other, and floors that lie on floors."""
    names = frozenset(actor_names)
    if len(names) < 2:
        return []
    data = mujoco.MjData(model)
    for one in articulations:
        if one.start_key is not None:
            for joint in one.joints:
                data.qpos[joint.qpos] = model.key_qpos[one.start_key, joint.qpos]
    try:
        mujoco.mj_fwdPosition(model, data)
    except MUJOCO_ERRORS:
        return []  # too small a memory, for one: the first step says so
    return [*_penetrations(model, data, names), *_doubled_floors(model, data, names)]


def _penetrations(model: Any, data: Any, actor_names: frozenset[str]) -> list[str]:
    """The deepest contact of each pair of actors, the deepest pair first."""
    deepest: dict[tuple[str, str], tuple[float, str]] = {}
    for index in np.flatnonzero(data.contact.dist[: data.ncon] < -_DEEP_M).tolist():
        sides = [_side(model, data.contact, index, side) for side in (0, 1)]
        owners = sorted(owner_of(geom, actor_names) or "" for geom, _ in sides)
        pair, depth = (owners[0], owners[1]), -float(data.contact.dist[index])
        if "" not in pair and pair[0] != pair[1] and depth > deepest.get(pair, (0.0, ""))[0]:
            deepest[pair] = depth, " and ".join(sorted(place for _, place in sides))
    found = sorted(((depth, pair, where) for pair, (depth, where) in deepest.items()), reverse=True)
    notes = [
        f"{first!r} and {second!r} stand in each other at the start: {where} overlap by {1000 * depth:.3g} mm"
        for depth, (first, second), where in found[:_MOST]
    ]
    more = [f"{len(found) - _MOST} more pairs of actors stand in each other at the start"]
    return [*notes, *(more if len(found) > _MOST else [])]


def _side(model: Any, contact: Any, index: int, side: int) -> tuple[str, str]:
    """The compiled name of what touches on one side, and what to call it: its body, or geom where that is the world."""
    geom = int(contact.geom[index, side])
    if geom < 0:
        flex = mujoco.mj_id2name(model, _OBJ.mjOBJ_FLEX, int(contact.flex[index, side])) or ""
        return flex, flex
    name, body = model.geom(geom).name, int(model.geom_bodyid[geom])
    return name, model.body(body).name if body else name


def _doubled_floors(model: Any, data: Any, actor_names: frozenset[str]) -> list[str]:
    """Planes of several actors that face up at one height: what stands there has every contact several times."""
    planes = np.flatnonzero((model.geom_type == _PLANE) & ((model.geom_contype | model.geom_conaffinity) != 0))
    by_height: defaultdict[float, set[str]] = defaultdict(set)
    for geom in planes.tolist():
        if data.geom_xmat[geom, 8] > 1 - _DEEP_M:
            by_height[round(float(data.geom_xpos[geom, 2]), 3)].add(owner_of(model.geom(geom).name, actor_names) or "")
    return [
        f"{', '.join(sorted(owners))} each bring a floor at height {height:g} m: what stands there has its contacts "
        f"{len(owners)} times; take the floor out of all models but one"
        for height, owners in by_height.items()
        if len(owners - {""}) > 1
    ]
