"""What lies near the outline of a thing, seen from above.

The outline is the convex hull of the thing's corners. (GenManip draws a concave outline around its points; for the
convex outlines of nearly all shapes here that is the same.)
"""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from urlab.evaluation.goals.clouds import Points
from urlab.evaluation.goals.placed import Solid


def near_footprint(solid: Solid, points: Points, reach_m: float) -> NDArray[np.bool_]:
    """(n,) which of the points (n, 3) are, seen from above, within ``reach_m`` of the solid's outline or inside it."""
    low, high = solid.low[:2] - reach_m, solid.high[:2] + reach_m
    near: NDArray[np.bool_] = np.all((points[:, :2] >= low) & (points[:, :2] <= high), axis=1)
    candidates = np.flatnonzero(near)
    if len(candidates):
        near[candidates] = _distances(solid.corners[:, :2], points[candidates, :2]) <= reach_m
    return near


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
