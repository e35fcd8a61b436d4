"""Objects at their places: what relations are asked of."""

from collections.abc import Mapping
from functools import cache, cached_property

import numpy as np

from urlab.evaluation.goals.bodies import Body, body_of, count_inside, hull_planes
from urlab.evaluation.goals.clouds import Points
from urlab.evaluation.tasks.object_spec import ObjectSpec
from urlab.evaluation.tasks.parts import Part
from urlab.evaluation.tasks.pose import Pose, rotation_matrix
from urlab.evaluation.tasks.table import TABLE, TABLE_NAME, TABLE_POSE_W

POINTS = 10_000
TABLE_POINTS = 100_000

Joints = Mapping[str, Mapping[str, float]]


class Solid:
    """A body at a pose, in world coordinates."""

    def __init__(self, body: Body, pose_w: Pose) -> None:
        self._body = body
        self._turn, self._pos = rotation_matrix(pose_w.quat_wxyz), np.asarray(pose_w.pos)

    @cached_property
    def points(self) -> Points:
        """(n, 3) on its surface."""
        return self._placed(self._body.points)

    @cached_property
    def corners(self) -> Points:
        """(m, 3); they span its hull and its bounds."""
        return self._placed(self._body.corners)

    @cached_property
    def probes(self) -> Points:
        """(p, 3): few points on its surface."""
        return self._placed(self._body.probes)

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
        return self._body.contains((near - self._pos) @ self._turn)

    def _placed(self, points: Points) -> Points:
        return np.asarray(points @ self._turn.T + self._pos)


class Cut(Solid):
    """What is left of a solid when most of its points are cut away."""

    def __init__(self, points: Points) -> None:
        self.points = self.corners = points
        self.probes = points[:: max(1, len(points) // 200)]

    def contains(self, points: Points) -> int:
        """As for a solid; none when the points left are too few or too flat to have an inside."""
        if len(self.points) < 4 or np.linalg.matrix_rank(self.points - self.points[0], tol=1e-9) < 3:
            return 0
        return count_inside(hull_planes(self.points), points)


class PlacedObjects:
    """The objects of a task at one moment. Names are those of objects, of links (``cabinet/drawer``), or ``table``."""

    def __init__(self, objects: Mapping[str, ObjectSpec], poses: Mapping[str, Pose], joints: Joints) -> None:
        self._objects = {**objects, TABLE_NAME: TABLE}
        self._poses = {**poses, TABLE_NAME: TABLE_POSE_W}
        self._joints = joints
        self._solids: dict[str, Solid] = {}

    def solid(self, name: str) -> Solid:
        """The thing of that name, made when first asked for."""
        if name not in self._solids:
            self._solids[name] = self._solid(name)
        return self._solids[name]

    def pose(self, name: str) -> Pose:
        """In the world."""
        spec, link = self._named(name)
        pose_w = self._poses[spec.name]
        return pose_w.apply(spec.link(link).pose(self._joints[spec.name])) if link else pose_w

    def support_z(self, name: str) -> float:
        """The height of its surface that carries other things, in its frame."""
        spec, link = self._named(name)
        return spec.link(link).support_z if link else spec.support_z

    def joint_in_file_units(self, name: str, joint: str) -> float:
        """Degrees (hinge) or metres (slide)."""
        return self._objects[name].joints[joint].to_file(self._joints[name][joint])

    def _solid(self, name: str) -> Solid:
        if name == TABLE_NAME:
            return _table()
        spec, link = self._named(name)
        parts = spec.link(link).parts if link else self._all_parts(spec)
        return Solid(body_of(parts, POINTS), self.pose(name))

    def _named(self, name: str) -> tuple[ObjectSpec, str]:
        own, _, link = name.partition("/")
        return self._objects[own], link

    def _all_parts(self, spec: ObjectSpec) -> tuple[Part, ...]:
        """In the object's frame, its joints as they are."""
        if len(spec.links) == 1:
            return spec.links[0].parts
        joints = self._joints[spec.name]
        return tuple(part.moved(link.pose(joints)) for link in spec.links for part in link.parts)


@cache
def _table() -> Solid:
    """It never moves, so its many points are placed once."""
    return Solid(body_of(TABLE.links[0].parts, TABLE_POINTS), TABLE_POSE_W)
