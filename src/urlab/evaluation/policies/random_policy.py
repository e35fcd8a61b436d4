"""The floor: a policy that knows nothing."""

import zlib

import numpy as np

from urlab.evaluation.policies.base import Action, Observation, embodiment_of, episode_of

MAX_DELTA_RAD = 0.05
"""Of a joint in a control step: below what the robots can follow (2 rad/s at 30 Hz)."""


class RandomPolicy:
    """Uniform joint deltas, and grippers anywhere between open and closed. Each episode has its own seed.

    The same task and seed give the same actions on every machine and for every number of workers.
    """

    needs_cameras = False
    needs_privileged = False

    def reset(self, observation: Observation) -> None:
        """Seed by task and seed, and see which robot it is."""
        task, seed = episode_of(observation)
        self._random = np.random.Generator(np.random.PCG64([zlib.crc32(task.encode()), seed]))
        self._embodiment = embodiment_of(observation)

    def act(self, observation: Observation) -> Action:  # noqa: ARG002 - it looks at nothing
        """One action of joint deltas."""
        numbers: list[float] = []
        for arm in self._embodiment.arms:
            numbers += self._random.uniform(-MAX_DELTA_RAD, MAX_DELTA_RAD, len(arm.joints)).tolist()
            gripper, closing = arm.gripper, float(self._random.random())
            pairs = zip(gripper.open, gripper.closed, strict=True)
            numbers += [(1 - closing) * wide + closing * shut for wide, shut in pairs]
        return {"control_type": "joint_position", "action": numbers, "is_rel": True}

    def close(self) -> None:
        """Nothing to close."""
