"""The families of policies: DROID, LIBERO and ALOHA. Keys, rows and rates are those of openpi's examples.

A family translates between our observations and actions and its own: joints, grippers, pictures, rates.
"""

import math
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from urlab.evaluation.embodiments import Arm, Embodiment
from urlab.evaluation.policies.base import Action, Observation, PolicyError, embodiment_of
from urlab.geometry import Pose, Quat, multiply, normalised, rotation_vector, wxyz_from_rotation_vector

FULL_SPEED_RAD = 0.2
"""DROID: how far ahead of a joint its target is at a velocity of 1, and so how far it may go in one row."""
_ARM_WIDTH = 7
_CLOSES_ABOVE = 0.5
# Any camera that sees the scene will do for the policies. This one is beside the robot, as most of DROID's are.
_EXTERIOR, _WRIST = "obs_camera_2", "realsense"
REACH = np.array([0.05, 0.05, 0.05, 0.5, 0.5, 0.5])
"""LIBERO: how far ahead of the hand 1 in a row sets the goal: metres and radians."""
BASE_POS_W = (-0.66, 0.0, 0.912)
"""LIBERO: where the robot's base is in scenes with a table, its axes along the world's; those on a floor differ."""
GRIP_POINT = Pose((0.0, 0.0, 0.097))
"""LIBERO: the point between the fingers that rows move and the state reports, in the frame of the hand."""
STIFFNESS_PER_S2 = 150.0
"""LIBERO: of the controller's spring, by unit of mass; its damping is critical. The default of robosuite."""
_RATE_PER_S = math.sqrt(STIFFNESS_PER_S2)
_CAMERAS = {"cam_high": "top_camera", "cam_left_wrist": "left_camera", "cam_right_wrist": "right_camera"}
Rows = NDArray[np.float64]
SIDE_PX = 224
"""Of the square pictures that the policies are given."""
Picture = NDArray[np.uint8]
CONTROL_HZ = 30.0
"""Of our actions; families have rates of their own."""
_NEAR = 1e-9


class PolicyFamily(Protocol):
    """Policies that share keys and rows of actions: ``width`` numbers in a row, ``row_hz`` rows a second.

    ``default_rows`` of an answer are carried out before the next question. ``arms`` is how many the robot must have.
    One object serves one episode.
    """

    arms: ClassVar[int]
    width: ClassVar[int]
    row_hz: ClassVar[float]
    default_rows: ClassVar[int]

    def encode(self, observation: Observation) -> dict[str, Any]:
        """What the policy server is sent."""

    def decode(self, rows: Rows, observation: Observation) -> list[Action]:
        """Rows (h, width) as actions of the protocol at the rate of control."""


class Droid:
    """DROID: a Franka with a Robotiq gripper.

    Rows of 8 at 15 Hz: 7 joint velocities from -1 to 1, and the gripper, closed above a half.
    A row is carried out in full: at a velocity of 1 the target moves 0.2 rad. It goes on from the last target, but at
    the start of an answer at most 0.2 rad from where the arm is. DROID's own targets never are farther from it.
    The meaning of a row is that of DROID's own driver. How fast the real arm follows its targets has no public source;
    openpi's authors call it hard to match in a simulation. Checkpoints that give joint positions do not depend on it.
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
    """LIBERO: a Franka with the Panda hand. Frames, rates and the controller are those of LIBERO and robosuite.

    Rows of 7 at 20 Hz: motion (3) and turn as axis times angle (3), from -1 to 1 in the base's axes; gripper. The hand
    moves as LIBERO's would, which is less than a row says (see `follow`). The gripper closes above 0 and opens below.
    Motions go on from the last target, but start at most one `REACH` from where the hand is.
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
        state = [*position, *rotation_vector(_with_positive(hand.quat_wxyz, 1)), fingers[0], -fingers[1]]
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
        turn = rotation_vector(_with_positive(between, 0))
        ahead = np.array([*np.subtract(self._target.pos, grip.pos), *turn])
        return _moved(grip, carried_on(ahead, np.zeros(6), REACH))


class Aloha:
    """ALOHA: rows of 14 at 50 Hz: for the left arm and the right 6 joint positions in radians, and the gripper.

    Joints are passed on as they are: our arms are others, and nothing says that their joints have the zeros and signs
    of ALOHA's.
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


FAMILIES: dict[str, type[PolicyFamily]] = {
    "droid": Droid,
    "droid_joints": DroidJoints,
    "libero": Libero,
    "aloha": Aloha,
}


FAMILY_BY_ROBOT = {"franka_robotiq": "droid", "franka_panda": "libero", "aloha": "aloha"}
"""The family of a robot unless another is named: name of the embodiment -> key of `FAMILIES`."""


def follow(way: Rows, velocity: Rows, time_s: float) -> tuple[Rows, Rows]:
    """How much of the ``way`` to the goal LIBERO's hand covers in that time, and its velocity at the end.

    A row sets the goal that far from where the hand is, and a spring pulls the hand there until the next row sets
    another: in free motion the hand covers about a quarter of what rows say. What the arm's own inertia and friction
    take off that is left out: measured in robosuite, about a tenth of a motion, and more of a turn about the vertical.
    """
    fading = math.exp(-_RATE_PER_S * time_s)
    pull = velocity - _RATE_PER_S * way
    left = (way - pull * time_s) * fading
    return way - left, pull * fading + _RATE_PER_S * left


def checked_rows(answer: dict[str, Any], width: int) -> Rows:
    """The ``actions`` of an answer as (h, width), or PolicyError."""
    if "actions" not in answer:
        raise PolicyError(
            f"the policy server's answer has no 'actions'; it has: {', '.join(map(str, answer)) or 'none'}"
        )
    try:
        rows = np.asarray(answer["actions"], dtype=np.float64)
    except (TypeError, ValueError) as unfit:
        raise PolicyError(f"the policy server's actions are not numbers: {unfit}") from unfit
    if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] < width:
        raise PolicyError(f"the policy server's actions have the shape {rows.shape}; (h, {width}) is expected")
    if not np.isfinite(rows[:, :width]).all():
        raise PolicyError("the policy server's actions are not all finite")
    return rows[:, :width]


def arm_joints(observation: Observation, embodiment: Embodiment, place: int) -> tuple[Rows, Rows]:
    """Measured joint positions of an arm, and of its gripper."""
    state = np.asarray(observation["joint_position_state"], dtype=np.float64)
    begin = sum(len(arm.joints) + len(arm.gripper.joints) for arm in embodiment.arms[:place])
    middle = begin + len(embodiment.arms[place].joints)
    return state[begin:middle], state[middle : middle + len(embodiment.arms[place].gripper.joints)]


def carried_on(last: Rows | None, measured: Rows, reach: float | Rows) -> Rows:
    """Where the next rows start: at the last target, which the robot may lag behind, but within reach of the robot.

    To start from the robot would lose its lag with every answer; to start from the target would wind it up against
    whatever holds the robot.
    """
    return measured if last is None else measured + np.clip(last - measured, -reach, reach)


def closedness(arm: Arm, gripper: Rows) -> float:
    """0 for open, 1 for closed, from the gripper's first joint."""
    wide, shut = arm.gripper.open[0], arm.gripper.closed[0]
    return float(np.clip((gripper[0] - wide) / (shut - wide), 0.0, 1.0))


def gripper_at(arm: Arm, closed: float) -> list[float]:
    """The gripper's entries of an action, from 0 (open) to 1 (closed)."""
    part = min(1.0, max(0.0, closed))
    return [(1 - part) * wide + part * shut for wide, shut in zip(arm.gripper.open, arm.gripper.closed, strict=True)]


def picture_of(observation: Observation, camera: str, *, mirrored: bool = False) -> Picture:
    """What a camera sees, (224, 224, 3); if wanted, left and right changed over."""
    views: dict[str, Any] = observation.get("camera_data") or {}
    if camera not in views:
        seen = ", ".join(sorted(views)) or "none: the server runs without cameras"
        raise PolicyError(f"this policy looks through {camera!r}, but the observation has cameras: {seen}")
    rgb: Picture = views[camera]["rgb"]
    return resize_with_pad(rgb[:, ::-1] if mirrored else rgb)


def resize_with_pad(rgb: Picture, side_px: int = SIDE_PX) -> Picture:
    """Fit a picture (H, W, 3) into a black square, in the middle, its proportions kept, to the pixel as openpi does."""
    height, width = rgb.shape[:2]
    ratio = max(height, width) / side_px
    size = (max(1, int(width / ratio)), max(1, int(height / ratio)))
    small = Image.fromarray(np.ascontiguousarray(rgb)).resize(size, Image.Resampling.BILINEAR)
    square = Image.new("RGB", (side_px, side_px))
    square.paste(small, ((side_px - size[0]) // 2, (side_px - size[1]) // 2))
    return np.asarray(square)


def shares(rows: int, row_hz: float, control_hz: float = CONTROL_HZ) -> list[list[tuple[int, float]]]:
    """For every control step the rows that it covers, each with the part of the row that falls into it.

    All parts of a row add up to 1, so deltas that are shared out this way come to the same motion in the same time.
    """
    steps = math.ceil(rows * control_hz / row_hz - _NEAR)
    ratio = row_hz / control_hz
    covered = []
    for step in range(steps):
        begin, end = step * ratio, min((step + 1) * ratio, rows)
        touched = range(math.floor(begin + _NEAR), math.ceil(end - _NEAR))
        covered.append([(row, min(end, row + 1) - max(begin, row)) for row in touched])
    return covered


def last_rows(rows: int, row_hz: float, control_hz: float = CONTROL_HZ) -> list[int]:
    """For every control step the row that is due at its end: how absolute targets are sampled."""
    return [covered[-1][0] for covered in shares(rows, row_hz, control_hz)]


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
    """The hand's pose in the base's frame."""
    return Pose.of(*observation["ee_pose_state"])


def _moved(pose: Pose, motion: Rows) -> Pose:
    """After a motion (3) and a turn (3) about its own origin, both in the axes of the frame that it is in."""
    x, y, z = np.add(pose.pos, motion[:3]).tolist()
    return Pose((x, y, z), normalised(multiply(wxyz_from_rotation_vector(motion[3:].tolist()), pose.quat_wxyz)))
