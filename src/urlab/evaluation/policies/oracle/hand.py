"""One hand as a script moves it: its tool, measured on the robot's own model, and how it moves.

Hands move smoothly, within what arms and inverse kinematics can follow. A motion is a generator that yields once per
control step, after it has set the hand's next command.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from urlab.evaluation.embodiments import Arm, Embodiment, Numbers
from urlab.evaluation.simulation.kinematics import ArmKinematics, Array, EePose
from urlab.geometry import Pose, wxyz_from_axis_angle
from urlab.robots import model_path

ArmAction = tuple[tuple[float, ...], tuple[float, ...], Numbers]
"""Position, quaternion and gripper, as an action of kind ee_pose has them."""
_SOLVED_AT = (0.25, 0.5, 0.75, 1.0)
"""Shares of a way at which the joints are solved for."""
_SWING_RAD = 1.0
_SAMPLES = 9
"""Openings at which the fingers are measured."""
Motion = Iterator[None]
CONTROL_HZ = 30
FASTEST_M_S = 0.25
FASTEST_RAD_S = 1.5
CAREFUL_M_S = 0.10
"""For the last centimetres before a contact."""
_CLOSE_M, _CLOSE_RAD = 0.002, 0.02
_SETTLE_STEPS = 20
_GRIP_STEPS = 15


@dataclass(frozen=True)
class Tool:
    """The tool's frame: its origin is where the fingers meet, z points out of the hand, the fingers close along y.

    ``base_w`` is the arm's base in the world, ``in_ee`` the tool in the frame of the arm's ``ee_body``. ``reaches_m``
    are how far the fingers stick out beyond the origin along z, from closed to open in even steps of opening.
    """

    base_w: Pose
    in_ee: Pose
    reaches_m: tuple[float, ...]

    def reach_m(self, opening: float) -> float:
        """How far the fingers stick out at an opening from 0 (closed) to 1 (open)."""
        return float(np.interp(opening, np.linspace(0.0, 1.0, len(self.reaches_m)), self.reaches_m))

    @property
    def longest_m(self) -> float:
        """How far they stick out at most."""
        return max(self.reaches_m)


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
        self.measured = self.tool.base_w.apply(Pose.of(*ee_pose)).apply(self.tool.in_ee)

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
            for share in _SOLVED_AT:
                found = self._kinematics.solve(self._ee(start.towards(end, share)), joints)
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


def measure_tools(embodiment: Embodiment) -> tuple[Tool, ...]:
    """One tool per arm."""
    model = mujoco.MjModel.from_xml_path(str(model_path(embodiment.model)))
    return tuple(_measure(model, arm, Pose(embodiment.base_pos_w)) for arm in embodiment.arms)


def _measure(model: Any, arm: Arm, robot_w: Pose) -> Tool:
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    base = Pose.of(data.body(arm.base_body).xpos, data.body(arm.base_body).xquat)
    fingers = _Fingers(model, arm)
    closing = fingers.middle(0.0) - fingers.middle(1.0)
    quarter_turn = np.pi / 2
    yaw = float(np.arctan2(closing[1], closing[0])) - quarter_turn
    in_ee = Pose((0.0, 0.0, arm.tcp_offset_m), wxyz_from_axis_angle((0.0, 0.0, 1.0), yaw))
    reaches = tuple(fingers.reach(opening) - arm.tcp_offset_m for opening in np.linspace(0.0, 1.0, _SAMPLES))
    return Tool(robot_w.apply(base), in_ee, reaches)


class _Fingers:
    """The moving parts of a gripper in the frame of its ``ee_body``."""

    def __init__(self, model: Any, arm: Arm) -> None:
        self._model, self._data, self._arm = model, mujoco.MjData(model), arm
        self._ids = [int(model.joint(name).id) for name in arm.gripper.joints]
        bodies = {int(model.jnt_bodyid[joint]) for joint in self._ids}
        is_solid = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
        self._geoms = [geom for geom in range(model.ngeom) if is_solid[geom] and int(model.geom_bodyid[geom]) in bodies]

    def middle(self, opening: float) -> Array:
        """The first finger's middle (3,)."""
        self._put(opening)
        body = int(self._model.jnt_bodyid[self._ids[0]])
        return self._local(self._data.xipos[body])

    def reach(self, opening: float) -> float:
        """The farthest that anything solid sticks out along z."""
        self._put(opening)
        return max(self._far(geom) for geom in self._geoms)

    def _put(self, opening: float) -> None:
        gripper = self._arm.gripper
        for joint, wide, shut in zip(self._ids, gripper.open, gripper.closed, strict=True):
            self._data.qpos[self._model.jnt_qposadr[joint]] = shut + (wide - shut) * opening
        mujoco.mj_kinematics(self._model, self._data)

    def _local(self, point: Array) -> Array:
        hand = self._data.body(self._arm.ee_body)
        local: Array = hand.xmat.reshape(3, 3).T @ (point - hand.xpos)
        return local

    def _far(self, geom: int) -> float:
        """By the box around the geom in its own axes."""
        turn = self._data.geom_xmat[geom].reshape(3, 3)
        middle, half = self._model.geom_aabb[geom][:3], self._model.geom_aabb[geom][3:]
        along = self._data.body(self._arm.ee_body).xmat.reshape(3, 3)[:, 2]
        centre = self._local(self._data.geom_xpos[geom] + turn @ middle)
        return float(centre[2] + np.abs(along @ turn) @ half)


def wait(steps: int) -> Motion:
    """Hold still for so many control steps."""
    for _ in range(steps):
        yield


def move(hand: Hand, target: Pose, *, fastest_m_s: float = FASTEST_M_S) -> Motion:
    """In a straight line, starting and ending at rest; then until the hand is there, if it gets there."""
    yield from _glide(hand, target, fastest_m_s)
    yield from arrive(hand)


def arrive(hand: Hand) -> Motion:
    """Until the hand is where its command is, or does not get there in time."""
    for _ in range(_SETTLE_STEPS):
        if hand.measured.distance_m(hand.command) < _CLOSE_M and hand.measured.angle_rad(hand.command) < _CLOSE_RAD:
            return
        yield


def travel(hand: Hand, target: Pose, height_z: float) -> Motion:
    """Up to a height at which nothing is in the way, across, and down."""
    height_z = max(height_z, target.pos[2])
    start = hand.command
    if _at_height(start, height_z).distance_m(_at_height(target, height_z)) > _CLOSE_M:
        yield from _glide(hand, _at_height(start, max(height_z, start.pos[2])), FASTEST_M_S)
        yield from _glide(hand, _at_height(target, height_z), FASTEST_M_S)
    yield from move(hand, target)


def grip(hand: Hand, opening: float) -> Motion:
    """Open or close, and give the fingers time."""
    hand.opening = opening
    yield from wait(_GRIP_STEPS)


def together(*motions: Motion) -> Motion:
    """All at once, until the last is done."""
    running = list(motions)
    while running:
        running = [motion for motion in running if _advance(motion)]
        if running:
            yield


def _glide(hand: Hand, target: Pose, fastest_m_s: float) -> Motion:
    start = hand.command
    for share in _shares(_seconds(start, target, fastest_m_s)):
        hand.command = start.towards(target, share)
        yield


def _at_height(pose: Pose, z: float) -> Pose:
    return Pose((pose.pos[0], pose.pos[1], z), pose.quat_wxyz)


def _seconds(start: Pose, end: Pose, fastest_m_s: float) -> float:
    """A smooth motion is half as fast again in the middle as on average."""
    return 1.5 * max(start.distance_m(end) / fastest_m_s, start.angle_rad(end) / FASTEST_RAD_S)


def _shares(seconds: float) -> Iterator[float]:
    steps = max(1, math.ceil(seconds * CONTROL_HZ))
    for step in range(1, steps + 1):
        time = step / steps
        yield time * time * (3 - 2 * time)


def _advance(motion: Motion) -> bool:
    try:
        next(motion)
    except StopIteration:
        return False
    return True
