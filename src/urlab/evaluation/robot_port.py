"""A robot in a running scene: its joints in the order of actions, and its motors."""

from typing import Any

import numpy as np

from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.kinematics import Array
from urlab.evaluation.slots import ArmSlots, slots_of


class RobotPort:
    """Reads and drives the robot whose compiled names begin with ``prefix``. Whoever calls it owns the data.

    A motor's setpoint moves towards its target at the embodiment's greatest joint speed, a gripper's goes at once.
    """

    def __init__(self, model: Any, prefix: str, embodiment: Embodiment) -> None:
        names = [f"{prefix}_{joint}" for joint in embodiment.joints]
        self._qpos = np.array([int(model.joint(name).qposadr[0]) for name in names])
        pairs = [pair for slot in slots_of(embodiment) for pair in _drives(slot)]
        self._motors = np.array([int(model.actuator(f"{prefix}_{motor}").id) for motor, _, _ in pairs])
        self._entries = np.array([entry for _, entry, _ in pairs])
        self._low, self._high = _ranges(model, self._motors)
        speed, timestep_s = embodiment.max_joint_speed_rad_s, float(model.opt.timestep)
        self._stride = np.array([speed * timestep_s if is_slewed else np.inf for *_, is_slewed in pairs])

    def joints(self, data: Any) -> Array:
        """The measured joints in the order of actions; a copy."""
        joints: Array = data.qpos[self._qpos]
        return joints

    def put(self, data: Any, joints: Array) -> None:
        """Place the robot and tell its motors to stay."""
        data.qpos[self._qpos] = joints
        data.ctrl[self._motors] = self._setpoints(joints)

    def ramp(self, data: Any, targets: Array, substeps: int) -> Array:
        """The model's controls for each of the next sub-steps, (substeps, nu), for targets in the order of actions."""
        now = data.ctrl[self._motors]
        strides = self._stride * np.arange(1, substeps + 1)[:, None]
        controls = np.tile(data.ctrl, (substeps, 1))
        controls[:, self._motors] = now + np.clip(self._setpoints(targets) - now, -strides, strides)
        return controls

    def _setpoints(self, joints: Array) -> Array:
        """Within the motors' ranges."""
        setpoints: Array = np.clip(joints[self._entries], self._low, self._high)
        return setpoints


def _drives(slot: ArmSlots) -> list[tuple[str, int, bool]]:
    """Motor, entry of the action, and whether its speed is limited; gripper motors take the gripper's first entries."""
    arm, gripper = slot.arm.actuators, slot.arm.gripper.actuators
    return [(motor, slot.joints.start + index, True) for index, motor in enumerate(arm)] + [
        (motor, slot.gripper.start + index, False) for index, motor in enumerate(gripper)
    ]


def _ranges(model: Any, motors: Any) -> tuple[Array, Array]:
    is_limited = model.actuator_ctrllimited[motors].astype(bool)
    low, high = model.actuator_ctrlrange[motors].T
    return np.where(is_limited, low, -np.inf), np.where(is_limited, high, np.inf)
