"""PandaPickCube: lift a cube from a table."""

from collections.abc import Sequence

import numpy as np

from urlab.envs.scene_states import Array, SceneLayout, States
from urlab.envs.task import LEVELS, EnvTask, Outcome

REST_M, LIFTED_M = 0.425, 0.1
"""The height of the cube's centre on the table, and how far above that it counts as picked."""

NEAR_M = 0.04
FALLEN_M = 0.3
_JOINTS = (*(f"panda_joint{i}" for i in range(1, 8)), "panda_finger_joint1", "panda_finger_joint2")


class PandaPickCube(EnvTask, name="PandaPickCube-v0"):
    """The reward is minus the distance of hand and cube in metres, minus the part of 10 cm that is still to lift, and
    5 on success: no step is worth more than ending.

    Success, which ends the episode: the cube is 10 cm above the table with the hand at it. It also ends when the cube
    falls off the table.
    """

    scene = LEVELS / "panda_pick_cube.toml"
    n_steps = 10
    max_episode_steps = 300

    def __init__(self, layout: SceneLayout) -> None:
        self._qpos, self._qvel = layout.joint_qpos(*_JOINTS), layout.joint_qvel(*_JOINTS)
        self._arm = layout.joint_qpos(*_JOINTS[:7])
        self._hand, self._hand_quat = layout.sensor("panda_ee_pos"), layout.sensor("panda_ee_quat")
        start = int(layout.model.jnt_qposadr[layout.model.body("cube").jntadr[0]])
        self._cube, self._cube_quat = slice(start, start + 3), slice(start + 3, start + 7)

    def observe(self, states: States) -> dict[str, Array]:
        """Joints and fingers, the poses of hand and cube."""
        return {
            "joint_pos": states.qpos[:, self._qpos].copy(),
            "joint_vel": states.qvel[:, self._qvel].copy(),
            "hand_pos": states.sensordata[:, self._hand].copy(),
            "hand_quat": states.sensordata[:, self._hand_quat].copy(),
            "cube_pos": states.qpos[:, self._cube].copy(),
            "cube_quat": states.qpos[:, self._cube_quat].copy(),
        }

    def place(self, states: States, rows: Sequence[int], rngs: Sequence[np.random.Generator]) -> None:
        """The cube up to 10 cm from the middle, turned at will; the joints up to 0.02 rad from home."""
        for row, rng in zip(rows, rngs, strict=True):
            states.qpos[row, self._cube][:2] += rng.uniform(-0.1, 0.1, 2)
            half = rng.uniform(-np.pi, np.pi) / 2
            states.qpos[row, self._cube_quat] = np.cos(half), 0.0, 0.0, np.sin(half)
            states.qpos[row, self._arm] += rng.uniform(-0.02, 0.02, 7)

    def judge(self, states: States, setpoints: Array) -> Outcome:  # noqa: ARG002
        """By the hand's distance and the cube's height."""
        cube = states.qpos[:, self._cube]
        to_go = states.sensordata[:, self._hand] - cube
        distance = np.sqrt(to_go[:, 0] ** 2 + to_go[:, 1] ** 2 + to_go[:, 2] ** 2)
        lifted = np.clip((cube[:, 2] - REST_M) / LIFTED_M, 0.0, 1.0)
        success = (lifted >= 1.0) & (distance < NEAR_M)
        fallen = cube[:, 2] < FALLEN_M
        return Outcome(lifted - 1.0 - distance + 5.0 * success, success | fallen, success)
