"""The PD law, for one simulation and for many at once."""

from dataclasses import dataclass

import numpy as np
from numpy import maximum, minimum, multiply, subtract

from urlab.control.controller import Float64Array, Index
from urlab.physics.batch import SimulationBatch

UNLIMITED = 1e200
"""The range of an unlimited joint: beyond any target, and still finite when multiplied by the largest gain."""


def pd_torque(
    target: Float64Array,
    qpos: Float64Array,
    qvel: Float64Array,
    kp: Float64Array,
    kv: Float64Array,
    limit: Float64Array,
    tau: Float64Array,
    damping: Float64Array,
) -> None:
    """The law: write ``kp * (target - qpos) - kv * qvel`` within ±``limit`` into ``tau``; ``damping`` is for its use.

    Joints are the last axis of all of them; there may be one before it, of simulations.
    """
    subtract(target, qpos, tau)
    multiply(tau, kp, tau)
    multiply(qvel, kv, damping)
    subtract(tau, damping, tau)
    maximum(tau, -limit, out=tau)
    minimum(tau, limit, out=tau)


@dataclass(frozen=True, slots=True)
class BoundJoints:
    """The joints that a PD controller drives, and where their numbers are.

    ``setpoints`` finds their targets in a row of setpoints; ``ctrl``, ``qpos`` and ``qvel`` are places in the data.
    """

    kp: Float64Array
    kv: Float64Array
    torque_limit: Float64Array
    lower: Float64Array
    upper: Float64Array
    setpoints: Index
    ctrl: Index
    qpos: Index
    qvel: Index


class BatchPD:
    """`PDController` for the simulations of a batch. Setpoints of what it does not drive are written as they are."""

    follows_state = True

    def __init__(self, joints: BoundJoints, all_ctrl: Index, width: int, batch: SimulationBatch) -> None:
        self.width = width
        self._joints, self._all_ctrl, self._batch = joints, all_ctrl, batch
        shape = (len(batch.time), len(joints.kp))
        self._target, self._tau, self._damping = (np.zeros(shape) for _ in range(3))

    def stage(self, setpoints: Float64Array) -> None:
        """Take the setpoints of the next step, (count, width)."""
        self._batch.ctrl[:, self._all_ctrl] = setpoints
        joints = self._joints
        np.maximum(setpoints[:, joints.setpoints], joints.lower, out=self._target)
        np.minimum(self._target, joints.upper, out=self._target)

    def apply(self) -> None:
        """Write the torques at the states as they are, before a sub-step."""
        joints, batch = self._joints, self._batch
        qpos, qvel = batch.qpos[:, joints.qpos], batch.qvel[:, joints.qvel]
        pd_torque(self._target, qpos, qvel, joints.kp, joints.kv, joints.torque_limit, self._tau, self._damping)
        batch.ctrl[:, joints.ctrl] = self._tau
