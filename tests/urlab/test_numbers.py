"""Numbers from outside: what is taken, and how the rest is refused."""

import math

import numpy as np
import pytest

from urlab.errors import BadValue, DimMismatch
from urlab.numbers import finite_number, finite_numbers


def test_finite_numbers_become_an_array_of_their_own() -> None:
    given = np.array([1.0, 2.0])
    taken = finite_numbers("qpos", given, 2)  # type: ignore[arg-type]
    given[0] = 5.0
    assert taken.dtype == np.float64
    assert taken.tolist() == [1.0, 2.0]


def test_another_length_is_a_mismatch() -> None:
    with pytest.raises(DimMismatch, match=r"^qpos takes 3 numbers, but has 2$"):
        finite_numbers("qpos", [1, 2], 3)


def test_few_numbers_are_quoted_and_of_many_the_wrong_one() -> None:
    with pytest.raises(BadValue, match=r"^pos must be finite, but is \[0, nan, 0\]$"):
        finite_numbers("pos", [0, math.nan, 0])
    with pytest.raises(BadValue, match=r"^qpos must be finite, but is -inf at index 7$"):
        finite_numbers("qpos", [0.0] * 7 + [-math.inf] + [0.0] * 5)


@pytest.mark.parametrize("values", [["a"], [None], [[1, 2], [3]], [10**400]])
def test_what_is_no_number_is_refused(values: list[float]) -> None:
    with pytest.raises(BadValue, match=r"pos takes finite numbers|pos must be finite"):
        finite_numbers("pos", values)


@pytest.mark.parametrize("value", [True, "1", None, math.inf, math.nan, 10**400])
def test_what_is_no_finite_number_is_refused(value: object) -> None:
    with pytest.raises(BadValue, match="speed must be"):
        finite_number("speed", value)


def test_whole_numbers_count() -> None:
    assert finite_number("speed", 3) == 3.0


def test_numbers_with_names_are_called_by_them() -> None:
    with pytest.raises(BadValue, match=r"^ctrl must be finite, but is nan for elbow$"):
        finite_numbers("ctrl", [0.0, float("nan")], 2, ("shoulder", "elbow"))


def test_a_list_of_lists_is_a_mismatch() -> None:
    with pytest.raises(DimMismatch, match=r"ctrl takes 1 numbers, but has the shape \(1, 2\)"):
        finite_numbers("ctrl", [[0.0, 1.0]], 1)  # type: ignore[list-item]
