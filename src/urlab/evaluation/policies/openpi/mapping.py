"""Between our observations and actions and those of a family of policies: joints, grippers, pictures, rates."""

import math
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from urlab.evaluation.embodiments import Arm, Embodiment
from urlab.evaluation.policies.base import Action, Observation, PolicyError

Rows = NDArray[np.float64]
SIDE_PX = 224
Picture = NDArray[np.uint8]
CONTROL_HZ = 30.0
_NEAR = 1e-9


class RobotMapping(Protocol):
    """One family: ``width`` numbers in a row of actions, ``row_hz`` rows a second, ``default_rows`` carried out.

    ``arms`` is how many the robot must have. One object serves one episode.
    """

    arms: ClassVar[int]
    width: ClassVar[int]
    row_hz: ClassVar[float]
    default_rows: ClassVar[int]

    def encode(self, observation: Observation) -> dict[str, Any]:
        """What the policy server is sent."""

    def decode(self, rows: Rows, observation: Observation) -> list[Action]:
        """Rows (h, width) as actions of the protocol at the rate of control."""


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
