"""LIBERO: a Franka with the Panda hand, driven by small motions of the hand.

Keys and rows are those of openpi's example for LIBERO; frames, rates and the controller those of LIBERO and robosuite.
"""

import math
from typing import Any, ClassVar

import numpy as np

from urlab.evaluation.policies.base import Action, Observation, embodiment_of
from urlab.evaluation.policies.openpi.following import follow
from urlab.evaluation.policies.openpi.mapping import Rows, arm_joints, carried_on, gripper_at
from urlab.evaluation.policies.openpi.pictures import picture_of
from urlab.evaluation.policies.openpi.rates import shares
from urlab.geometry import Pose, Quat, multiply, normalised

REACH = np.array([0.05, 0.05, 0.05, 0.5, 0.5, 0.5])
"""How far ahead of the hand 1 in a row sets the goal: metres and radians."""

BASE_POS_W = (-0.66, 0.0, 0.912)
"""Where the robot's base is in LIBERO's scenes with a table, its axes along the world's; those on a floor differ."""

GRIP_POINT = Pose((0.0, 0.0, 0.097))
"""The point between the fingers that moves and is told, in the frame of the hand."""

_TINY = 1e-9


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
