"""The command in force: the memory to which relative actions add.

Per arm there is one command, and it is known in two forms, as joints and as a pose of the hand.

- A relative joint action adds to the joints last commanded, not to those measured. After a reset they are the joints
  measured then. The sum may lie beyond a joint's limits and is remembered all the same; the robot stops at the limit.
- A relative pose multiplies the pose last commanded from the left, both in the frame of the arm's base: a rotation also
  turns the position about the base. After a reset the pose is the one measured then.
- An absolute action becomes the command as it is.
- A pose that no joints reach is remembered as well, while the arm holds the joints measured now.
- An action in the other form goes on from the same command: after a pose the joints are those that were sent to the arm
  (the solution, or the joints held), after joints the pose is the one that those joints, within their limits, have.
- A gripper's numbers always replace the ones before.
"""

import mujoco
import numpy as np

from urlab.evaluation.embodiments import ArmSlots, Embodiment
from urlab.evaluation.simulation.actions import Action, ArmTarget, ControlType
from urlab.evaluation.simulation.kinematics import Array, EePose, Kinematics


class CommandMemory:
    """The command in force. `reset` comes first. One thread at a time."""

    def __init__(self, embodiment: Embodiment, kinematics: Kinematics) -> None:
        self._slots = embodiment.slots
        self._kinematics = kinematics.arms
        self._joints: Array = np.array(embodiment.home)
        self._poses: list[EePose | None] = [None] * len(self._slots)
        self._is_held = [False] * len(self._slots)

    @property
    def joints(self) -> Array:
        """The joints last commanded, in the order of actions; a copy."""
        return self._joints.copy()

    @property
    def is_held(self) -> tuple[bool, ...]:
        """Per arm, whether the last action asked for a pose out of reach, so that the arm holds still."""
        return tuple(self._is_held)

    def reset(self, measured: Array) -> None:
        """Begin an episode with the joints as they were measured, in the order of actions."""
        self._joints = measured.copy()
        self._poses = [None] * len(self._slots)
        self._is_held = [False] * len(self._slots)

    def apply(self, action: Action, measured: Array) -> Array:
        """Take an action in; the joints to be sent to the robot now, in the order of actions.

        ``measured`` joints seed the search for those of a pose, and are held when there are none.
        """
        if action.kind is ControlType.JOINT_POSITION:
            self._apply_joints(np.array(action.joints), action.is_rel)
        else:
            for index, target in enumerate(action.arms):
                self._apply_pose(index, target, action.is_rel, measured)
        return self.joints

    def _apply_joints(self, numbers: Array, is_rel: bool) -> None:
        for index, slot in enumerate(self._slots):
            before = self._joints[slot.joints] if is_rel else 0.0
            self._joints[slot.joints] = before + numbers[slot.joints]
            self._joints[slot.gripper] = numbers[slot.gripper]
            self._poses[index], self._is_held[index] = None, False

    def _apply_pose(self, index: int, target: ArmTarget, is_rel: bool, measured: Array) -> None:
        slot, given = self._slots[index], EePose(np.array(target.pos), np.array(target.quat_wxyz))
        wanted = _after(given, self._pose(index, slot)) if is_rel else given
        seed = measured[slot.joints]
        found = self._kinematics[index].solve(wanted, seed)
        self._joints[slot.joints] = found.joints if found.is_reached else seed
        self._joints[slot.gripper] = target.gripper
        self._poses[index], self._is_held[index] = wanted, not found.is_reached

    def _pose(self, index: int, slot: ArmSlots) -> EePose:
        """The pose last commanded; computed only on demand, as most policies never need it."""
        remembered, arm = self._poses[index], self._kinematics[index]
        return remembered or arm.pose(arm.clipped(self._joints[slot.joints]))


def _after(change: EePose, before: EePose) -> EePose:
    """change * before, both in the frame of the base."""
    pos, quat = np.empty(3), np.empty(4)
    mujoco.mju_rotVecQuat(pos, before.pos, change.quat_wxyz)
    mujoco.mju_mulQuat(quat, change.quat_wxyz, before.quat_wxyz)
    return EePose(pos + change.pos, quat / np.linalg.norm(quat))
