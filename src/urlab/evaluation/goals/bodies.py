"""The shape of a rigid thing in its own frame, ready for questions: its points, its corners, its convex hull."""

import math
from functools import lru_cache
from itertools import product

import numpy as np
from scipy.spatial import ConvexHull

from urlab.evaluation.goals.clouds import Points, in_link, surface_points
from urlab.evaluation.tasks.parts import Part, PartKind

_SIDES = 64
"""Corners of a circle: its polygon is within a thousandth of the radius."""
_RINGS = 12
_PROBES = 160
_SMALL_PRODUCT = 200_000


class Body:
    """Parts that share a frame.

    ``points`` (n, 3) lie on its surface; ``corners`` are the corners of its convex parts, so they span its hull and its
    bounds; ``probes`` are the corners and a few of the points, for a first look.
    """

    def __init__(self, parts: tuple[Part, ...], point_count: int) -> None:
        self.points = surface_points(parts, point_count)
        self.corners = np.concatenate([in_link(part, _corners(part)) for part in parts])
        self.probes = np.concatenate([_some(self.corners, _PROBES), _some(self.points, _PROBES)])
        self._planes = hull_planes(self.corners)

    def contains(self, points: Points) -> int:
        """How many of the points (n, 3; own frame) are in its convex hull."""
        return count_inside(self._planes, points)


@lru_cache(maxsize=256)
def body_of(parts: tuple[Part, ...], point_count: int) -> Body:
    """The body of these parts; made once."""
    return Body(parts, point_count)


def hull_planes(points: Points) -> Points:
    """(k, 4) the planes of the convex hull: a point p is inside when ``planes[:, :3] @ p + planes[:, 3] <= 0``.

    A flat face that was cut into triangles gives one plane.
    """
    planes: Points = ConvexHull(points).equations
    _, first = np.unique(np.round(planes, 9), axis=0, return_index=True)
    return planes[np.sort(first)]


def count_inside(planes: Points, points: Points) -> int:
    """How many of the points (n, 3) are inside all planes.

    In pieces that are too small for a linear algebra library to spread over threads: where the cores are busy
    simulating, waiting for those threads costs ten times as much as the sums.
    """
    normals, limits = planes[:, :3].T, 1e-12 - planes[:, 3]
    rows = max(1, _SMALL_PRODUCT // planes[:, :3].size)
    pieces = (points[first : first + rows] for first in range(0, len(points), rows))
    return sum(int((piece @ normals <= limits).all(axis=1).sum()) for piece in pieces)


def _some(points: Points, count: int) -> Points:
    return points[:: -(-len(points) // count)]


def _corners(part: Part) -> Points:
    if part.kind is PartKind.BOX:
        return np.array(list(product(*((-half, half) for half in part.size))))
    if part.kind is PartKind.CYLINDER:
        radius, half = part.size
        return np.concatenate([_ring(radius, z) for z in (-half, half)])
    half = part.size[1] if part.kind is PartKind.CAPSULE else 0.0
    return _ball_corners(part.size[0], half)


def _ring(radius: float, z: float) -> Points:
    angle = 2 * math.pi * np.arange(_SIDES) / _SIDES
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle), np.full(_SIDES, z)))


def _ball_corners(radius: float, half: float) -> Points:
    """Rings from the equator to both poles, the halves ``half`` from the middle along z."""
    tilts = np.linspace(0.0, math.pi / 2, _RINGS + 1)
    upper = np.concatenate([_ring(radius * math.cos(tilt), radius * math.sin(tilt) + half)[::2] for tilt in tilts])
    return np.concatenate([upper, upper * (1.0, 1.0, -1.0)])
