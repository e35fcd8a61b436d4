"""Joint-space PD: setpoints are joint targets, ``data.ctrl`` is torque (force, for slides)."""

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from numpy import maximum, minimum, multiply, subtract

from urlab.compile.compiled_scene import ActuatorSlot, CompiledArticulation
from urlab.control.controller import Controller, Float64Array, index_of
from urlab.control.pd_gains import SCHEMA, PDGains

_SCALAR_JOINTS = frozenset({int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)})
_FAR = 1e200
"""The range of an unlimited joint: beyond any target, and still finite when multiplied by the largest gain."""


class PDController(Controller, kind="pd"):
    """``tau = kp * (target - q) - kv * qd`` within ±torque_limit, the target within the joint's range.

    It binds actuators that drive a hinge or slide joint; they should be motors with gear 1, since MuJoCo applies
    gear and ctrlrange to ``data.ctrl`` as always. Every other actuator (a tendon's, a gripper's adhesion) gets its
    setpoint as it is: URLab itself writes nothing there, which leaves such an actuator beyond a client's reach.
    Two actuators on one joint share its gains and each apply the law. Computed in float64.
    """

    def __init__(self, articulation: CompiledArticulation, params: Mapping[str, Any]) -> None:
        bound = tuple(actuator for actuator in articulation.actuators if _is_bound(actuator))
        joints = [actuator.joint for actuator in bound if actuator.joint is not None]
        self._all_ctrl = index_of([actuator.id for actuator in articulation.actuators])
        self._ctrl = index_of([actuator.id for actuator in bound])
        self._setpoint = index_of([i for i, actuator in enumerate(articulation.actuators) if _is_bound(actuator)])
        self._qpos = index_of([joint.qpos.start for joint in joints])
        self._qvel = index_of([joint.qvel.start for joint in joints])
        self._joint_ids = [joint.id for joint in joints]
        self._binds_all = len(bound) == len(articulation.actuators)
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
        tau, damping = self._tau, self._damping
        subtract(self._target, self._all_qpos[self._qpos], tau)
        multiply(tau, self._kp, tau)
        multiply(self._all_qvel[self._qvel], self._kv, damping)
        subtract(tau, damping, tau)
        maximum(tau, self._min_tau, out=tau)
        minimum(tau, self._max_tau, out=tau)
        self._all_data_ctrl[self._ctrl] = tau

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
        self._min_tau = -self._max_tau

    def _by_actuator(self, by_joint: tuple[float, ...]) -> Float64Array:
        return np.array([by_joint[joint] for joint in self._joint_of_actuator], dtype=np.float64)

    def _bind(self, model: Any, data: Any) -> None:
        """Joint ranges never change within a compiled model, nor do the places of its data: both are read once."""
        limited = model.jnt_limited[self._joint_ids].astype(bool)
        lower, upper = model.jnt_range[self._joint_ids].T
        self._lower = np.where(limited, lower, -_FAR)
        self._upper = np.where(limited, upper, _FAR)
        self._all_qpos, self._all_qvel, self._all_data_ctrl = data.qpos, data.qvel, data.ctrl
        self._data, self._clipped = data, b""


def _is_bound(actuator: ActuatorSlot) -> bool:
    return actuator.joint is not None and actuator.joint.kind in _SCALAR_JOINTS
