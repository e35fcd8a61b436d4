"""How high, wide and deep objects are as they stand."""

from collections.abc import Iterator

from urlab.evaluation.tasks.object_spec import ObjectSpec, bounds_of
from urlab.evaluation.tasks.parts import Link
from urlab.geometry import Pose, Vec3

_ON_M = 0.002


def top_z(spec: ObjectSpec, pose: Pose) -> float:
    """The height of its highest point in the world, joints at 0."""
    return max(corner[2] for corner in _corners(spec.bounds, pose))


def bottom_z(spec: ObjectSpec, pose: Pose) -> float:
    """The height of its lowest point in the world."""
    return min(corner[2] for corner in _corners(spec.bounds, pose))


def surface_z(link: Link, pose: Pose, x: float, y: float) -> float:
    """The height in the world of what carries things at (x, y): the highest part of the link there, or its top."""
    px, py, _ = pose.inverse().apply(Pose((x, y, pose.pos[2]))).pos
    boxes = [bounds_of(iter([part])) for part in link.parts]
    tops = [high[2] for low, high in boxes if _covers(low, high, px, py)]
    return pose.pos[2] + max(tops or [high[2] for _, high in boxes])


def _covers(low: Vec3, high: Vec3, x: float, y: float) -> bool:
    return low[0] - _ON_M <= x <= high[0] + _ON_M and low[1] - _ON_M <= y <= high[1] + _ON_M


def _corners(bounds: tuple[Vec3, Vec3], pose: Pose) -> Iterator[Vec3]:
    low, high = bounds
    for x in (low[0], high[0]):
        for y in (low[1], high[1]):
            for z in (low[2], high[2]):
                yield pose.apply(Pose((x, y, z))).pos
