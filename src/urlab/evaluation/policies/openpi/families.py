"""The families of policies that are known: DROID, LIBERO and ALOHA.

Keys, rows and rates are those of openpi's examples.
"""

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.policies.base import Action, Observation, embodiment_of
from urlab.evaluation.policies.openpi.mapping import (
    Rows,
    arm_joints,
    carried_on,
    closedness,
    gripper_at,
    last_rows,
    picture_of,
    shares,
)
from urlab.geometry import Pose, Quat, multiply, normalised

FULL_SPEED_RAD = 0.2
"""How far ahead of a joint its target is at a velocity of 1, and so how far it may go in one row."""
_ARM_WIDTH = 7
_CLOSES_ABOVE = 0.5
# Any camera that sees the scene will do for the policies. This one is beside the robot, as most of DROID's are.
_EXTERIOR, _WRIST = "obs_camera_2", "realsense"
REACH = np.array([0.05, 0.05, 0.05, 0.5, 0.5, 0.5])
"""How far ahead of the hand 1 in a row sets the goal: metres and radians."""
BASE_POS_W = (-0.66, 0.0, 0.912)
"""Where the robot's base is in LIBERO's scenes with a table, its axes along the world's; those on a floor differ."""
GRIP_POINT = Pose((0.0, 0.0, 0.097))
"""The point between the fingers that moves and is told, in the frame of the hand."""
_TINY = 1e-9
Vector = NDArray[np.float64]
STIFFNESS_PER_S2 = 150.0
"""Of the spring, by unit of mass; its damping is critical."""
_RATE_PER_S = math.sqrt(STIFFNESS_PER_S2)
_CAMERAS = {"cam_high": "top_camera", "cam_left_wrist": "left_camera", "cam_right_wrist": "right_camera"}
_ARM_WIDTH = 7


class Droid:
    """Rows of 8 at 15 Hz: 7 joint velocities from -1 to 1, and the gripper, closed above a half.

    A row is carried out in full: at a velocity of 1 the target moves 0.2 rad. It goes on from the last target, but at
    the start of an answer at most 0.2 rad from where the arm is. DROID's own targets never are farther from it.
    """

    arms: ClassVar[int] = 1
    width: ClassVar[int] = _ARM_WIDTH + 1
    row_hz: ClassVar[float] = 15.0
    default_rows: ClassVar[int] = 8

    def __init__(self) -> None:
        self._target: Rows | None = None

    def encode(self, observation: Observation) -> dict[str, Any]:
        """One camera beside the robot, one at the wrist; joints in radians, the gripper from 0 (open) to 1."""
        embodiment = embodiment_of(observation)
        joints, gripper = arm_joints(observation, embodiment, 0)
        return {
            "observation/exterior_image_1_left": picture_of(observation, _EXTERIOR),
            "observation/wrist_image_left": picture_of(observation, _WRIST),
            "observation/joint_position": joints.astype(np.float32),
            "observation/gripper_position": np.array([closedness(embodiment.arms[0], gripper)], np.float32),
            "prompt": observation["instruction"],
        }

    def decode(self, rows: Rows, observation: Observation) -> list[Action]:
        """Joint positions; a row is shared out over the control steps that it lasts."""
        joints = arm_joints(observation, embodiment_of(observation), 0)[0]
        target = carried_on(self._target, joints, FULL_SPEED_RAD)
        deltas = FULL_SPEED_RAD * np.clip(rows[:, :_ARM_WIDTH], -1.0, 1.0)
        actions = []
        for covered in shares(len(rows), self.row_hz):
            target = sum((part * deltas[row] for row, part in covered), target)
            actions.append(_action(target, rows[covered[-1][0]], observation))
        self._target = target
        return actions


class DroidJoints(Droid):
    """Rows of 8 at 15 Hz: 7 joint positions in radians, and the gripper, closed above a half."""

    def decode(self, rows: Rows, observation: Observation) -> list[Action]:
        """Joint positions: for each control step the row that is due at its end."""
        return [_action(rows[row, :_ARM_WIDTH], rows[row], observation) for row in last_rows(len(rows), self.row_hz)]


class Libero:
    """Rows of 7 at 20 Hz: motion (3) and turn as axis times angle (3), from -1 to 1 in the base's axes; gripper.

    The hand moves as LIBERO's would, which is less than a row says (see `following`). The gripper closes above 0 and
    opens below. Motions go on from the last target, but start at most one `REACH` from where the hand is.
    """

    arms: ClassVar[int] = 1
    width: ClassVar[int] = 7
    row_hz: ClassVar[float] = 20.0
    default_rows: ClassVar[int] = 5

    def __init__(self) -> None:
        self._target: Pose | None = None
        self._velocity = np.zeros(6)

    def encode(self, observation: Observation) -> dict[str, Any]:
        """State: grip point (3) in LIBERO's world, axis times angle of the hand (3), fingers (2) as (q, -q).

        Pictures are mirrored left to right, because those that LIBERO's policies are trained on are.
        """
        hand = _hand(observation)
        fingers = arm_joints(observation, embodiment_of(observation), 0)[1]
        position = Pose(BASE_POS_W).apply(hand).apply(GRIP_POINT).pos
        # A hand that points down is half a turn about +X, now a little more, now a little less: never about -X.
        state = [*position, *axis_angle(_with_positive(hand.quat_wxyz, 1)), fingers[0], -fingers[1]]
        return {
            "observation/image": picture_of(observation, "obs_camera", mirrored=True),
            "observation/wrist_image": picture_of(observation, "realsense", mirrored=True),
            "observation/state": np.array(state, np.float32),
            "prompt": observation["instruction"],
        }

    def decode(self, rows: Rows, observation: Observation) -> list[Action]:
        """Absolute poses of the hand: a relative one would turn the position about the base as well."""
        arm = embodiment_of(observation).arms[0]
        grip = self._start(_hand(observation).apply(GRIP_POINT))
        goals = REACH * np.clip(rows[:, :6], -1.0, 1.0)
        way, begun = np.zeros(6), -1
        actions = []
        for covered in shares(len(rows), self.row_hz):
            for row, part in covered:
                way, begun = (way if row == begun else goals[row]), row
                moved, self._velocity = follow(way, self._velocity, part / self.row_hz)
                grip, way = _moved(grip, moved), way - moved
            hand = grip.apply(GRIP_POINT.inverse())
            pose = [list(hand.pos), list(normalised(hand.quat_wxyz)), gripper_at(arm, float(rows[begun, 6] > 0))]
            actions.append({"control_type": "ee_pose", "action": pose, "is_rel": False})
        self._target = grip
        return actions

    def _start(self, grip: Pose) -> Pose:
        if self._target is None:
            return grip
        between = multiply(self._target.quat_wxyz, Pose(quat_wxyz=grip.quat_wxyz).inverse().quat_wxyz)
        turn = axis_angle(_with_positive(between, 0))
        ahead = np.array([*np.subtract(self._target.pos, grip.pos), *turn])
        return _moved(grip, carried_on(ahead, np.zeros(6), REACH))


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


def axis_angle(quat_wxyz: Quat) -> list[float]:
    """Axis times angle, the angle from 0 to a whole turn: more than half a turn where w is negative."""
    w, *axis = quat_wxyz
    sine = math.hypot(*axis)
    scale = 2 * math.atan2(sine, w) / sine if sine > _TINY else 0.0
    return [scale * part for part in axis]


def quat_of(turn: Rows) -> Quat:
    """The rotation of an axis times angle."""
    angle = float(np.linalg.norm(turn))
    scale = math.sin(angle / 2) / angle if angle > _TINY else 0.5
    return math.cos(angle / 2), *(float(scale * part) for part in turn)  # type: ignore[return-value]


def follow(way: Vector, velocity: Vector, time_s: float) -> tuple[Vector, Vector]:
    """How much of the ``way`` to the goal is covered in that time, and the velocity at its end."""
    fading = math.exp(-_RATE_PER_S * time_s)
    pull = velocity - _RATE_PER_S * way
    left = (way - pull * time_s) * fading
    return way - left, pull * fading + _RATE_PER_S * left


def _action(joints: Rows, row: Rows, observation: Observation) -> Action:
    """The gripper is all open or all closed, as openpi's example has it."""
    arm = embodiment_of(observation).arms[0]
    numbers = [*joints.tolist(), *gripper_at(arm, float(row[_ARM_WIDTH] > _CLOSES_ABOVE))]
    return {"control_type": "joint_position", "action": numbers, "is_rel": False}


def _with_positive(quat_wxyz: Quat, place: int) -> Quat:
    """The same rotation, that part of it not negative."""
    w, x, y, z = quat_wxyz
    return (-w, -x, -y, -z) if quat_wxyz[place] < 0 else quat_wxyz


def _hand(observation: Observation) -> Pose:
    """Of the hand in the base's frame."""
    (x, y, z), quat_wxyz = observation["ee_pose_state"]
    return Pose((float(x), float(y), float(z)), normalised([float(part) for part in quat_wxyz]))


def _moved(pose: Pose, motion: Rows) -> Pose:
    """After a motion (3) and a turn (3) about its own origin, both in the axes of the frame that it is in."""
    x, y, z = np.add(pose.pos, motion[:3]).tolist()
    return Pose((x, y, z), normalised(multiply(quat_of(motion[3:]), pose.quat_wxyz)))
