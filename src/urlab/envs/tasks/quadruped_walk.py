"""QuadrupedWalk: walk two metres straight on, and go on."""

from collections.abc import Sequence

import numpy as np

from urlab.envs.scene_states import Array, SceneLayout, States
from urlab.envs.task import LEVELS, EnvTask, Outcome

SPEED_M_S = 0.4
"""The speed that is rewarded most."""

GOAL_M, ASIDE_M = 2.0, 1.0
LOWEST_M = 0.16
MOST_TILT_COS = 0.6
_LEGS = tuple(f"quadruped_{leg}_{part}" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf"))


class QuadrupedWalk(EnvTask, name="QuadrupedWalk-v0"):
    """The reward of a step: up to 1 for walking along x at 0.4 m/s, less for drifting aside, turning and crouching.

    Success: at least 2 m from the start along x and at most 1 m aside; the episode goes on. A fall ends it, with -10.
    """

    scene = LEVELS / "quadruped_walk.toml"
    n_steps = 10
    max_episode_steps = 400

    def __init__(self, layout: SceneLayout) -> None:
        self._legs, self._leg_speeds = layout.joint_qpos(*_LEGS), layout.joint_qvel(*_LEGS)
        self._root, self._root_speeds = layout.joint_qpos("quadruped_root"), layout.joint_qvel("quadruped_root")
        self._home = layout.model.qpos0[self._legs].copy()

    def observe(self, states: States) -> dict[str, Array]:
        """The trunk's pose and velocities (linear in the world, angular in its own frame), the legs' joints."""
        return {
            "trunk_pose": states.qpos[:, self._root].copy(),
            "trunk_vel": states.qvel[:, self._root_speeds].copy(),
            "joint_pos": states.qpos[:, self._legs].copy(),
            "joint_vel": states.qvel[:, self._leg_speeds].copy(),
            "time": states.time[:, None].copy(),
        }

    def place(self, states: States, rows: Sequence[int], rngs: Sequence[np.random.Generator]) -> None:
        """Standing, the legs up to 0.05 rad from home."""
        for row, rng in zip(rows, rngs, strict=True):
            states.qpos[row, self._legs] += rng.uniform(-0.05, 0.05, 12)

    def judge(self, states: States, setpoints: Array) -> Outcome:
        """By the trunk's velocity, and whether it stands."""
        pose, speeds = states.qpos[:, self._root], states.qvel[:, self._root_speeds]
        upright = 1.0 - 2.0 * (pose[:, 4] ** 2 + pose[:, 5] ** 2)
        fallen = (pose[:, 2] < LOWEST_M) | (upright < MOST_TILT_COS)
        success = (pose[:, 0] >= GOAL_M) & (np.abs(pose[:, 1]) <= ASIDE_M) & ~fallen
        pace = np.exp(-((speeds[:, 0] - SPEED_M_S) ** 2) / 0.05)
        drift = 0.5 * speeds[:, 1] ** 2 + 0.05 * speeds[:, 5] ** 2 + 0.2 * np.abs(pose[:, 1])
        effort = 0.01 * np.square(setpoints - self._home).sum(axis=1)
        reward = pace - drift - effort - 10.0 * fallen
        return Outcome(reward, fallen, success)
