"""Compiler settings that decide what a body weighs and how a free one is aligned.

MuJoCo honours them per attached model, but can write a scene to XML only when all its models agree. Where they do
not, every inertia is stated in numbers, which leaves nothing for the settings to decide.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

from urlab.compile.blueprint import MUJOCO_ERRORS, Blueprint

_SETTINGS = ("boundmass", "boundinertia", "balanceinertia", "inertiafromgeom", "alignfree")


def agree_on_inertia(root: Any, blueprints: Sequence[Blueprint]) -> list[Blueprint]:
    """The blueprints, made to agree with the root on those settings."""
    distinct = {id(one): one for one in blueprints}
    wanted = {_settings(one.spec) for one in distinct.values()}
    if len(wanted) == 1:
        _copy_settings(blueprints[0].spec, root)
    elif wanted:
        distinct = {key: _agreeing(one, root) for key, one in distinct.items()}
    return [distinct[id(one)] for one in blueprints]


def _agreeing(blueprint: Blueprint, root: Any) -> Blueprint:
    if _settings(blueprint.spec) == _settings(root):
        return blueprint
    try:
        return replace(blueprint, spec=_stated(blueprint.spec, root))
    except MUJOCO_ERRORS:
        return blueprint  # it does not compile alone, so neither will the scene, which is where that is reported


def _settings(spec: Any) -> tuple[float, ...]:
    return (*(float(getattr(spec.compiler, name)) for name in _SETTINGS), *map(float, spec.compiler.inertiagrouprange))


def _copy_settings(source: Any, target: Any) -> None:
    for name in _SETTINGS:
        setattr(target.compiler, name, getattr(source.compiler, name))
    target.compiler.inertiagrouprange[:] = source.compiler.inertiagrouprange


def _stated(spec: Any, root: Any) -> Any:
    """A copy of ``spec`` with every inertia in numbers and every free joint's alignment said."""
    aligned = mujoco.mjtAlignFree.mjALIGNFREE_TRUE if spec.compiler.alignfree else mujoco.mjtAlignFree.mjALIGNFREE_FALSE
    model, copy = _unaligned(spec), spec.copy()
    for body in copy.bodies[1:]:
        _state_inertia(body, model.body(body.name))
    for joint in copy.joints:
        if joint.align == mujoco.mjtAlignFree.mjALIGNFREE_AUTO:
            joint.align = aligned
    _copy_settings(root, copy)
    return copy


def _unaligned(spec: Any) -> Any:
    """Compiled with body frames where the author put them."""
    copy = spec.copy()
    for joint in copy.joints:
        joint.align = mujoco.mjtAlignFree.mjALIGNFREE_FALSE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return copy.compile()


def _state_inertia(body: Any, compiled: Any) -> None:
    body.explicitinertial = True
    body.mass = float(compiled.mass[0])
    body.ipos, body.iquat, body.inertia = compiled.ipos, compiled.iquat, compiled.inertia
    body.fullinertia = np.full(6, np.nan)
    body.ialt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
