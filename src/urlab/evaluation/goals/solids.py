"""The things of a task as solids in the world: points on their surfaces, corners, convex hulls, boxes around them."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from urlab.evaluation.tasks.layout import Joints, ObjectPoses
from urlab.evaluation.tasks.objects import TABLE, TABLE_NAME, TABLE_POSE_W, ObjectSpec
from urlab.evaluation.tasks.parts import Part, PartKind
from urlab.geometry import Pose, rotation_matrix

Points = NDArray[np.float64]
_STEP = np.array([0.7548776662466927, 0.5698402909980532])
"""The inverse powers of the plastic number: the steps of the R2 sequence."""
_SIDES = 64
"""Corners of a circle: its polygon is within a thousandth of the radius."""
_RINGS = 12
_PROBES = 160
_SMALL_PRODUCT = 200_000
POINTS = 10_000
TABLE_POINTS = 100_000
LEFT_WITHIN_M = 0.03
"""How far an object may be from where it began and still count as left alone: a can that falls over moves farther."""


class SolidShape:
    """Rigid parts that share a frame, ready for questions.

    ``points`` (n, 3) lie on its surface; ``corners`` are the corners of its convex parts, so they span its hull and its
    bounds; ``probes`` are the corners and a few of the points, for a first, quick comparison.
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
def solid_shape(parts: tuple[Part, ...], point_count: int) -> SolidShape:
    """The shape of these parts; made once."""
    return SolidShape(parts, point_count)


class Solid:
    """A shape at a pose, in world coordinates."""

    def __init__(self, shape: SolidShape, pose_w: Pose) -> None:
        self._shape = shape
        self._turn, self._pos = rotation_matrix(pose_w.quat_wxyz), np.asarray(pose_w.pos)

    @cached_property
    def points(self) -> Points:
        """(n, 3) on its surface."""
        return self._placed(self._shape.points)

    @cached_property
    def corners(self) -> Points:
        """(m, 3); they span its hull and its bounds."""
        return self._placed(self._shape.corners)

    @cached_property
    def probes(self) -> Points:
        """(p, 3): few points on its surface."""
        return self._placed(self._shape.probes)

    @cached_property
    def low(self) -> Points:
        """(3,) the least x, y, z."""
        return np.asarray(self.corners.min(axis=0))

    @cached_property
    def high(self) -> Points:
        """(3,) the greatest x, y, z."""
        return np.asarray(self.corners.max(axis=0))

    def contains(self, points: Points) -> int:
        """How many of the points (n, 3) are in its convex hull."""
        near = points
        for axis in (2, 0, 1):
            near = near[(near[:, axis] >= self.low[axis]) & (near[:, axis] <= self.high[axis])]
        return self._shape.contains((near - self._pos) @ self._turn)

    def _placed(self, points: Points) -> Points:
        return np.asarray(points @ self._turn.T + self._pos)


class CroppedSolid(Solid):
    """What is left of a solid when most of its points are cut away."""

    def __init__(self, points: Points) -> None:
        self.points = self.corners = points
        self.probes = points[:: max(1, len(points) // 200)]

    def contains(self, points: Points) -> int:
        """As for a solid; none when the points left are too few or too flat to have an inside."""
        if len(self.points) < 4 or np.linalg.matrix_rank(self.points - self.points[0], tol=1e-9) < 3:
            return 0
        return count_inside(hull_planes(self.points), points)


@dataclass(frozen=True)
class Handling:
    """What is being done to the objects at one moment; an object that is not named is untouched, and where it began.

    ``touched_by`` are the arms whose grippers touch an object; ``is_moving`` are the objects that are not at rest;
    ``moved_m`` is how far an object is from where it was when the episode began.
    """

    touched_by: Mapping[str, frozenset[str]] = field(default_factory=dict)
    is_moving: frozenset[str] = frozenset()
    moved_m: Mapping[str, float] = field(default_factory=dict)


UNTOUCHED = Handling()


class PlacedObjects(ObjectPoses):
    """The objects of a task at one moment, with the solids that goals are decided by."""

    def __init__(
        self,
        objects: Mapping[str, ObjectSpec],
        poses: Mapping[str, Pose],
        joints: Joints,
        handling: Handling = UNTOUCHED,
    ) -> None:
        super().__init__(objects, poses, joints)
        self._handling = handling
        self._solids: dict[str, Solid] = {}

    def is_released(self, name: str) -> bool:
        """Whether no gripper touches the object, and it is at rest."""
        return not self._handling.touched_by.get(name) and name not in self._handling.is_moving

    def is_held_by(self, name: str, arms: Collection[str]) -> bool:
        """Whether the grippers of exactly these arms touch the object."""
        return self._handling.touched_by.get(name, frozenset()) == frozenset(arms)

    def is_left(self, name: str) -> bool:
        """Whether the object is where it began."""
        return self._handling.moved_m.get(name, 0.0) <= LEFT_WITHIN_M

    def solid(self, name: str) -> Solid:
        """The object, link or table of that name; made when it is first asked for."""
        if name not in self._solids:
            self._solids[name] = self._solid(name)
        return self._solids[name]

    def _solid(self, name: str) -> Solid:
        if name == TABLE_NAME:
            return _table()
        spec, link = self.spec(name), name.partition("/")[2]
        parts = spec.link(link).parts if link else self._all_parts(spec)
        return Solid(solid_shape(parts, POINTS), self.pose(name))

    def _all_parts(self, spec: ObjectSpec) -> tuple[Part, ...]:
        """In the object's frame, its joints as they are."""
        if len(spec.links) == 1:
            return spec.links[0].parts
        joints = self._joints[spec.name]
        return tuple(part.moved(link.pose(joints)) for link in spec.links for part in link.parts)


def surface_points(parts: Sequence[Part], count: int) -> Points:
    """(count, 3) points on the surfaces of parts that share a frame, in that frame; the same ones on every machine.

    As many on every square centimetre: they come from a low-discrepancy sequence instead of chance, so 10,000 of them
    cover a surface at least as evenly as as many random ones do.
    """
    patches = [(part, patch) for part in parts for patch in _patches(part)]
    shares = _shares([patch.area for _, patch in patches], count)
    return np.concatenate(
        [in_link(part, patch.place(*_spread(share))) for (part, patch), share in zip(patches, shares, strict=True)]
    )


def in_link(part: Part, points: Points) -> Points:
    """From the part's frame to its link's."""
    return np.asarray(points @ rotation_matrix(part.quat_wxyz).T + np.asarray(part.pos))


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


@dataclass(frozen=True)
class _Patch:
    """A piece of surface: ``place`` takes (n,) u and v in [0, 1) evenly onto it, in the frame of its part."""

    area: float
    place: Callable[[Points, Points], Points]


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


@cache
def _table() -> Solid:
    """It never moves, so its many points are placed once."""
    return Solid(solid_shape(TABLE.links[0].parts, TABLE_POINTS), TABLE_POSE_W)
