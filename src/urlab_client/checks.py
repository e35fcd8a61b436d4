"""Checks of numbers that callers give, before anything is sent; ValueError says what was wrong."""

import math
from collections.abc import Sequence
from typing import SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

Vector = Sequence[float]
Number = SupportsFloat | SupportsIndex | str


def finite(what: str, value: Number) -> float:
    """The value as a float; ValueError that names ``what`` unless it is a finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number, not {value!r}")
    return number


def switch(what: str, value: object) -> bool:
    """The value as a bool; ValueError that names ``what`` unless it is true or false, or 1 or 0."""
    if not isinstance(value, bool | np.bool_) and value not in (0, 1):
        raise ValueError(f"{what} must be True or False, not {value!r}")
    return bool(value)


def numbers(what: str, vector: Vector, size: int = 3) -> list[float]:
    """A vector as it travels; ValueError when it has another length. The server refuses what is not finite."""
    try:
        values = [float(value) for value in vector]
    except (TypeError, ValueError) as wrong:
        raise ValueError(f"{what} takes {size} numbers, not {vector!r}") from wrong
    return _exactly(what, values, size)


def maybe_numbers(what: str, vector: Vector | None, size: int = 3) -> list[float] | None:
    """`numbers`, or None for None."""
    return None if vector is None else numbers(what, vector, size)


def finite_numbers(what: str, vector: Vector, size: int = 3) -> list[float]:
    """A vector of finite numbers; ValueError names the one that is not."""
    return _exactly(what, [finite(f"{what}[{place}]", value) for place, value in enumerate(vector)], size)


def per_name(names: Sequence[str], owner: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """One finite number per name, (n,); ValueError that names the one that is not, or says how many there should be.

    A single number counts for all of them.
    """
    given = np.asarray(values, dtype=object)
    if given.ndim == 0:
        given = np.full(len(names), given.item(), dtype=object)
    if given.shape != (len(names),):
        raise ValueError(f"{owner} takes {len(names)} numbers ({', '.join(names)}), not an array of {given.shape}")
    return np.array([finite(f"{owner}: {name}", value) for name, value in zip(names, given, strict=True)])


def _exactly(what: str, values: list[float], size: int) -> list[float]:
    if len(values) != size:
        raise ValueError(f"{what} needs {size} numbers, not {len(values)}: {values}")
    return values
