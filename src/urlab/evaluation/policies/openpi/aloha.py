"""ALOHA: two arms, driven by absolute joint positions.

Keys, order and rate are those of openpi's examples for ALOHA. Joints are passed on as they are: our arms are others,
and nobody says that their joints have the zeros and signs of ALOHA's.
"""

from typing import Any, ClassVar

import numpy as np

from urlab.evaluation.policies.base import Action, Observation, embodiment_of
from urlab.evaluation.policies.openpi.mapping import Rows, arm_joints, closedness, gripper_at
from urlab.evaluation.policies.openpi.pictures import picture_of
from urlab.evaluation.policies.openpi.rates import last_rows

_CAMERAS = {"cam_high": "top_camera", "cam_left_wrist": "left_camera", "cam_right_wrist": "right_camera"}
_ARM_WIDTH = 7


class Aloha:
    """Rows of 14 at 50 Hz: for the left arm and the right 6 joint positions in radians, and the gripper.

    Grippers are 0 for closed and 1 for open, in proportion to the way of the fingers. So it is in the simulated
    example; on the real robot an action tells the angle of the gripper's motor, which differs by up to 0.1. There is no
    ``cam_low``: servers do without. 25 rows are carried out as on the real robot; the simulated example takes 10.
    """

    arms: ClassVar[int] = 2
    width: ClassVar[int] = arms * _ARM_WIDTH
    row_hz: ClassVar[float] = 50.0
    default_rows: ClassVar[int] = 25

    def encode(self, observation: Observation) -> dict[str, Any]:
        """Pictures are (3, 224, 224)."""
        embodiment = embodiment_of(observation)
        state: list[float] = []
        for place, arm in enumerate(embodiment.arms):
            joints, gripper = arm_joints(observation, embodiment, place)
            state += [*joints.tolist(), 1.0 - closedness(arm, gripper)]
        images = {
            name: np.ascontiguousarray(picture_of(observation, camera).transpose(2, 0, 1))
            for name, camera in _CAMERAS.items()
        }
        return {"state": np.array(state, np.float32), "images": images, "prompt": observation["instruction"]}

    def decode(self, rows: Rows, observation: Observation) -> list[Action]:
        """Absolute joint positions: for each control step the row that is due at its end."""
        arms = embodiment_of(observation).arms
        actions = []
        for row in last_rows(len(rows), self.row_hz):
            numbers: list[float] = []
            for place, arm in enumerate(arms):
                half = rows[row, place * _ARM_WIDTH : (place + 1) * _ARM_WIDTH].tolist()
                numbers += [*half[:-1], *gripper_at(arm, 1.0 - half[-1])]
            actions.append({"control_type": "joint_position", "action": numbers, "is_rel": False})
        return actions
