"""Actions as clients send them, read with every check and refused in words.

An action is a dict: ``control_type`` ("joint_position" or "ee_pose") and ``action``, and optionally ``is_rel``,
``base_motion`` and ``base_is_rel``. Other keys are ignored. A gripper's numbers are absolute whatever ``is_rel`` says.
The HTTP server imports this module and starts without MuJoCo: only workers need it.
"""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
import numpy as np

from urlab.errors import BadValue, known
from urlab.evaluation.embodiments import Arm, Embodiment, Numbers
from urlab.geometry import Quat, Vec3, normalised

LARGEST = 1e6
"""Beyond any joint, length or angle; sums of such numbers stay finite however long an episode is."""

_SHORTEST_QUAT = 1e-3
_STILL: Vec3 = (0.0, 0.0, 0.0)
_REAL_KINDS = "iuf"
_FLOATS = {float}
_LONGEST_QUOTE = 40


class ActionError(BadValue):
    """An action that cannot be carried out; the message names the field, what it takes and what was sent."""


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

    ``base_motion`` is (x, y, yaw in degrees): it is written into an episode's records, but no base here moves.
    """

    kind: ControlType
    is_rel: bool
    joints: Numbers = ()
    arms: tuple[ArmTarget, ...] = ()
    base_motion: Vec3 = _STILL


def parse_action(raw: object, embodiment: Embodiment, *, default_is_rel: bool) -> Action:
    """Read one action for that robot; ActionError says what is wrong with which field.

    Without ``is_rel`` it means ``default_is_rel``, an option of the server.
    """
    if not isinstance(raw, Mapping):
        raise ActionError(f"an action is a dict with control_type and action, but {describe(raw)} was sent")
    kind = _control_type(raw)
    if "action" not in raw:
        raise ActionError(f"action is missing; the keys sent are: {known(map(str, raw))}")
    value = raw["action"]
    _read_flag("base_is_rel", raw.get("base_is_rel"), True)  # no base moves: checked, and of no effect
    return Action(
        kind=kind,
        is_rel=_read_flag("is_rel", raw.get("is_rel"), default_is_rel),
        joints=_joints(value, embodiment) if kind is ControlType.JOINT_POSITION else (),
        arms=_arms(value, embodiment) if kind is ControlType.EE_POSE else (),
        base_motion=_base_motion(raw.get("base_motion")),
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
    return _read_numbers("action", value, embodiment.action_length, embodiment.joints_in_words)


def _arms(value: object, embodiment: Embodiment) -> tuple[ArmTarget, ...]:
    """A single arm's target may stand alone, or as the only one of a list of arms."""
    arms = embodiment.arms
    if len(arms) == 1 and _length(value) != 1:
        return (_arm("action", value, arms[0], embodiment),)
    if _length(value) != len(arms):
        raise _misshapen("action", value, arms)
    targets: Sequence[object] = value  # type: ignore[assignment]  # `_length` has checked it
    return tuple(_arm(f"action[{index}]", targets[index], arm, embodiment) for index, arm in enumerate(arms))


def _arm(field: str, value: object, arm: Arm, embodiment: Embodiment) -> ArmTarget:
    if _length(value) != 3:
        raise _misshapen(field, value, [arm])
    parts: Sequence[object] = value  # type: ignore[assignment]  # `_length` has checked it
    x, y, z = _read_numbers(f"{field}[0]", parts[0], 3, "position")
    quat = _read_numbers(f"{field}[1]", parts[1], 4, "quaternion w, x, y, z")
    if math.hypot(*quat) < _SHORTEST_QUAT:
        raise ActionError(f"{field}[1] is a quaternion w, x, y, z, but {quat} is no rotation")
    gripper = _read_numbers(f"{field}[2]", parts[2], len(arm.gripper.joints), f"gripper of {embodiment.name}")
    return ArmTarget((x, y, z), normalised(quat), gripper)


def _length(value: object) -> int | None:
    """How many values a sequence holds; None when it is no sequence."""
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
    x, y, yaw = _read_numbers("base_motion", value, 3, "x, y in metres, yaw in degrees")
    return x, y, yaw


def _read_numbers(field: str, value: object, length: int, meaning: str) -> tuple[float, ...]:
    """``length`` finite numbers from a list, a tuple or an array of one dimension; ActionError if it is anything else.

    ``meaning`` says what the numbers are.
    """
    is_array = isinstance(value, np.ndarray) and value.shape == (length,) and value.dtype.kind in _REAL_KINDS
    values = value.tolist() if is_array else value  # type: ignore[attr-defined]
    if not isinstance(values, list | tuple) or len(values) != length:
        raise ActionError(f"{field} takes {length} numbers ({meaning}), but {describe(value)} was sent")
    if _are_small_floats(values):
        return tuple(values)
    return tuple([_number(field, index, one) for index, one in enumerate(values)])


def _read_flag(field: str, value: object, default: bool) -> bool:
    """True or false; the default for None."""
    if value is None:
        return default
    if not isinstance(value, bool | np.bool_):
        raise ActionError(f"{field} is true or false, but {describe(value)} was sent")
    return bool(value)


def describe(value: object) -> str:
    """What was sent, in a few words, however large it is."""
    if value is None:
        return "nothing"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    if isinstance(value, list | tuple | dict | set | bytes):
        return f"a {type(value).__name__} of length {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST:
        return "a whole number beyond all bounds"
    text = repr(value) if isinstance(value, str | int | float | np.generic) else f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


def _are_small_floats(values: Sequence[Any]) -> bool:
    """As most actions are, which need no look at each number. A NaN hides from min and max, but not in a sum."""
    if not values or set(map(type, values)) != _FLOATS:
        return False
    return min(values) >= -LARGEST and max(values) <= LARGEST and math.isfinite(sum(values))


def _number(field: str, index: int, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ActionError(f"{field}[{index}] is a number, but {describe(value)} was sent")
    if not -LARGEST <= value <= LARGEST:
        wrong = "not finite" if isinstance(value, float | np.floating) and not np.isfinite(value) else "too large"
        raise ActionError(f"{field}[{index}] is {wrong}: {describe(value)} was sent")
    return float(value)
