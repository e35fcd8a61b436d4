"""One hand as a script moves it: told where to be in the world, it says so in the words of the protocol."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from urlab.evaluation.embodiments import Arm, Numbers
from urlab.evaluation.policies.oracle.poses import between
from urlab.evaluation.policies.oracle.tool import Tool
from urlab.evaluation.simulation.kinematics import ArmKinematics, Array, EePose
from urlab.evaluation.tasks.pose import pose_of
from urlab.geometry import Pose

ArmAction = tuple[tuple[float, ...], tuple[float, ...], Numbers]
"""Position, quaternion and gripper, as an action of kind ee_pose has them."""

_LOOKS = (0.25, 0.5, 0.75, 1.0)
"""Shares of a way at which it is looked at."""
_SWING_RAD = 1.0


class Hand:
    """``command`` and ``opening`` (0 closed, 1 open) are what the next action asks for; skills change them.

    All poses are those of the tool's frame in the world; see `Tool`.
    """

    def __init__(self, arm: Arm, tool: Tool, kinematics: ArmKinematics) -> None:
        self.arm, self.tool = arm, tool
        self._kinematics = kinematics
        self.measured = self.command = self.home = Pose()
        self.opening = 1.0

    @property
    def name(self) -> str:
        """The arm's name."""
        return self.arm.name

    def begin(self, ee_pose: Sequence[Any], joints: Array) -> None:
        """An episode begins with the hand there, in the protocol's terms."""
        self.see(ee_pose, joints)
        self.command = self.home = self.measured
        self._home_joints = joints
        self.opening = 1.0

    def see(self, ee_pose: Sequence[Any], joints: Array) -> None:
        """Take in where the hand is, and the joints of its arm."""
        self._joints = joints
        self.measured = self.tool.base_w.apply(pose_of(*ee_pose)).apply(self.tool.in_ee)

    def action(self) -> ArmAction:
        """This hand's share of the next action."""
        ee = self._ee_pose(self.command)
        gripper = self.arm.gripper
        pairs = zip(gripper.open, gripper.closed, strict=True)
        return ee.pos, ee.quat_wxyz, tuple(shut + (wide - shut) * self.opening for wide, shut in pairs)

    def effort(self, way: Sequence[Pose]) -> float:
        """How far from home (rad, the worst joint) the arm gets on a way from where it is now; infinite if it cannot.

        Between poses it goes straight, as `motion.move` does: an arm that would have to swing round on the way cannot.
        """
        start, joints, worst = self.command, self._joints, 0.0
        for end in way:
            for share in _LOOKS:
                found = self._kinematics.solve(self._ee(between(start, end, share)), joints)
                if not found.is_reached or np.abs(found.joints - joints).max() > _SWING_RAD:
                    return np.inf
                joints = found.joints
                worst = max(worst, float(np.abs(joints - self._home_joints).max()))
            start = end
        return worst

    def _ee(self, tool_w: Pose) -> EePose:
        pose = self._ee_pose(tool_w)
        return EePose(np.array(pose.pos), np.array(pose.quat_wxyz))

    def _ee_pose(self, tool_w: Pose) -> Pose:
        return self.tool.base_w.inverse().apply(tool_w).apply(self.tool.in_ee.inverse())
