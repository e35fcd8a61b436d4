"""Numbers from strangers: read with every check, refused in words."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from urlab.errors import BadValue

LARGEST = 1e6
"""Beyond any joint, length or angle; sums of such numbers stay finite however long an episode is."""

_REAL_KINDS = "iuf"
_FLOATS = {float}
_LONGEST_QUOTE = 40


class ActionError(BadValue):
    """An action that cannot be carried out; the message names the field, what it takes and what was sent."""


def read_numbers(field: str, value: object, length: int, meaning: str) -> tuple[float, ...]:
    """``length`` finite numbers from a list, a tuple or an array of one dimension; ActionError if it is anything else.

    ``meaning`` says what the numbers are.
    """
    is_numbers = not isinstance(value, np.ndarray) or (value.ndim == 1 and value.dtype.kind in _REAL_KINDS)
    values = value.tolist() if isinstance(value, np.ndarray) and is_numbers else value
    if not is_numbers or not isinstance(values, list | tuple) or len(values) != length:
        raise ActionError(f"{field} takes {length} numbers ({meaning}), but {describe(value)} was sent")
    if _are_small_floats(values):
        return tuple(values)
    return tuple([_number(field, index, one) for index, one in enumerate(values)])


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


def _are_small_floats(values: Sequence[Any]) -> bool:
    """As most are: nothing else needs a look at each. A NaN hides from min and max, but not in a sum."""
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
