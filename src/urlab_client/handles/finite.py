"""Numbers that may go into a simulation: finite ones only."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def finite(what: str, value: Any) -> float:
    """The value as a float; ValueError that names ``what`` unless it is a finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number, not {value!r}")
    return number


def three(what: str, vector: Sequence[float]) -> list[float]:
    """Three finite numbers; ValueError that names ``what`` for anything else."""
    numbers = [finite(f"{what}[{place}]", value) for place, value in enumerate(vector)]
    if len(numbers) != 3:
        raise ValueError(f"{what} needs 3 numbers, not {len(numbers)}")
    return numbers


def per_name(names: Sequence[str], owner: str, values: Any) -> npt.NDArray[np.float64]:
    """One finite number per name, (n,); ValueError that names the one that is not, or says how many there should be.

    A single number counts for all of them.
    """
    given = np.asarray(values, dtype=object)
    if given.ndim == 0:
        given = np.full(len(names), given.item(), dtype=object)
    if given.shape != (len(names),):
        raise ValueError(f"{owner} takes {len(names)} numbers ({', '.join(names)}), not an array of {given.shape}")
    return np.array([finite(f"{owner}: {name}", value) for name, value in zip(names, given, strict=True)])
