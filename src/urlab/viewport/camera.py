"""The viewport's camera: where it is, what it sees where, how it frames a box, and how it follows an actor."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.geometry import Pose, Quat, Vec3, rotate, wxyz_from_euler_deg

Array = NDArray[np.float64]

DEFAULT_FOV_DEG = 90.0
FRAME_FILL = 0.9
"""How much of a picture's width or height a framed box takes."""

DEFAULT_OFFSET_M: Vec3 = (-2.0, 0.0, 1.0)
"""Two metres behind and one above, in the actor's frame."""

_FRAME_RATE_HZ = 60.0
"""``smoothing`` is what is left of the camera's way after one frame of this rate, however many pictures are taken."""

_MIN_DEPTH_M = 0.02
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class ViewCamera:
    """A pinhole camera in the world's frame. It looks along its +X, +Z is up; ``fov_deg`` is horizontal."""

    location: Vec3
    quat_wxyz: Quat
    fov_deg: float = DEFAULT_FOV_DEG

    @property
    def forward(self) -> Vec3:
        """The direction of view."""
        return rotate(self.quat_wxyz, (1.0, 0.0, 0.0))

    @property
    def left(self) -> Vec3:
        """The picture's left."""
        return rotate(self.quat_wxyz, (0.0, 1.0, 0.0))

    @property
    def up(self) -> Vec3:
        """The picture's upward direction."""
        return rotate(self.quat_wxyz, (0.0, 0.0, 1.0))

    def half_size(self, aspect: float) -> tuple[float, float]:
        """Half the width and height of what is seen one metre away; ``aspect`` is width / height."""
        half_width = math.tan(math.radians(self.fov_deg) / 2)
        return half_width, half_width / aspect

    def looking_at(self, target: Vec3) -> "ViewCamera":
        """The same camera, turned to a point, with no roll. A point where it stands itself turns nothing."""
        dx, dy, dz = _minus(target, self.location)
        if math.hypot(dx, dy, dz) < 1e-9:
            return self
        pitch, yaw = -math.atan2(dz, math.hypot(dx, dy)), math.atan2(dy, dx)
        return replace(self, quat_wxyz=wxyz_from_euler_deg((0.0, math.degrees(pitch), math.degrees(yaw))))

    def project(self, point: Vec3, width: int, height: int) -> tuple[float, float] | None:
        """The pixel (from the left, from the top) that shows a point; None when the point is behind the camera."""
        offset = _minus(point, self.location)
        depth = _dot(offset, self.forward)
        if depth <= 0:
            return None
        half_width, half_height = self.half_size(width / height)
        x = 1 - _dot(offset, self.left) / (depth * half_width)
        y = 1 - _dot(offset, self.up) / (depth * half_height)
        return x * width / 2, y * height / 2

    def framing(self, lower: Vec3, upper: Vec3, aspect: float) -> "ViewCamera":
        """The same camera, moved so that a box (two opposite corners) fills the picture, in its middle."""
        return self.framing_points(corners_of(lower, upper), aspect)

    def framing_points(self, points: Sequence[Vec3], aspect: float) -> "ViewCamera":
        """The same camera, moved so that these points fill the picture, in its middle.

        It stands as near as the picture's width and height both allow.
        """
        places = np.array(points)
        center = (places.min(axis=0) + places.max(axis=0)) / 2
        depths, *sides = np.array([self.forward, self.left, self.up]) @ (places - center).T
        halves = [FRAME_FILL * half for half in self.half_size(aspect)]
        nearest = [_nearest(side, depths, half) for side, half in zip(sides, halves, strict=True)]
        distance = max(*nearest, _MIN_DEPTH_M - float(depths.min()))
        shifts = [_centring(side, depths + distance) for side in sides]
        moves = zip((self.forward, self.left, self.up), (-distance, *shifts), strict=True)
        x, y, z = center.tolist()
        return replace(self, location=_along((x, y, z), *moves))


@dataclass(slots=True)
class ActorTracker:
    """Where the camera shall be. ``pose`` tells where the actor is now, or None when it is gone.

    ``clock`` tells seconds: simulated ones, so that pictures of a trajectory are the same on every machine, or those of
    the wall while nothing plays. When it goes back the camera is at its place at once, as it is at first.
    """

    pose: Callable[[], Pose | None]
    offset: Vec3
    smoothing: float
    clock: Callable[[], float]
    seen_at_s: float | None = None
    """When the camera was last moved."""
    states: Callable[[], Callable[[Any], Pose | None]] | None = None
    """Makes a function that tells where the actor is in another state of the scene that is shown now, given an object
    with ``xpos`` and ``xquat`` of its bodies."""

    def follow(self, camera: ViewCamera) -> ViewCamera:
        """The camera, as much nearer to its place as time has passed, looking at the actor."""
        return self.follow_to(camera, self.pose(), self.clock())

    def follow_to(self, camera: ViewCamera, actor: Pose | None, now_s: float) -> ViewCamera:
        """The same for an actor that is there at that time."""
        if actor is None:
            return camera
        seen_at_s, self.seen_at_s = self.seen_at_s, now_s
        left = 0.0
        if self.smoothing and seen_at_s is not None and now_s >= seen_at_s:
            left = self.smoothing ** ((now_s - seen_at_s) * _FRAME_RATE_HZ)
        wanted = actor.apply(Pose(self.offset)).pos
        x, y, z = (w + left * (at - w) for w, at in zip(wanted, camera.location, strict=True))
        return replace(camera, location=(x, y, z)).looking_at(actor.pos)


def corners_of(lower: Vec3, upper: Vec3) -> list[Vec3]:
    """The eight corners of a box, of which two opposite ones are given."""
    return [(x, y, z) for x, y, z in itertools.product(*zip(lower, upper, strict=True))]


def _nearest(sides: Array, depths: Array, slope: float) -> float:
    """How far back a pinhole must stand, at the best place aside, to see all points between rays of that slope."""
    low, high = (sides - slope * depths).max(), (sides + slope * depths).min()
    return float(low - high) / (2 * slope)


def _centring(sides: Array, depths: Array) -> float:
    """How far aside a pinhole must stand to see the outermost points equally far from the middle."""
    low, high = float(sides.min()), float(sides.max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        slopes = (sides - middle) / depths
        low, high = (middle, high) if slopes.max() + slopes.min() > 0 else (low, middle)
    return (low + high) / 2


def _minus(a: Sequence[float], b: Sequence[float]) -> Vec3:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _along(start: Vec3, *moves: tuple[Vec3, float]) -> Vec3:
    x, y, z = (start[axis] + sum(direction[axis] * far for direction, far in moves) for axis in range(3))
    return x, y, z
