"""Checks of numbers that came from outside: how many there are, and that each is finite."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue, DimMismatch

_FEW = 8


def finite_number(what: str, value: object) -> float:
    """``value`` as a float. BadValue names ``what`` unless it is a finite number; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadValue(f"{what} must be a finite number, not {value!r}")
    if not _is_finite(value):
        raise BadValue(f"{what} must be finite, but is {value!r}")
    return float(value)


def finite_numbers(
    what: str,
    values: Sequence[float] | NDArray[np.float64],
    count: int | None = None,
    names: Sequence[str] = (),
) -> NDArray[np.float64]:
    """``values`` as an array of its own, (count,). DimMismatch for another shape, BadValue unless all are finite.

    ``names`` are what messages call the numbers, if they have names.
    """
    if count is not None and len(values) != count:
        raise DimMismatch(f"{what} takes {count} numbers, but has {len(values)}")
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise BadValue(f"{what} takes finite numbers, not {values!r}") from None
    if array.ndim != 1:
        raise DimMismatch(f"{what} takes {len(values)} numbers, but has the shape {array.shape}")
    if not np.isfinite(array).all():
        wrong = int(np.argmin(np.isfinite(array)))
        stated = str(list(values)) if len(values) <= _FEW else f"{array[wrong]} at index {wrong}"
        stated = f"{array[wrong]} for {names[wrong]}" if names else stated
        raise BadValue(f"{what} must be finite, but is {stated}")
    return array


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False  # a whole number beyond every float
