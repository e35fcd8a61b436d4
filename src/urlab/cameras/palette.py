"""Colours that can be told apart by a program, and mostly by people."""

import colorsys
from collections.abc import Iterator
from itertools import count, islice

Color = tuple[int, int, int]
"""Red, green, blue, each 0 to 255."""

BLACK: Color = (0, 0, 0)

_GOLDEN = 0.6180339887498949
_ROOT_2 = 0.4142135623730951
_ROOT_3 = 0.7320508075688772


def distinct_colors(wanted: int) -> list[Color]:
    """That many colours, no two the same and none black. The first ones are always the same, on every machine."""
    return list(islice(_colors(), wanted))


def _colors() -> Iterator[Color]:
    """Hues that are far apart for neighbours; strength and brightness vary too, or the hues would run out."""
    seen = {BLACK}
    for number in count():
        color = _color(number)
        if color not in seen:
            seen.add(color)
            yield color


def _color(number: int) -> Color:
    hue = number * _GOLDEN % 1.0
    strength = 1.0 - 0.5 * (number * _ROOT_2 % 1.0)
    brightness = 1.0 - 0.5 * (number * _ROOT_3 % 1.0)
    red, green, blue = (round(255 * part) for part in colorsys.hsv_to_rgb(hue, strength, brightness))
    return red, green, blue
