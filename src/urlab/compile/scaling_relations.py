"""Scaling what relates parts of a model to each other: tendons, equalities, contact pairs and sensors."""

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from urlab.compile.scaling_coordinates import Coordinates
from urlab.compile.scaling_stretch import Space

_EQ, _SENSOR = mujoco.mjtEq, mujoco.mjtSensor
_CONNECT, _WELD = int(_EQ.mjEQ_CONNECT), int(_EQ.mjEQ_WELD)
_JOINT, _TENDON = int(_EQ.mjEQ_JOINT), int(_EQ.mjEQ_TENDON)
_SITE = int(mujoco.mjtObj.mjOBJ_SITE)


def _kinds(*names: str) -> frozenset[int]:
    return frozenset(int(getattr(_SENSOR, f"mjSENS_{name}")) for name in names)


_IN_METRES = _kinds(
    "FRAMEPOS", "FRAMELINVEL", "FRAMELINACC", "SUBTREECOM", "SUBTREELINVEL", "GEOMDIST", "GEOMFROMTO", "RANGEFINDER",
    "ACCELEROMETER", "VELOCIMETER",
)  # fmt: skip
_OF_JOINT = _kinds("JOINTPOS", "JOINTVEL", "JOINTLIMITPOS", "JOINTLIMITVEL")
_OF_TENDON = _kinds("TENDONPOS", "TENDONVEL", "TENDONLIMITPOS", "TENDONLIMITVEL")
_OF_ACTUATOR = _kinds("ACTUATORPOS", "ACTUATORVEL")


def scale_tendons(spec: Any, coordinates: Coordinates) -> None:
    """Scale tendons by the unit of their coordinate. A fixed one is not drawn, so its width means nothing."""
    for tendon in spec.tendons:
        factor = coordinates.of_tendon(tendon.name)
        tendon.width *= coordinates.factor if coordinates.is_spatial(tendon.name) else 1.0
        tendon.range *= factor
        tendon.margin *= factor
        tendon.springyield *= factor
        tendon.springlength = np.where(tendon.springlength < 0, tendon.springlength, tendon.springlength * factor)
        tendon.solimp_limit[2] *= factor
        tendon.solimp_friction[2] *= factor


def scale_equalities(spec: Any, space: Space, coordinates: Coordinates) -> None:
    """Scale anchors, poses and polynomials."""
    for equality in spec.equalities:
        kind = int(equality.type)
        if kind in (_JOINT, _TENDON):
            _couple(equality, coordinates.of_joint if kind == _JOINT else coordinates.of_tendon)
            continue
        equality.solimp[2] *= space.whole.mean
        if kind in (_CONNECT, _WELD):
            _fasten(spec, equality, space)


def _fasten(spec: Any, equality: Any, space: Space) -> None:
    """Scale a connect or weld. Between sites it has no places of its own, only a torque's arm."""
    is_weld, data = int(equality.type) == _WELD, equality.data
    if is_weld:
        data[10] *= space.whole.mean
    if int(equality.objtype) == _SITE:
        return
    in_first, in_second = (space.inside(spec.body(name or "world")) for name in (equality.name1, equality.name2))
    if is_weld:
        data[:3], data[3:6] = in_second.point(data[:3]), in_first.point(data[3:6])
    else:
        data[:3] = in_first.point(data[:3])


def _couple(equality: Any, unit_of: Callable[[str], float]) -> None:
    """Scale a polynomial by the unit of what it yields, and of what it is evaluated at."""
    result = unit_of(equality.name1)
    argument = unit_of(equality.name2) if equality.name2 else 1.0
    equality.solimp[2] *= result
    equality.data[:5] *= result / argument ** np.arange(5)


def scale_pairs(spec: Any, factor: float) -> None:
    """Scale the lengths of contact pairs; those that are not stated are NaN and follow the geoms."""
    for pair in spec.pairs:
        pair.margin *= factor
        pair.gap *= factor
        pair.friction[2:] *= factor
        pair.solimp[2] *= factor


def scale_sensors(spec: Any, coordinates: Coordinates) -> None:
    """Scale cutoff and noise of sensors that measure in metres; forces, torques and energies stay."""
    for sensor in spec.sensors:
        factor = _unit_of(sensor, spec, coordinates)
        sensor.cutoff *= factor
        sensor.noise *= factor


def _unit_of(sensor: Any, spec: Any, coordinates: Coordinates) -> float:
    kind = int(sensor.type)
    if kind in _OF_JOINT:
        return coordinates.of_joint(sensor.objname)
    if kind in _OF_TENDON:
        return coordinates.of_tendon(sensor.objname)
    if kind in _OF_ACTUATOR:
        return coordinates.of_actuator(spec.actuator(sensor.objname))
    return coordinates.factor if kind in _IN_METRES else 1.0
