"""Scaling what is measured in coordinates: tendons, equalities, sensors, actuators, contact pairs and keyframes.

Which coordinates of a model are lengths, and which are angles, is known here (`Coordinates`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.compile.blueprint import MUJOCO_ERRORS, compile_spec
from urlab.compile.scaling.stretch import Array, Space, Stretch, grow
from urlab.errors import EditError
from urlab.mujoco_versions import CONTROL_INPUTS, PID_DYNAMICS, PID_GAIN, actuator_count, controls_of, present

_FREE, _SLIDE = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_SLIDE)
_WRAP_JOINT = int(mujoco.mjtWrap.mjWRAP_JOINT)
_TRN = mujoco.mjtTrn
_OF_JOINT = (int(_TRN.mjTRN_JOINT), int(_TRN.mjTRN_JOINTINPARENT))
_FIXED_GAIN = int(mujoco.mjtGain.mjGAIN_FIXED)
_AFFINE = int(mujoco.mjtBias.mjBIAS_AFFINE)

_EQ, _SENSOR = mujoco.mjtEq, mujoco.mjtSensor
_CONNECT, _WELD = int(_EQ.mjEQ_CONNECT), int(_EQ.mjEQ_WELD)
_JOINT, _TENDON = int(_EQ.mjEQ_JOINT), int(_EQ.mjEQ_TENDON)
_SITE = int(mujoco.mjtObj.mjOBJ_SITE)
_LENGTHY = present(mujoco.MjsKey, "qpos", "qvel", "act", "ctrl", "mpos", "plastic")


class Coordinates:
    """By what the coordinates of a spec are multiplied: ``factor`` for lengths, 1 for angles."""

    def __init__(self, spec: Any, factor: float) -> None:
        self.factor = factor
        self._joints = {joint.name: int(joint.type) for joint in spec.joints}
        self._tendons = {tendon.name: tendon for tendon in spec.tendons}

    def of_joint(self, name: str) -> float:
        """A slide joint's position is a length; a free joint has no single coordinate."""
        return self.factor if self._joints.get(name) == _SLIDE else 1.0

    def is_spatial(self, tendon: str) -> bool:
        """Whether the tendon has a path through space, rather than adding up joints."""
        return int(self._tendons[tendon].path[0].type) != _WRAP_JOINT

    def of_tendon(self, name: str) -> float:
        """A spatial tendon is as long as its path, a fixed one is what its joints add up to.

        EditError when it adds angles to lengths: its coefficients would have to change, and a spec cannot change them.
        """
        if self.is_spatial(name):
            return self.factor
        factors = {self.of_joint(wrap.target.name) for wrap in self._tendons[name].path}
        if len(factors) > 1:
            raise EditError(f"tendon {name!r} adds hinges to slide joints, so that it cannot be scaled")
        return factors.pop()

    def of_actuator(self, actuator: Any) -> float:
        """The length of its transmission, which is an angle when it only turns."""
        transmission = int(actuator.trntype)
        if transmission in _OF_JOINT and self._joints.get(actuator.target) != _FREE:
            return self.of_joint(actuator.target)
        if transmission in (*_OF_JOINT, int(_TRN.mjTRN_SITE)):
            return self.factor if np.any(actuator.gear[:3]) else 1.0
        if transmission == int(_TRN.mjTRN_TENDON):
            return self.of_tendon(actuator.target)
        return self.factor if transmission == int(_TRN.mjTRN_SLIDERCRANK) else 1.0

    def of_setpoint(self, actuator: Any) -> float:
        """What a servo is told is a coordinate of its transmission; what a motor is told is none."""
        return self.of_actuator(actuator) if _is_servo(actuator) else 1.0


def _is_servo(actuator: Any) -> bool:
    """Whether its force vanishes where the transmission's position, or velocity, is the control."""
    if int(actuator.gaintype) == PID_GAIN:
        return True
    if int(actuator.gaintype) != _FIXED_GAIN or int(actuator.biastype) != _AFFINE or actuator.gainprm[0] == 0:
        return False
    _, position, velocity = actuator.biasprm[:3] / -actuator.gainprm[0]
    return bool(position == 1 or (position == 0 and velocity == 1))


def scale_actuators(spec: Any, coordinates: Coordinates) -> None:
    """Scale ranges of lengths and setpoints; forces, gains and gears of one kind stay."""
    for actuator in spec.actuators:
        length, setpoint = coordinates.of_actuator(actuator), coordinates.of_setpoint(actuator)
        actuator.lengthrange *= length
        actuator.cranklength *= coordinates.factor
        grow(actuator, setpoint, "ctrlrange", "actrange", "velrange")
        if int(actuator.dyntype) == PID_DYNAMICS:
            actuator.dynprm[:2] *= setpoint  # the integral's bound and the setpoint's top speed
        if np.any(actuator.gear[:3]):
            actuator.gear[3:] *= coordinates.factor  # its coordinate is a length, to which it adds angles


def _sensor_kinds(*names: str) -> frozenset[int]:
    return frozenset(int(getattr(_SENSOR, f"mjSENS_{name}")) for name in names)


_IN_METRES = _sensor_kinds(
    "FRAMEPOS", "FRAMELINVEL", "FRAMELINACC", "SUBTREECOM", "SUBTREELINVEL", "GEOMDIST", "GEOMFROMTO", "RANGEFINDER",
    "ACCELEROMETER", "VELOCIMETER",
)  # fmt: skip
_SENSES_JOINT = _sensor_kinds("JOINTPOS", "JOINTVEL", "JOINTLIMITPOS", "JOINTLIMITVEL")
_SENSES_TENDON = _sensor_kinds("TENDONPOS", "TENDONVEL", "TENDONLIMITPOS", "TENDONLIMITVEL")
_SENSES_ACTUATOR = _sensor_kinds("ACTUATORPOS", "ACTUATORVEL")


def scale_tendons(spec: Any, coordinates: Coordinates) -> None:
    """Scale tendons by the unit of their coordinate. A fixed one is not drawn, so its width means nothing."""
    for tendon in spec.tendons:
        factor = coordinates.of_tendon(tendon.name)
        tendon.width *= coordinates.factor if coordinates.is_spatial(tendon.name) else 1.0
        grow(tendon, factor, "range", "margin", "springyield")
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
        grow(pair, factor, "margin", "gap")
        pair.friction[2:] *= factor
        pair.solimp[2] *= factor


def scale_sensors(spec: Any, coordinates: Coordinates) -> None:
    """Scale cutoff and noise of sensors that measure in metres; forces, torques and energies stay."""
    for sensor in spec.sensors:
        grow(sensor, _sensor_unit(sensor, spec, coordinates), "cutoff", "noise")


def _sensor_unit(sensor: Any, spec: Any, coordinates: Coordinates) -> float:
    kind = int(sensor.type)
    if kind in _SENSES_JOINT:
        return coordinates.of_joint(sensor.objname)
    if kind in _SENSES_TENDON:
        return coordinates.of_tendon(sensor.objname)
    if kind in _SENSES_ACTUATOR:
        return coordinates.of_actuator(spec.actuator(sensor.objname))
    return coordinates.factor if kind in _IN_METRES else 1.0


def scale_keyframes(spec: Any, whole: Stretch, coordinates: Coordinates) -> None:
    """Scale the lengths in every keyframe; call it first, because the layout comes from compiling ``spec``."""
    stated = [(key, name) for key in spec.keys for name in _LENGTHY if len(getattr(key, name))]
    if not stated:
        return
    try:
        model, _ = compile_spec(spec.copy())
    except MUJOCO_ERRORS as refused:
        raise EditError(f"a model that does not compile cannot be scaled: {refused}") from refused
    layout = _Layout(model, spec, whole, coordinates)
    for key, name in stated:
        numbers = np.array(list(getattr(key, name)))  # MuJoCo takes fewer than there are coordinates
        setattr(key, name, numbers * getattr(layout, name)()[: len(numbers)])


@dataclass(frozen=True)
class _Layout:
    """What each number of a keyframe is multiplied by; one method per field of a key."""

    model: Any
    spec: Any
    whole: Stretch
    coordinates: Coordinates

    def qpos(self) -> Array:
        return self._of_joints(self.model.nq, self.model.jnt_qposadr)

    def qvel(self) -> Array:
        return self._of_joints(self.model.nv, self.model.jnt_dofadr)

    def mpos(self) -> Array:
        """Mocap bodies are children of the world, so their places are along its axes."""
        return np.tile(self.whole.factors, self.model.nmocap)

    def act(self) -> Array:
        """An activation has the unit of the setpoint that it filters or integrates."""
        factors = np.ones(self.model.na)
        for index, actuator in self._actuators():
            start = int(self.model.actuator_actadr[index])
            factors[start : start + int(self.model.actuator_actnum[index])] = self.coordinates.of_setpoint(actuator)
        return factors

    def ctrl(self) -> Array:
        factors = np.ones(self.model.nu)
        for index, actuator in self._actuators():
            (start, count), setpoint = controls_of(self.model, index), self.coordinates.of_setpoint(actuator)
            if int(actuator.gaintype) == PID_GAIN:
                given = [bit for bit in CONTROL_INPUTS if int(self.model.actuator_ctrlspec[index]) & bit]
                factors[start : start + len(given)] = [1.0 if bit == CONTROL_INPUTS[-1] else setpoint for bit in given]
            else:
                factors[start : start + count] = setpoint
        return factors

    def plastic(self) -> Array:
        """Where yielding springs have come to rest: one number per slide joint or hinge, two per tendon."""
        factors, model = np.ones(self.model.nplastic), self.model
        for joint, start in _with_address(model.jnt_plasticadr):
            factors[start] = self.coordinates.of_joint(model.joint(joint).name)
        for tendon, start in _with_address(model.tendon_plasticadr):
            factors[start : start + 2] = self.coordinates.of_tendon(model.tendon(tendon).name)
        return factors

    def _of_joints(self, size: int, addresses: NDArray[np.int32]) -> Array:
        """A free joint begins with a place along the world's axes."""
        factors = np.ones(size)
        for joint, start in _with_address(addresses):
            if int(self.model.jnt_type[joint]) == _FREE:
                factors[start : start + 3] = self.whole.factors
            else:
                factors[start] = self.coordinates.of_joint(self.model.joint(joint).name)
        return factors

    def _actuators(self) -> list[tuple[int, Any]]:
        names = [self.model.actuator(index).name for index in range(actuator_count(self.model))]
        return [(index, self.spec.actuator(name)) for index, name in enumerate(names)]


def _with_address(addresses: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Ids and addresses of those that have one."""
    return [(index, int(start)) for index, start in enumerate(addresses) if start >= 0]
