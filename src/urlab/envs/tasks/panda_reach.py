"""PandaReach: bring the hand of an arm to a marker."""

from collections.abc import Sequence

import numpy as np

from urlab.envs.scene_states import Array, SceneLayout, States
from urlab.envs.task import LEVELS, EnvTask, Outcome

LOW_M, HIGH_M = np.array([0.35, -0.35, 0.15]), np.array([0.65, 0.35, 0.65])
"""Where markers are placed, world frame."""

REACHED_M = 0.03
STILL_RAD_S = 0.5
_JOINTS = tuple(f"panda_joint{i}" for i in range(1, 8))


class PandaReach(EnvTask, name="PandaReach-v0"):
    """The reward is minus the distance of hand and marker in metres, and 1 on success.

    Success, which ends the episode: within 3 cm, with no joint quicker than 0.5 rad/s.
    """

    scene = LEVELS / "panda_reach.toml"
    n_steps = 10
    max_episode_steps = 200

    def __init__(self, layout: SceneLayout) -> None:
        self._qpos, self._qvel = layout.joint_qpos(*_JOINTS), layout.joint_qvel(*_JOINTS)
        self._hand = layout.sensor("panda_ee_pos")
        self._marker = layout.mocap("target")

    def observe(self, states: States) -> dict[str, Array]:
        """Joint angles and velocities, the places of hand and marker."""
        return {
            "joint_pos": states.qpos[:, self._qpos].copy(),
            "joint_vel": states.qvel[:, self._qvel].copy(),
            "hand_pos": states.sensordata[:, self._hand].copy(),
            "goal_pos": states.mocap_pos[:, self._marker].copy(),
        }

    def place(self, states: States, rows: Sequence[int], rngs: Sequence[np.random.Generator]) -> None:
        """The marker anywhere in a box before the arm, the joints up to 0.1 rad from home."""
        for row, rng in zip(rows, rngs, strict=True):
            states.mocap_pos[row, self._marker] = rng.uniform(LOW_M, HIGH_M)
            states.qpos[row, self._qpos] += rng.uniform(-0.1, 0.1, 7)

    def judge(self, states: States, setpoints: Array) -> Outcome:  # noqa: ARG002
        """By the distance of the hand."""
        to_go = states.sensordata[:, self._hand] - states.mocap_pos[:, self._marker]
        distance = np.sqrt(to_go[:, 0] ** 2 + to_go[:, 1] ** 2 + to_go[:, 2] ** 2)
        there = distance < REACHED_M
        still = np.abs(states.qvel[:, self._qvel]).max(axis=1) < STILL_RAD_S
        success = there & still
        return Outcome(success - distance, success, success)
