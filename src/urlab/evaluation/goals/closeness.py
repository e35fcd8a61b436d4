"""How far two clouds of points are from each other."""

import numpy as np
from scipy.spatial import cKDTree

from urlab.evaluation.goals.clouds import Points
from urlab.evaluation.goals.placed import Solid


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
