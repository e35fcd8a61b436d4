"""Whether a robot is still in a state that a robot can be in. If not, the episode is over and scores nothing.

What the protocol allows of the Panda's fingers (a hundredth beyond 0 to 0.04 m, jumps of 0.05 m) is a quarter of their
travel; every gripper is allowed that. Bases do not move here, so nothing watches them.
"""

import numpy as np

from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.kinematics import Array
from urlab.evaluation.slots import slots_of

FARTHEST_ARM_RAD = 10.0
FARTHEST_ARM_JUMP_RAD = 1.0
_SLACK = 0.25


class StateGuard:
    """Looks at the joints once per control step, in the order of actions."""

    def __init__(self, embodiment: Embodiment) -> None:
        slots = slots_of(embodiment)
        entries = np.arange(embodiment.action_length)
        self._arm = np.concatenate([entries[slot.joints] for slot in slots])
        self._gripper = np.concatenate([entries[slot.gripper] for slot in slots])
        open_, closed = (
            np.concatenate([getattr(slot.arm.gripper, end) for slot in slots]) for end in ("open", "closed")
        )
        travel = np.abs(open_ - closed)
        self._low = np.minimum(open_, closed) - _SLACK * travel
        self._high = np.maximum(open_, closed) + _SLACK * travel
        self._farthest_jump = (1 + _SLACK) * travel
        self._before: Array | None = None

    def reset(self, joints: Array) -> None:
        """Begin an episode with these joints."""
        self._before = joints.copy()

    def check(self, joints: Array, *, is_stable: bool = True) -> str | None:
        """Why the episode must end after the step that led here; None when it may go on.

        ``is_stable`` is False when the simulation itself says that it has come apart.
        """
        before, self._before = self._before, joints.copy()
        jump = np.abs(joints - (joints if before is None else before))
        if not is_stable:
            return "unstable_physics"
        return self._arm_problem(joints[self._arm], jump[self._arm]) or self._gripper_problem(
            joints[self._gripper], jump[self._gripper]
        )

    def _arm_problem(self, arm: Array, jump: Array) -> str | None:
        if not np.isfinite(arm).all():
            return "non_finite_arm_state"
        if (np.abs(arm) > FARTHEST_ARM_RAD).any():
            return "arm_out_of_range"
        return "arm_jump" if (jump > FARTHEST_ARM_JUMP_RAD).any() else None

    def _gripper_problem(self, gripper: Array, jump: Array) -> str | None:
        if not np.isfinite(gripper).all():
            return "non_finite_gripper_state"
        if (gripper < self._low).any() or (gripper > self._high).any():
            return "gripper_out_of_range"
        return "gripper_jump" if (jump > self._farthest_jump).any() else None
