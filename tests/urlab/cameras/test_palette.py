"""Colours that a program can tell apart."""

import pytest

from urlab.cameras.palette import BLACK, distinct_colors


@pytest.mark.parametrize("wanted", [0, 1, 20_000])
def test_there_are_as_many_as_wanted_all_different_and_none_black(wanted: int) -> None:
    colors = distinct_colors(wanted)
    assert len(colors) == len(set(colors)) == wanted
    assert BLACK not in colors
    assert all(0 <= part <= 255 for color in colors for part in color)


def test_the_first_ones_are_always_the_same() -> None:
    assert distinct_colors(3) == distinct_colors(9)[:3] == [(255, 0, 0), (33, 71, 162), (148, 196, 81)]


def test_the_first_few_can_be_told_apart_by_people() -> None:
    colors = distinct_colors(8)
    gaps = [
        max(abs(a - b) for a, b in zip(one, other, strict=True)) for one in colors for other in colors if one != other
    ]
    assert min(gaps) >= 32
