"""DROID: a Franka with a Robotiq gripper, driven by joint velocities."""

from typing import Any, ClassVar

import numpy as np

from urlab.evaluation.policies.base import Action, Observation, embodiment_of
from urlab.evaluation.policies.openpi.mapping import Rows, arm_joints, closedness, gripper_at
from urlab.evaluation.policies.openpi.pictures import picture_of
from urlab.evaluation.policies.openpi.rates import shares

FULL_SPEED_RAD = 0.2
"""What a velocity of 1 moves a joint in one row."""

_CLOSES_ABOVE = 0.5


class Droid:
    """Rows of 8 at 15 Hz: 7 joint velocities from -1 to 1, and the gripper, closed above a half."""

    arms: ClassVar[int] = 1
    width: ClassVar[int] = 8
    row_hz: ClassVar[float] = 15.0
    default_rows: ClassVar[int] = 8

    def encode(self, observation: Observation) -> dict[str, Any]:
        """One camera beside the robot, one at the wrist; joints in radians, the gripper from 0 (open) to 1."""
        embodiment = embodiment_of(observation)
        joints, gripper = arm_joints(observation, embodiment, 0)
        return {
            "observation/exterior_image_1_left": picture_of(observation, "obs_camera"),
            "observation/wrist_image_left": picture_of(observation, "realsense"),
            "observation/joint_position": joints.astype(np.float32),
            "observation/gripper_position": np.array([closedness(embodiment.arms[0], gripper)], np.float32),
            "prompt": observation["instruction"],
        }

    def decode(self, rows: Rows, observation: Observation) -> list[Action]:
        """Joint deltas; a row is shared out over the control steps that it lasts."""
        arm = embodiment_of(observation).arms[0]
        speeds = np.clip(rows[:, :7], -1.0, 1.0)
        actions = []
        for covered in shares(len(rows), self.row_hz):
            delta = sum((part * FULL_SPEED_RAD * speeds[row] for row, part in covered), np.zeros(7))
            closed = float(rows[covered[-1][0], 7] > _CLOSES_ABOVE)
            numbers = [*delta.tolist(), *gripper_at(arm, closed)]
            actions.append({"control_type": "joint_position", "action": numbers, "is_rel": True})
        return actions
