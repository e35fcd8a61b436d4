"""Numbers from strangers: read with every check, refused in words."""

from typing import Any

import numpy as np

from urlab.errors import BadValue

LARGEST = 1e6
"""Beyond any joint, length or angle; sums of such numbers stay finite however long an episode is."""

_REAL_KINDS = "iuf"
_LONGEST_QUOTE = 40


class ActionError(BadValue):
    """An action that cannot be carried out; the message names the field, what it takes and what was sent."""


def read_numbers(field: str, value: object, length: int, meaning: str) -> tuple[float, ...]:
    """``length`` finite numbers from a list, a tuple or an array of one dimension; ActionError if it is anything else.

    ``meaning`` ends the sentence "takes N numbers".
    """
    expected = f"{field} takes {length} numbers{meaning and f' ({meaning})'}"
    if isinstance(value, np.ndarray):
        if value.shape != (length,) or value.dtype.kind not in _REAL_KINDS:
            raise ActionError(f"{expected}, but {describe(value)} was sent")
        value = value.tolist()
    if not isinstance(value, list | tuple) or len(value) != length:
        raise ActionError(f"{expected}, but {describe(value)} was sent")
    return tuple(_number(field, index, one) for index, one in enumerate(value))


def read_flag(field: str, value: object, default: bool) -> bool:
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


def _number(field: str, index: int, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ActionError(f"{field}[{index}] is a number, but {describe(value)} was sent")
    if not -LARGEST <= value <= LARGEST:
        wrong = "not finite" if isinstance(value, float | np.floating) and not np.isfinite(value) else "too large"
        raise ActionError(f"{field}[{index}] is {wrong}: {describe(value)} was sent")
    return float(value)
