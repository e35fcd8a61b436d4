"""How one thing lies to another: on, in, left of ... Thresholds and order of tests are those of GenManip.

Axes are the world's: left is towards -Y, right +Y, front -X, back +X (so left and right are as the camera sees them
that faces the robot). Areas are those of the boxes around the things, seen from above.
"""

import math
from typing import Literal, assert_never

import numpy as np

from urlab.evaluation.goals.closeness import cloud_distance
from urlab.evaluation.goals.clouds import Points
from urlab.evaluation.goals.footprint import near_footprint
from urlab.evaluation.goals.placed import Cut, Solid

Relation = Literal["top", "on", "in", "out of", "below", "near", "left", "right", "front", "back", "between"]

MARGIN = 1.01
XY_CLOSE_M = 0.15 * MARGIN
TOUCHING_M = 0.10 * MARGIN
INSIDE_SHARE = 0.5
SUPPORTED_AREA_RATIO = 0.4
SUPPORTING_AREA_RATIO = 1.8
BETWEEN_DEG = 45.0
CROP_M = 0.05


def holds(relation: Relation, a: Solid, b: Solid, c: Solid | None = None) -> bool:
    """Whether a is ``relation`` b (and c, for between)."""
    match relation:
        case "top" | "on":
            return _is_on(a, b) or _is_in(a, b) or _is_on_part(a, b)
        case "in":
            return _is_in(a, b)
        case "out of":
            return _is_near_enough(a, b) and not _is_inside(a, b) and _is_inside(b, a)
        case "below":
            return not _supports(b, a) and _is_on(b, a)
        case "near":
            return _is_near(a, b)
        case "left" | "right" | "front" | "back":
            return _is_beside(relation, a, b)
        case "between":
            return c is not None and _is_between(a, b, c)
        case _:
            assert_never(relation)


def _is_close_xy(a: Solid, b: Solid) -> bool:
    return cloud_distance(a, b, XY_CLOSE_M, axes=2) <= XY_CLOSE_M


def _is_near_enough(a: Solid, b: Solid) -> bool:
    """Both gates: seen from above, and touching or nearly."""
    return _is_close_xy(a, b) and cloud_distance(a, b, TOUCHING_M) < TOUCHING_M


def _is_inside(a: Solid, b: Solid) -> bool:
    """Whether at least half of a's points are in b's convex hull."""
    return _boxes_meet(a, b) and b.contains(a.points) >= INSIDE_SHARE * len(a.points)


def _is_in(a: Solid, b: Solid) -> bool:
    return _boxes_meet(a, b) and _is_near_enough(a, b) and _is_inside(a, b)


def _supports(b: Solid, a: Solid) -> bool:
    """Whether b can carry a, by their boxes."""
    area_a, area_b = _area(a.low, a.high), _area(b.low, b.high)
    shared = _area(np.maximum(a.low, b.low), np.minimum(a.high, b.high))
    is_level = abs(float(a.low[2] - b.high[2])) <= TOUCHING_M
    return is_level and shared > SUPPORTED_AREA_RATIO * area_a and area_a < SUPPORTING_AREA_RATIO * area_b


def _is_on(a: Solid, b: Solid) -> bool:
    return _supports(b, a) and _is_near_enough(a, b) and not _is_inside(a, b) and not _is_inside(b, a)


def _is_on_part(a: Solid, b: Solid) -> bool:
    """On what is left of b when only that is kept which is below or beside a, up to 5 cm."""
    apart = np.maximum(a.low - b.high, b.low - a.high)[:2]
    if apart.max() > CROP_M:
        return False
    kept = b.points[near_footprint(a, b.points, CROP_M)]
    return len(kept) > 0 and _is_on(a, Cut(kept))


def _is_near(a: Solid, b: Solid) -> bool:
    if not _is_close_xy(a, b):
        return False
    if _overlaps(a, b, 0) and _overlaps(a, b, 1):
        return True
    is_carried = _supports(a, b) or _supports(b, a)
    return not is_carried and _is_near_enough(a, b) and not _is_inside(a, b) and not _is_inside(b, a)


def _is_beside(relation: Literal["left", "right", "front", "back"], a: Solid, b: Solid) -> bool:
    across, along = (0, 1) if relation in ("left", "right") else (1, 0)
    first, second = (a, b) if relation in ("left", "front") else (b, a)
    return _overlaps(a, b, across) and bool(first.high[along] < second.low[along]) and _is_close_xy(a, b)


def _is_between(a: Solid, b: Solid, c: Solid) -> bool:
    middle_a, middle_b, middle_c = (solid.points.mean(axis=0) for solid in (a, b, c))
    to_a, to_c = middle_a - middle_b, middle_c - middle_a
    if not to_a.any() or not to_c.any():
        return False
    angle = math.atan2(float(np.linalg.norm(np.cross(to_a, to_c))), float(np.dot(to_a, to_c)))
    return math.degrees(angle) < BETWEEN_DEG


def _boxes_meet(a: Solid, b: Solid) -> bool:
    return all(_overlaps(a, b, axis) for axis in range(3))


def _overlaps(a: Solid, b: Solid, axis: int) -> bool:
    return bool(a.low[axis] <= b.high[axis] and b.low[axis] <= a.high[axis])


def _area(low: Points, high: Points) -> float:
    """Of a box seen from above; 0 when it is empty."""
    return float(max(0.0, high[0] - low[0]) * max(0.0, high[1] - low[1]))
