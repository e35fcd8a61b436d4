"""What happened in an episode, step by step, kept until it is written."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.actions import Action, ControlType
from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.episode import Episode
from urlab.evaluation.slots import slots_of

Row = dict[str, Any]


class EpisodeRecord:
    """One row per control step, the first for the state before any action. Values of rows are builtins."""

    def __init__(self, embodiment: Embodiment) -> None:
        self._embodiment = embodiment
        self._slots = slots_of(embodiment)
        self.rows: list[Row] = []

    def add(self, episode: Episode, action: Action | None) -> None:
        """Keep the state after ``action`` (None: the first state)."""
        simulation = episode.simulation
        self.rows.append(
            {
                "timestep": episode.timestep,
                "action": None if action is None else _spelled(action),
                "joints": simulation.joints.tolist(),
                "commanded_joints": simulation.commanded_joints.tolist(),
                "objects": {name: [*pose.pos, *pose.quat_wxyz] for name, pose in simulation.objects.items()},
                "object_joints": simulation.object_joints,
                "score": episode.score,
            }
        )

    def meta_record(self, instruction: str) -> dict[str, Any]:
        """The record in the shape that GenManip's own tools read: they draw arrays, and joint targets as actions."""
        return {
            "joint_positions": [self._part(row, "joints") for row in self.rows],
            "gripper_positions": [self._part(row, "gripper") for row in self.rows],
            "base_positions": [np.zeros(3) for _ in self.rows],
            "instruction": instruction,
            "model_output": list(self._model_output()),
            "robot_id": self._embodiment.robot_id,
        }

    def _part(self, row: Row, part: str) -> NDArray[np.float64]:
        return np.array([number for slot in self._slots for number in row["joints"][getattr(slot, part)]])

    def _model_output(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            if row["action"] is not None:
                base_motion = np.array(row["action"]["base_motion"])
                yield {"arm_action": np.array(row["commanded_joints"]), "base_motion": base_motion}


def _spelled(action: Action) -> dict[str, Any]:
    """The action as a client would send it."""
    arms = [[list(one.pos), list(one.quat_wxyz), list(one.gripper)] for one in action.arms]
    ee_pose = arms[0] if len(arms) == 1 else arms
    return {
        "control_type": action.kind.value,
        "action": list(action.joints) if action.kind is ControlType.JOINT_POSITION else ee_pose,
        "is_rel": action.is_rel,
        "base_motion": list(action.base_motion),
    }
