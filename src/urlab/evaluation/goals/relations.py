"""How one thing lies to another: on, in, left of ... Thresholds and order of tests are those of GenManip.

Axes are the world's: left is towards -Y, right +Y, front -X, back +X (so left and right are as the camera sees them
that faces the robot). Areas are those of the boxes around the things, seen from above.
"""

import math
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, cKDTree

from urlab.evaluation.goals.solids import CroppedSolid, Points, Solid
from urlab.evaluation.tasks.goal import Relation

MARGIN = 1.01
XY_CLOSE_M = 0.15 * MARGIN
TOUCHING_M = 0.10 * MARGIN
INSIDE_SHARE = 0.5
SUPPORTED_AREA_RATIO = 0.4
SUPPORTING_AREA_RATIO = 1.8
BETWEEN_DEG = 45.0
CROP_M = 0.05


def is_related(relation: Relation, a: Solid, b: Solid, c: Solid | None = None) -> bool:
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


def cloud_distance(a: Solid, b: Solid, gate_m: float, *, axes: int = 3) -> float:
    """The least distance between a point of a and a point of b, in the first ``axes`` axes.

    Only its side of ``gate_m`` is sure. The boxes around the solids settle what is far and a few points what is near,
    so that all points are compared only when the distance is about as large as the gate.
    """
    apart = np.maximum(0.0, np.maximum(a.low - b.high, b.low - a.high))[:axes]
    least = float(np.linalg.norm(apart))
    if least > gate_m:
        return least
    near = _least_distance(a.probes[:, :axes], b.probes[:, :axes])
    if near < gate_m:
        return near
    return min(near, _full_distance(a, b, gate_m, axes))


def near_footprint(solid: Solid, points: Points, reach_m: float) -> NDArray[np.bool_]:
    """(n,) which of the points (n, 3) are, seen from above, within ``reach_m`` of the solid's outline or inside it."""
    low, high = solid.low[:2] - reach_m, solid.high[:2] + reach_m
    near: NDArray[np.bool_] = np.all((points[:, :2] >= low) & (points[:, :2] <= high), axis=1)
    candidates = np.flatnonzero(near)
    if len(candidates):
        near[candidates] = _distances(solid.corners[:, :2], points[candidates, :2]) <= reach_m
    return near


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
    """On the part of b that is below a, or beside it up to 5 cm."""
    apart = np.maximum(a.low - b.high, b.low - a.high)[:2]
    if apart.max() > CROP_M:
        return False
    near = b.points[near_footprint(a, b.points, CROP_M)]
    return len(near) > 0 and _is_on(a, CroppedSolid(near))


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


def _least_distance(a: Points, b: Points) -> float:
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return float(np.sqrt(max(0.0, float(squared.min()))))


def _full_distance(a: Solid, b: Solid, gate_m: float, axes: int) -> float:
    mine = _within_box(a.points[:, :axes], b.low[:axes] - gate_m, b.high[:axes] + gate_m)
    theirs = _within_box(b.points[:, :axes], a.low[:axes] - gate_m, a.high[:axes] + gate_m)
    if len(mine) == 0 or len(theirs) == 0:
        return np.inf
    distances, _ = cKDTree(theirs).query(mine, distance_upper_bound=gate_m * 1.001)
    return float(distances.min())


def _within_box(points: Points, low: Points, high: Points) -> Points:
    return points[((points >= low) & (points <= high)).all(axis=1)]


def _distances(corners: Points, points: Points) -> Points:
    """(n,) from points (n, 2) to the convex hull of the corners; 0 inside."""
    hull = ConvexHull(corners)
    starts = corners[hull.vertices]
    edges = np.roll(starts, -1, axis=0) - starts
    offsets = points[:, None, :] - starts
    along = np.clip((offsets * edges).sum(axis=2) / (edges**2).sum(axis=1), 0.0, 1.0)
    gaps = np.linalg.norm(offsets - along[:, :, None] * edges, axis=2).min(axis=1)
    inside = (points @ hull.equations[:, :2].T + hull.equations[:, 2] <= 0).all(axis=1)
    return np.where(inside, 0.0, gaps)
