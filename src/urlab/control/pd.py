"""Joint-space PD: setpoints are joint targets, ``data.ctrl`` is torque (force, for slides)."""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import mujoco
import numpy as np
from numpy import maximum, minimum

from urlab.compile.compiled_scene import ActuatorSlot, CompiledArticulation, ControlSlot
from urlab.control.controller import BatchLaw, Controller, Float64Array, index_of
from urlab.control.pd_law import UNLIMITED, BatchPD, BoundJoints, pd_torque
from urlab.errors import BadValue, ControllerSchemaViolation, did_you_mean, known
from urlab.physics.batch import SimulationBatch
from urlab_wire.codec import DecodeError, decode

DEFAULTS: Mapping[str, float] = {"kp": 100.0, "kv": 5.0, "torque_limit": 200.0}
MAX_GAIN = float(np.finfo(np.float32).max)
"""The schema promises float32; holding values to it also keeps the law's float64 products finite."""

SCHEMA: Mapping[str, Mapping[str, Any]] = {
    **{gain: {"type": "per_joint", "dtype": "float32", "min": 0.0} for gain in DEFAULTS},
    **{f"default_{gain}": {"type": "scalar", "dtype": "float32", "min": 0.0} for gain in DEFAULTS},
}


@dataclass(frozen=True, slots=True)
class PDGains:
    """``by_joint[gain][i]`` belongs to ``joints[i]``, in SI units: of torque for hinges, of force for slides.

    ``position`` finds a joint by its short name, or by that of an actuator which drives it.
    """

    joints: tuple[str, ...]
    position: Mapping[str, int]
    defaults: Mapping[str, float]
    by_joint: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, actuators: tuple[ActuatorSlot, ...]) -> Self:
        """Default gains for the joints of these actuators, in actuator order."""
        driven = [(actuator.short, actuator.joint.short) for actuator in actuators if actuator.joint is not None]
        joints = tuple(dict.fromkeys(joint for _, joint in driven))
        own = {joint: i for i, joint in enumerate(joints)}
        aliases = {actuator: own[joint] for actuator, joint in driven}
        by_joint = {gain: (value,) * len(joints) for gain, value in DEFAULTS.items()}
        return cls(joints, aliases | own, dict(DEFAULTS), by_joint)

    def params(self) -> dict[str, Any]:
        """As the wire shows them: three maps keyed by joint, and the three defaults."""
        maps = {gain: dict(zip(self.joints, values, strict=True)) for gain, values in self.by_joint.items()}
        return {**maps, **{f"default_{gain}": value for gain, value in self.defaults.items()}}

    def patched(self, patch: Mapping[str, Any]) -> Self:
        """These gains with ``patch`` on top. A new default goes to every joint that the patch does not name."""
        if not isinstance(patch, Mapping):
            raise ControllerSchemaViolation(f"params is {reprlib.repr(patch)}, expected a map; fields: {known(SCHEMA)}")
        for field in patch:
            if field not in SCHEMA:
                hint = did_you_mean(str(field), SCHEMA)
                raise ControllerSchemaViolation(f"unknown param {field!r}{hint}; the params are {known(SCHEMA)}")
        defaults = {gain: self._default(gain, patch) for gain in DEFAULTS}
        by_joint = {gain: self._values(gain, patch) for gain in DEFAULTS}
        return replace(self, defaults=defaults, by_joint=by_joint)

    def _default(self, gain: str, patch: Mapping[str, Any]) -> float:
        value = patch.get(f"default_{gain}")
        return self.defaults[gain] if value is None else _amount(f"default_{gain}", value)

    def _values(self, gain: str, patch: Mapping[str, Any]) -> tuple[float, ...]:
        values = list(self.by_joint[gain])
        if patch.get(f"default_{gain}") is not None:
            values = [self._default(gain, patch)] * len(values)
        for joint, value in self._named(gain, patch.get(gain)).items():
            values[joint] = value
        return tuple(values)

    def _named(self, gain: str, entries: Any) -> dict[int, float]:
        """Joint position -> value, of one map of the patch."""
        if entries is None:
            return {}
        if not isinstance(entries, Mapping):
            raise ControllerSchemaViolation(
                f"{gain} is {reprlib.repr(entries)}, expected a map by joint; joints: {known(self.joints)}"
            )
        named: dict[int, float] = {}
        for name, value in entries.items():
            joint = self._find(gain, name)
            if joint in named:
                raise ControllerSchemaViolation(f"{gain} names joint {self.joints[joint]!r} twice, once as {name!r}")
            named[joint] = _amount(f"{gain}[{name!r}]", value)
        return named

    def _find(self, gain: str, name: Any) -> int:
        joint = self.position.get(name) if isinstance(name, str) else None
        if joint is None:
            hint = did_you_mean(str(name), self.position)
            raise ControllerSchemaViolation(
                f"{gain}: no joint {name!r} under this controller{hint}; joints: {known(self.joints)}"
            )
        return joint


def _amount(field: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_GAIN:
        raise ControllerSchemaViolation(f"{field} is {reprlib.repr(value)}, expected a number from 0 to {MAX_GAIN:.3g}")
    return float(value)


def gains_patch(payload: bytes) -> dict[str, dict[str, Any]]:
    """Turn ``{joint: {"kp": .., "kv": .., "torque_limit": ..}}`` (UTF-8 JSON) into ``{"kp": {joint: ..}, ...}``.

    Joints and values are the controller's to judge; a payload of another shape raises `BadValue`.
    """
    patch: dict[str, dict[str, Any]] = {}
    for joint, gains in _decoded(payload).items():
        if not isinstance(gains, dict):
            raise BadValue(f"set_gains[{joint!r}] is {gains!r}, expected an object with {known(DEFAULTS)}")
        for gain, value in gains.items():
            if gain not in DEFAULTS:
                raise BadValue(f"set_gains[{joint!r}] has no {gain!r}; the gains are {known(DEFAULTS)}")
            patch.setdefault(gain, {})[joint] = value
    return patch


def _decoded(payload: bytes) -> dict[str, Any]:
    try:
        return decode(payload)
    except DecodeError as error:
        raise BadValue(f"set_gains takes a JSON object of joints: {error}") from error


_SCALAR_JOINTS = frozenset({int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)})


class PDController(Controller, kind="pd"):
    """``tau = kp * (target - q) - kv * qd`` within ±torque_limit, the target within the joint's range.

    It binds actuators that drive a hinge or slide joint; they should be motors with gear 1, since MuJoCo applies
    gear and ctrlrange to ``data.ctrl`` as always. Every other actuator (a tendon's, a gripper's adhesion) gets its
    setpoint as it is: URLab itself writes nothing there, which leaves such an actuator beyond a client's reach.
    Two actuators on one joint share its gains and each apply the law. Computed in float64.
    """

    def __init__(self, articulation: CompiledArticulation, params: Mapping[str, Any]) -> None:
        controls = articulation.controls
        bound = tuple(one.actuator for one in controls if _is_bound(one))
        joints = [actuator.joint for actuator in bound if actuator.joint is not None]
        self._all_ctrl = index_of([one.id for one in controls])
        self._ctrl = index_of([one.id for one in controls if _is_bound(one)])
        self._setpoint = index_of([i for i, one in enumerate(controls) if _is_bound(one)])
        self._qpos = index_of([joint.qpos.start for joint in joints])
        self._qvel = index_of([joint.qvel.start for joint in joints])
        self._joint_ids = [joint.id for joint in joints]
        self._joint_names = tuple(joint.name for joint in joints)
        self._width, self._binds_all = len(controls), len(bound) == len(controls)
        self._data: Any = None
        self._clipped = b""
        self._target, self._tau, self._damping = (np.zeros(len(bound)) for _ in range(3))
        gains = PDGains.of(bound)
        self._joint_of_actuator = [gains.position[joint.short] for joint in joints]
        self._use(gains.patched(params))

    def params(self) -> dict[str, Any]:
        """``kp``, ``kv``, ``torque_limit`` by joint short name, and ``default_kp`` and so on."""
        return self._gains.params()

    def schema(self) -> dict[str, Any]:
        """In the protocol's words, which call the numbers float32."""
        return {field: dict(rule) for field, rule in SCHEMA.items()}

    def configure(self, patch: Mapping[str, Any]) -> None:
        """A ``default_*`` rebinds every joint, except those that the same patch names."""
        self._use(self._gains.patched(patch))

    def apply(self, model: Any, data: Any, setpoints: Float64Array) -> None:
        """Write the torques; ``data.qpos`` and ``data.qvel`` are read fresh each time."""
        if data is not self._data:
            self._bind(model, data)
        if not self._binds_all:
            data.ctrl[self._all_ctrl] = setpoints
        if setpoints.tobytes() != self._clipped:
            self._clip(setpoints)
        qpos, qvel = self._all_qpos[self._qpos], self._all_qvel[self._qvel]
        pd_torque(self._target, qpos, qvel, self._kp, self._kv, self._max_tau, self._tau, self._damping)
        self._all_data_ctrl[self._ctrl] = self._tau

    def for_batch(self, batch: SimulationBatch) -> BatchLaw:
        """The same law with the gains of now, for many simulations."""
        lower, upper = self._ranges(batch.model)
        joints = BoundJoints(
            names=self._joint_names,
            kp=self._kp,
            kv=self._kv,
            torque_limit=self._max_tau,
            lower=lower,
            upper=upper,
            setpoints=self._setpoint,
            ctrl=self._ctrl,
            qpos=self._qpos,
            qvel=self._qvel,
        )
        return BatchPD(joints, self._all_ctrl, self._width, batch)

    def _clip(self, setpoints: Float64Array) -> None:
        """Targets stay within the joint ranges; they change seldom compared with the sub-steps that use them."""
        maximum(setpoints[self._setpoint], self._lower, out=self._target)
        minimum(self._target, self._upper, out=self._target)
        self._clipped = setpoints.tobytes()

    def _use(self, gains: PDGains) -> None:
        """Spread gains by joint over the bound actuators."""
        self._gains = gains
        self._kp = self._by_actuator(gains.by_joint["kp"])
        self._kv = self._by_actuator(gains.by_joint["kv"])
        self._max_tau = self._by_actuator(gains.by_joint["torque_limit"])

    def _by_actuator(self, by_joint: tuple[float, ...]) -> Float64Array:
        return np.array([by_joint[joint] for joint in self._joint_of_actuator], dtype=np.float64)

    def _bind(self, model: Any, data: Any) -> None:
        """Joint ranges never change within a compiled model, nor do the places of its data: both are read once."""
        self._lower, self._upper = self._ranges(model)
        self._all_qpos, self._all_qvel, self._all_data_ctrl = data.qpos, data.qvel, data.ctrl
        self._data, self._clipped = data, b""

    def _ranges(self, model: Any) -> tuple[Float64Array, Float64Array]:
        limited = model.jnt_limited[self._joint_ids].astype(bool)
        lower, upper = model.jnt_range[self._joint_ids].T
        return np.where(limited, lower, -UNLIMITED), np.where(limited, upper, UNLIMITED)


def _is_bound(control: ControlSlot) -> bool:
    """The first control of an actuator that drives a hinge or a slide; a second one is no torque."""
    joint = control.actuator.joint
    return joint is not None and joint.kind in _SCALAR_JOINTS and control.name == control.actuator.name
