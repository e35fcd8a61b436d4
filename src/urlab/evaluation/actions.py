"""What a policy wants, read from what a client sent.

An action is a dict: ``control_type`` ("joint_position" or "ee_pose") and ``action``, and optionally ``is_rel``,
``base_motion`` and ``base_is_rel``. Other keys are ignored. A gripper's numbers are absolute whatever ``is_rel`` says.
"""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec
import numpy as np

from urlab.errors import known
from urlab.evaluation.embodiments import Arm, Embodiment, Numbers
from urlab.evaluation.numbers import ActionError, describe, read_flag, read_numbers
from urlab.geometry import Quat, Vec3, normalised

__all__ = ["Action", "ActionError", "ArmTarget", "ControlType", "parse_action"]

_SHORTEST_QUAT = 1e-3
_STILL: Vec3 = (0.0, 0.0, 0.0)


class ControlType(StrEnum):
    """What the numbers of an action mean."""

    JOINT_POSITION = "joint_position"
    EE_POSE = "ee_pose"


_CONTROL_TYPES = {kind.value: kind for kind in ControlType}


class ArmTarget(msgspec.Struct, frozen=True):
    """A pose of an arm's hand in the frame of the arm's base, or a change of it, and its gripper's positions."""

    pos: Vec3
    quat_wxyz: Quat
    gripper: Numbers


class Action(msgspec.Struct, frozen=True):
    """One action, checked. ``joints`` belongs to joint_position and ``arms`` to ee_pose; the other one is empty.

    ``base_motion`` is (x, y, yaw in degrees). It is checked and kept, but no robot here has a base that moves.
    """

    kind: ControlType
    is_rel: bool
    joints: Numbers = ()
    arms: tuple[ArmTarget, ...] = ()
    base_motion: Vec3 = _STILL
    base_is_rel: bool = True


def parse_action(raw: object, embodiment: Embodiment, *, default_is_rel: bool) -> Action:
    """Read one action for that robot; ActionError says what is wrong with which field.

    Without ``is_rel`` it means what the server was told: ``default_is_rel``.
    """
    if not isinstance(raw, Mapping):
        raise ActionError(f"an action is a dict with control_type and action, but {describe(raw)} was sent")
    kind = _control_type(raw)
    if "action" not in raw:
        raise ActionError(f"action is missing; the keys sent are: {known(map(str, raw))}")
    value = raw["action"]
    return Action(
        kind=kind,
        is_rel=read_flag("is_rel", raw.get("is_rel"), default_is_rel),
        joints=_joints(value, embodiment) if kind is ControlType.JOINT_POSITION else (),
        arms=_arms(value, embodiment) if kind is ControlType.EE_POSE else (),
        base_motion=_base_motion(raw.get("base_motion")),
        base_is_rel=read_flag("base_is_rel", raw.get("base_is_rel"), True),
    )


def _control_type(raw: Mapping[object, object]) -> ControlType:
    word = raw.get("control_type")
    kind = _CONTROL_TYPES.get(word) if isinstance(word, str) else None
    if kind is not None:
        return kind
    sent = f"{describe(word)} was sent"
    if "control_type" not in raw:
        sent = f"it is missing; the keys sent are: {known(map(str, raw))}"
    raise ActionError(f"control_type is one of {known(ControlType)}, but {sent}")


def _joints(value: object, embodiment: Embodiment) -> Numbers:
    return read_numbers("action", value, embodiment.action_length, embodiment.joints_in_words)


def _arms(value: object, embodiment: Embodiment) -> tuple[ArmTarget, ...]:
    """A single arm's target may stand alone, or as the only one of a list of arms."""
    arms = embodiment.arms
    if len(arms) == 1 and _length(value) != 1:
        return (_arm("action", value, arms[0], embodiment),)
    if _length(value) != len(arms):
        raise _misshapen("action", value, arms)
    targets: Sequence[object] = value  # type: ignore[assignment]  # _length has seen to it
    return tuple(_arm(f"action[{index}]", targets[index], arm, embodiment) for index, arm in enumerate(arms))


def _arm(field: str, value: object, arm: Arm, embodiment: Embodiment) -> ArmTarget:
    if _length(value) != 3:
        raise _misshapen(field, value, [arm])
    parts: Sequence[object] = value  # type: ignore[assignment]  # _length has seen to it
    x, y, z = read_numbers(f"{field}[0]", parts[0], 3, "position")
    quat = read_numbers(f"{field}[1]", parts[1], 4, "quaternion w, x, y, z")
    if math.hypot(*quat) < _SHORTEST_QUAT:
        raise ActionError(f"{field}[1] is a quaternion w, x, y, z, but {quat} is no rotation")
    gripper = read_numbers(f"{field}[2]", parts[2], len(arm.gripper.joints), f"gripper of {embodiment.name}")
    return ArmTarget((x, y, z), normalised(quat), gripper)


def _length(value: object) -> int | None:
    """How many things a sequence holds; None when it is no sequence."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return None
    return len(value) if isinstance(value, list | tuple | np.ndarray) else None


def _misshapen(field: str, value: object, arms: Sequence[Arm]) -> ActionError:
    shapes = [f"(position 3, quaternion 4, gripper {len(arm.gripper.joints)})" for arm in arms]
    shape = shapes[0] if len(shapes) == 1 else f"one per arm: ({', '.join(shapes)})"
    return ActionError(f"{field} takes {shape}, but {describe(value)} was sent")


def _base_motion(value: object) -> Vec3:
    if value is None:
        return _STILL
    x, y, yaw = read_numbers("base_motion", value, 3, "x, y in metres, yaw in degrees")
    return x, y, yaw
