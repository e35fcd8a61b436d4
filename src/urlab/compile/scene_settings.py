"""What a scene has only once: options, visuals, statistics, sizes, and the compiler settings that decide inertia.

MuJoCo honours the inertia settings per attached model, but can write a scene to XML only when all its models agree.
Where they do not, every inertia is stated in numbers, which leaves nothing for the settings to decide.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

from urlab.compile.blueprint import MUJOCO_ERRORS, Blueprint
from urlab.physics.engine import mujoco_warnings

_BUFFERS = ("memory", "nemax", "njmax", "nconmax", "nstack")
_USER_WIDTHS = {
    "nuser_body": "bodies", "nuser_jnt": "joints", "nuser_geom": "geoms", "nuser_site": "sites",
    "nuser_cam": "cameras", "nuser_tendon": "tendons", "nuser_actuator": "actuators", "nuser_sensor": "sensors",
}  # fmt: skip

_INERTIA_SETTINGS = ("boundmass", "boundinertia", "balanceinertia", "inertiafromgeom", "alignfree")


def take_globals(root: Any, leader: Any, specs: Sequence[Any]) -> None:
    """Give the root spec the leader's settings, and room for what every one of ``specs`` (one per actor) asks for."""
    root.option, root.visual, root.stat = leader.option, leader.visual, leader.stat
    root.compiler.fitaabb = leader.compiler.fitaabb
    root.compiler.LRopt = leader.compiler.LRopt
    if len(specs) == 1:
        root.compiler.settotalmass = leader.compiler.settotalmass
    distinct = list({id(spec): spec for spec in specs}.values())
    for size in _BUFFERS:
        stated = [number for spec in specs if (number := getattr(spec, size)) > 0]
        if stated:
            setattr(root, size, sum(stated))
    root.nuserdata = max(spec.nuserdata for spec in distinct)
    for size, plural in _USER_WIDTHS.items():
        setattr(root, size, max(_user_width(spec, size, plural) for spec in distinct))


def share_globals(child: Any, root: Any) -> None:
    """Let a model that is about to be attached agree with the root, so that MuJoCo sees no conflict."""
    child.option, child.visual, child.stat = root.option, root.visual, root.stat
    for size in (*_BUFFERS, *_USER_WIDTHS, "nuserdata"):
        setattr(child, size, getattr(root, size))


def _user_width(spec: Any, size: str, plural: str) -> int:
    """What the author states, or as many numbers as any element carries."""
    stated = int(getattr(spec, size))
    return stated if stated >= 0 else max((len(element.userdata) for element in getattr(spec, plural)), default=0)


def agree_on_inertia(root: Any, blueprints: Sequence[Blueprint]) -> list[Blueprint]:
    """The blueprints, made to agree with the root on those settings."""
    distinct = {id(one): one for one in blueprints}
    wanted = {_inertia_settings(one.spec) for one in distinct.values()}
    if len(wanted) == 1:
        _copy_inertia_settings(blueprints[0].spec, root)
    elif wanted:
        distinct = {key: _agreeing(one, root) for key, one in distinct.items()}
    return [distinct[id(one)] for one in blueprints]


def _agreeing(blueprint: Blueprint, root: Any) -> Blueprint:
    if _inertia_settings(blueprint.spec) == _inertia_settings(root):
        return blueprint
    try:
        return replace(blueprint, spec=_stated(blueprint.spec, root))
    except MUJOCO_ERRORS:
        return blueprint  # it does not compile alone, so neither will the scene, which is where that is reported


def _inertia_settings(spec: Any) -> tuple[float, ...]:
    return (
        *(float(getattr(spec.compiler, name)) for name in _INERTIA_SETTINGS),
        *map(float, spec.compiler.inertiagrouprange),
    )


def _copy_inertia_settings(source: Any, target: Any) -> None:
    for name in _INERTIA_SETTINGS:
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
    _copy_inertia_settings(root, copy)
    return copy


def _unaligned(spec: Any) -> Any:
    """Compiled with body frames where the author put them."""
    copy = spec.copy()
    for joint in copy.joints:
        joint.align = mujoco.mjtAlignFree.mjALIGNFREE_FALSE
    with mujoco_warnings():
        return copy.compile()


def _state_inertia(body: Any, compiled: Any) -> None:
    body.explicitinertial = True
    body.mass = float(compiled.mass[0])
    body.ipos, body.iquat, body.inertia = compiled.ipos, compiled.iquat, compiled.inertia
    body.fullinertia = np.full(6, np.nan)
    body.ialt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
