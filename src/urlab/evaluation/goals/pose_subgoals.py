"""Subgoals about where an object is and how it is turned."""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.goals.placed import PlacedObjects
from urlab.evaluation.goals.subgoal import Interval, Subgoal
from urlab.evaluation.tasks.object_spec import ObjectSpec
from urlab.evaluation.tasks.pose import rotation_matrix
from urlab.geometry import IDENTITY_WXYZ, Quat

Axis = Literal["x", "y", "z", "+x", "+y", "+z", "-x", "-y", "-z"]
Degrees = Annotated[float, msgspec.Meta(ge=0, le=180)]


class Range(Subgoal, frozen=True, tag="range"):
    """The origin of ``object`` is within the intervals (metres, inclusive; left out = anywhere), in the world's axes.

    ``x_of`` names an object whose origin the interval is relative to; left out, it is absolute. So for y and z.
    """

    object: str
    x: Interval | None = None
    y: Interval | None = None
    z: Interval | None = None
    x_of: str | None = None
    y_of: str | None = None
    z_of: str | None = None

    def holds(self, placed: PlacedObjects) -> bool:
        pos = placed.pose(self.object).pos
        for axis, interval, relative in self._axes():
            if interval is None:
                continue
            origin = 0.0 if relative is None else placed.pose(relative).pos[axis]
            if not interval[0] <= pos[axis] - origin <= interval[1]:
                return False
        return True

    def references(self) -> Iterator[tuple[str, str]]:
        yield "object", self.object
        for axis, _, relative in self._axes():
            if relative is not None:
                yield f"{'xyz'[axis]}_of", relative

    def problem(self, objects: Mapping[str, ObjectSpec]) -> tuple[str, str] | None:  # noqa: ARG002
        for axis, interval, relative in self._axes():
            if interval is not None and not interval[0] <= interval[1]:
                return "xyz"[axis], "an interval is [low, high] with low <= high"
            if interval is None and relative is not None:
                return f"{'xyz'[axis]}_of", f"needs an interval {'xyz'[axis]}"
        stated = any(interval is not None for _, interval, _ in self._axes())
        return None if stated else ("x", "at least one of x, y and z must be stated")

    def _axes(self) -> tuple[tuple[int, Interval | None, str | None], ...]:
        return (0, self.x, self.x_of), (1, self.y, self.y_of), (2, self.z, self.z_of)


class AxisAlign(Subgoal, frozen=True, tag="axis_align"):
    """The angle between an axis of ``object`` and an axis of ``target`` is below (or above) ``threshold_deg``.

    With ``either_way`` an axis counts the same as its opposite, as for a bar whose ends are alike.
    """

    object: str
    target: str
    axis: Axis
    target_axis: Axis
    threshold_deg: Degrees
    comparison: Literal["below", "above"] = "below"
    either_way: bool = False

    def holds(self, placed: PlacedObjects) -> bool:
        mine = axis_w(placed.pose(self.object).quat_wxyz, self.axis)
        theirs = axis_w(placed.pose(self.target).quat_wxyz, self.target_axis)
        angle = angle_deg(mine, theirs)
        angle = min(angle, 180 - angle) if self.either_way else angle
        return angle < self.threshold_deg if self.comparison == "below" else angle > self.threshold_deg

    def references(self) -> Iterator[tuple[str, str]]:
        yield from (("object", self.object), ("target", self.target))


class OrientationRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The angle between an axis of the object and an axis of the world is within ``angle_deg`` (inclusive)."""

    axis: Axis
    world_axis: Axis
    angle_deg: tuple[Degrees, Degrees]


class MatchOrientation(Subgoal, frozen=True, tag="match_local_world_orientation"):
    """All (or ``any``) of the ``constraints`` hold."""

    object: str
    constraints: Annotated[list[OrientationRange], msgspec.Meta(min_length=1)]
    combine: Literal["all", "any"] = "all"

    def holds(self, placed: PlacedObjects) -> bool:
        quat_wxyz = placed.pose(self.object).quat_wxyz
        results = (_within(quat_wxyz, one) for one in self.constraints)
        return all(results) if self.combine == "all" else any(results)

    def references(self) -> Iterator[tuple[str, str]]:
        yield "object", self.object

    def problem(self, objects: Mapping[str, ObjectSpec]) -> tuple[str, str] | None:  # noqa: ARG002
        ordered = all(one.angle_deg[0] <= one.angle_deg[1] for one in self.constraints)
        return None if ordered else ("constraints", "angle_deg is [low, high] with low <= high")


def axis_w(quat_wxyz: Quat, axis: str) -> NDArray[np.float64]:
    """(3,): where an object's axis ("x", "-z") points in the world."""
    column: NDArray[np.float64] = rotation_matrix(quat_wxyz)[:, "xyz".index(axis[-1])]
    return -column if axis.startswith("-") else column


def angle_deg(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Between two vectors, 0 to 180; NaN-free also for (nearly) parallel ones."""
    return math.degrees(math.atan2(float(np.linalg.norm(np.cross(a, b))), float(np.dot(a, b))))


def _within(quat_wxyz: Quat, one: OrientationRange) -> bool:
    angle = angle_deg(axis_w(quat_wxyz, one.axis), axis_w(IDENTITY_WXYZ, one.world_axis))
    return one.angle_deg[0] <= angle <= one.angle_deg[1]
