"""Points on the surface of primitives: as many on every square centimetre, and the same ones on every machine.

They come from a low-discrepancy sequence instead of chance, so 10,000 of them cover a surface at least as evenly as as
many random ones do.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.tasks.parts import Part, PartKind
from urlab.evaluation.tasks.pose import rotation_matrix

Points = NDArray[np.float64]

_STEP = np.array([0.7548776662466927, 0.5698402909980532])
"""The inverse powers of the plastic number: the steps of the R2 sequence."""


@dataclass(frozen=True)
class _Patch:
    """A piece of surface: ``place`` takes (n,) u and v in [0, 1) evenly onto it, in the frame of its part."""

    area: float
    place: Callable[[Points, Points], Points]


def surface_points(parts: Sequence[Part], count: int) -> Points:
    """(count, 3) points on the surfaces of parts that share a frame, in that frame."""
    patches = [(part, patch) for part in parts for patch in _patches(part)]
    shares = _shares([patch.area for _, patch in patches], count)
    return np.concatenate(
        [in_link(part, patch.place(*_spread(share))) for (part, patch), share in zip(patches, shares, strict=True)]
    )


def in_link(part: Part, points: Points) -> Points:
    """From the part's frame to its link's."""
    return np.asarray(points @ rotation_matrix(part.quat_wxyz).T + np.asarray(part.pos))


def _shares(areas: Sequence[float], count: int) -> list[int]:
    """``count`` shared out by area; what rounding leaves goes where the running total says."""
    edges = np.rint(np.cumsum(areas) / math.fsum(areas) * count).astype(int)
    edges[-1] = count
    return [int(share) for share in np.diff(edges, prepend=0)]


def _spread(count: int) -> tuple[Points, Points]:
    numbers = (0.5 + np.arange(count)[:, None] * _STEP) % 1.0
    return numbers[:, 0], numbers[:, 1]


def _patches(part: Part) -> Iterator[_Patch]:
    if part.kind is PartKind.BOX:
        yield from _box(part.size)
    elif part.kind is PartKind.SPHERE:
        yield _ball(part.size[0], 0.0)
    else:
        radius, half = part.size
        yield _side(radius, half)
        if part.kind is PartKind.CAPSULE:
            yield _ball(radius, half)
        else:
            yield from (_cap(radius, z) for z in (-half, half))


def _box(half: tuple[float, ...]) -> Iterator[_Patch]:
    for axis in range(3):
        first, second = (other for other in range(3) if other != axis)
        for side in (-1.0, 1.0):
            yield _Patch(4 * half[first] * half[second], _face(half, axis, side))


def _face(half: tuple[float, ...], axis: int, side: float) -> Callable[[Points, Points], Points]:
    first, second = (other for other in range(3) if other != axis)

    def place(u: Points, v: Points) -> Points:
        points = np.empty((len(u), 3))
        points[:, axis] = side * half[axis]
        points[:, first] = (2 * u - 1) * half[first]
        points[:, second] = (2 * v - 1) * half[second]
        return points

    return place


def _side(radius: float, half: float) -> _Patch:
    def place(u: Points, v: Points) -> Points:
        angle = 2 * math.pi * u
        return np.column_stack((radius * np.cos(angle), radius * np.sin(angle), (2 * v - 1) * half))

    return _Patch(4 * math.pi * radius * half, place)


def _cap(radius: float, z: float) -> _Patch:
    def place(u: Points, v: Points) -> Points:
        angle, reach = 2 * math.pi * u, radius * np.sqrt(v)
        return np.column_stack((reach * np.cos(angle), reach * np.sin(angle), np.full(len(u), z)))

    return _Patch(math.pi * radius**2, place)


def _ball(radius: float, half: float) -> _Patch:
    """A sphere cut at its equator, the halves ``half`` from the middle along z."""

    def place(u: Points, v: Points) -> Points:
        angle, height = 2 * math.pi * u, 2 * v - 1
        reach = radius * np.sqrt(1 - height**2)
        z = radius * height + np.where(height < 0, -half, half)
        return np.column_stack((reach * np.cos(angle), reach * np.sin(angle), z))

    return _Patch(4 * math.pi * radius**2, place)
