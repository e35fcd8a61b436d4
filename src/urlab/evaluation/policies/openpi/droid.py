"""DROID: a Franka with a Robotiq gripper, driven by joint velocities, or by joint positions.

Keys, rates and the meaning of a row are those of openpi's example for DROID and of DROID's own driver. How fast the
real arm follows its targets has no public source; openpi's authors call it hard to match in a simulation. Checkpoints
that give joint positions do not depend on it.
"""

from typing import Any, ClassVar

import numpy as np

from urlab.evaluation.policies.base import Action, Observation, embodiment_of
from urlab.evaluation.policies.openpi.mapping import Rows, arm_joints, carried_on, closedness, gripper_at
from urlab.evaluation.policies.openpi.pictures import picture_of
from urlab.evaluation.policies.openpi.rates import last_rows, shares

FULL_SPEED_RAD = 0.2
"""How far ahead of a joint its target is at a velocity of 1, and so how far it may go in one row."""

_ARM_WIDTH = 7
_CLOSES_ABOVE = 0.5
# Any camera that sees the scene will do for the policies. This one is beside the robot, as most of DROID's are.
_EXTERIOR, _WRIST = "obs_camera_2", "realsense"


class Droid:
    """Rows of 8 at 15 Hz: 7 joint velocities from -1 to 1, and the gripper, closed above a half.

    A row is carried out in full: at a velocity of 1 the target moves 0.2 rad. It goes on from the last target, but at
    the start of an answer at most 0.2 rad from where the arm is. DROID's own targets never are farther from it.
    """

    arms: ClassVar[int] = 1
    width: ClassVar[int] = _ARM_WIDTH + 1
    row_hz: ClassVar[float] = 15.0
    default_rows: ClassVar[int] = 8

    def __init__(self) -> None:
        self._target: Rows | None = None

    def encode(self, observation: Observation) -> dict[str, Any]:
        """One camera beside the robot, one at the wrist; joints in radians, the gripper from 0 (open) to 1."""
        embodiment = embodiment_of(observation)
        joints, gripper = arm_joints(observation, embodiment, 0)
        return {
            "observation/exterior_image_1_left": picture_of(observation, _EXTERIOR),
            "observation/wrist_image_left": picture_of(observation, _WRIST),
            "observation/joint_position": joints.astype(np.float32),
            "observation/gripper_position": np.array([closedness(embodiment.arms[0], gripper)], np.float32),
            "prompt": observation["instruction"],
        }

    def decode(self, rows: Rows, observation: Observation) -> list[Action]:
        """Joint positions; a row is shared out over the control steps that it lasts."""
        joints = arm_joints(observation, embodiment_of(observation), 0)[0]
        target = carried_on(self._target, joints, FULL_SPEED_RAD)
        deltas = FULL_SPEED_RAD * np.clip(rows[:, :_ARM_WIDTH], -1.0, 1.0)
        actions = []
        for covered in shares(len(rows), self.row_hz):
            target = sum((part * deltas[row] for row, part in covered), target)
            actions.append(_action(target, rows[covered[-1][0]], observation))
        self._target = target
        return actions


class DroidJoints(Droid):
    """Rows of 8 at 15 Hz: 7 joint positions in radians, and the gripper, closed above a half."""

    def decode(self, rows: Rows, observation: Observation) -> list[Action]:
        """Joint positions: for each control step the row that is due at its end."""
        return [_action(rows[row, :_ARM_WIDTH], rows[row], observation) for row in last_rows(len(rows), self.row_hz)]


def _action(joints: Rows, row: Rows, observation: Observation) -> Action:
    """The gripper is all open or all closed, as openpi's example has it."""
    arm = embodiment_of(observation).arms[0]
    numbers = [*joints.tolist(), *gripper_at(arm, float(row[_ARM_WIDTH] > _CLOSES_ABOVE))]
    return {"control_type": "joint_position", "action": numbers, "is_rel": False}
