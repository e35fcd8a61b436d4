"""LIBERO: a Franka with the Panda hand, driven by small motions of the hand."""

import math
from typing import Any, ClassVar

import numpy as np

from urlab.evaluation.policies.base import Action, Observation, embodiment_of
from urlab.evaluation.policies.openpi.mapping import Rows, arm_joints, gripper_at
from urlab.evaluation.policies.openpi.pictures import picture_of
from urlab.evaluation.policies.openpi.rates import shares
from urlab.geometry import Quat, multiply, normalised

FULL_MOVE_M = 0.05
FULL_TURN_RAD = 0.5
"""What 1 in a row means."""

_TINY = 1e-12


class Libero:
    """Rows of 7 at 20 Hz: motion (3) and turn as axis times angle (3), from -1 to 1 in the base's axes; gripper.

    The gripper is -1 for open and 1 for closed. Motions start from where the hand is when the rows are asked for.
    """

    arms: ClassVar[int] = 1
    width: ClassVar[int] = 7
    row_hz: ClassVar[float] = 20.0
    default_rows: ClassVar[int] = 5

    def encode(self, observation: Observation) -> dict[str, Any]:
        """State: hand position (3) and axis times angle (3) in the base's frame, fingers (2) as (q, -q)."""
        embodiment = embodiment_of(observation)
        position, quat_wxyz = observation["ee_pose_state"]
        fingers = arm_joints(observation, embodiment, 0)[1]
        state = [*position, *axis_angle(normalised([float(part) for part in quat_wxyz])), fingers[0], -fingers[1]]
        return {
            "observation/image": picture_of(observation, "obs_camera"),
            "observation/wrist_image": picture_of(observation, "realsense"),
            "observation/state": np.array(state, np.float32),
            "prompt": observation["instruction"],
        }

    def decode(self, rows: Rows, observation: Observation) -> list[Action]:
        """Absolute poses of the hand: a relative one would turn the position about the base as well."""
        arm = embodiment_of(observation).arms[0]
        position = np.asarray(observation["ee_pose_state"][0], dtype=np.float64)
        quat_wxyz = normalised([float(part) for part in observation["ee_pose_state"][1]])
        motions = np.clip(rows, -1.0, 1.0)
        actions = []
        for covered in shares(len(rows), self.row_hz):
            for row, part in covered:
                position = position + part * FULL_MOVE_M * motions[row, :3]
                quat_wxyz = multiply(quat_of(part * FULL_TURN_RAD * motions[row, 3:6]), quat_wxyz)
            closed = (motions[covered[-1][0], 6] + 1) / 2
            pose = [position.tolist(), list(normalised(quat_wxyz)), gripper_at(arm, closed)]
            actions.append({"control_type": "ee_pose", "action": pose, "is_rel": False})
        return actions


def axis_angle(quat_wxyz: Quat) -> list[float]:
    """Axis times angle, the angle from 0 to pi."""
    w, *axis = quat_wxyz if quat_wxyz[0] >= 0 else tuple(-part for part in quat_wxyz)
    sine = math.hypot(*axis)
    scale = 2 * math.atan2(sine, w) / sine if sine > _TINY else 2.0
    return [scale * part for part in axis]


def quat_of(turn: Rows) -> Quat:
    """The rotation of an axis times angle."""
    angle = float(np.linalg.norm(turn))
    scale = math.sin(angle / 2) / angle if angle > _TINY else 0.5
    return math.cos(angle / 2), *(float(scale * part) for part in turn)  # type: ignore[return-value]
