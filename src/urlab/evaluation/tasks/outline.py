"""The outline of an object seen from above: a rectangle that turns with it. Plain arithmetic, no libraries."""

from collections.abc import Mapping
from dataclasses import dataclass

from urlab.evaluation.tasks.object_spec import ObjectSpec, bounds_of
from urlab.evaluation.tasks.pose import Pose

Point = tuple[float, float]


@dataclass(frozen=True)
class Outline:
    """Four corners in world x and y, in order around."""

    corners: tuple[Point, ...]

    def is_within(self, gap_m: float, other: "Outline") -> bool:
        """Whether the two come nearer than ``gap_m``.

        By separating axes: for corner against corner it may say so up to 1.4 gaps away.
        """
        return not any(self._gap_along(axis, other) >= gap_m for axis in (*self._axes(), *other._axes()))

    def _axes(self) -> tuple[Point, Point]:
        (x0, y0), (x1, y1) = self.corners[:2]
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        x, y = (x1 - x0) / length, (y1 - y0) / length
        return (x, y), (-y, x)

    def _gap_along(self, axis: Point, other: "Outline") -> float:
        mine = [x * axis[0] + y * axis[1] for x, y in self.corners]
        theirs = [x * axis[0] + y * axis[1] for x, y in other.corners]
        return max(min(mine) - max(theirs), min(theirs) - max(mine))


def outline_of(spec: ObjectSpec, pose_w: Pose, joints: Mapping[str, float]) -> Outline:
    """Around the object as it stands, upright, its joints as given; a drawer or door counts where it is."""
    low, high = bounds_of(part.moved(link.pose(joints)) for link in spec.links for part in link.parts)
    around = ((low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1]))
    placed = (pose_w.apply(Pose((x, y, 0.0))).pos for x, y in around)
    return Outline(tuple((x, y) for x, y, _ in placed))
