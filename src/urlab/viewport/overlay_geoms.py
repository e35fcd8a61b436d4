"""Drawings of the overlay as geoms of a MuJoCo scene."""

import itertools
from collections.abc import Sequence
from functools import singledispatchmethod
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.geometry import Vec3, rotate
from urlab.mujoco_versions import present
from urlab.overlay import HEAD_SHARE, MARKER_RADIUS_M, Arrow, Axes, Color, Drawing, Line, Marker, WireBox

Array = NDArray[np.float64]

MAX_GEOMS_PER_DRAWING = 12
"""Those of a box, which is its edges."""

_AXES: tuple[Vec3, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_AXIS_COLORS: tuple[Color, ...] = _AXES
_AXIS_THICKNESS_PX = 3.0
_BOX_THICKNESS_PX = 2.0
_BOX_CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
_BOX_EDGES = [(low, low | bit) for low, bit in itertools.product(range(8), (1, 2, 4)) if not low & bit]
_HEAD_SLIMNESS = 0.2
_GLOW = 1000.0
_LINE_ALPHA = 0.99
"""Lines pass for transparent: the others are drawn once for each light that casts shadows, and would get brighter."""

_NEARER = 0.99
"""How much of its distance a line keeps: moved straight towards the camera, it covers the same pixels, and is no longer
half hidden in a floor that it lies on."""

_NO_TURN = np.eye(3).ravel()
_UNIT_SIZE = np.ones(3)
_MARKER_SIZE = np.full(3, MARKER_RADIUS_M)


def flatten(geom: Any) -> None:
    """Give a geom its plain colour whatever the light: it glows so much that light adds nothing to it."""
    geom.rgba[:3] /= _GLOW
    geom.emission = _GLOW
    geom.specular = 0.0
    geom.reflectance = 0.0


class OverlayGeoms:
    """Adds drawings to a scene that has room for them. They glow in their colours and cast no shadows.

    ``camera_pos`` is where the camera is.
    """

    def __init__(self, scene: Any, camera_pos: Vec3) -> None:
        self._scene = scene
        self._camera_pos = np.array(camera_pos, float)
        self._geoms: Sequence[Any] = scene.geoms

    @singledispatchmethod
    def add(self, drawing: Drawing) -> None:
        """Add one drawing."""
        raise TypeError(f"there is no way to draw a {type(drawing).__name__}")

    @add.register
    def _(self, marker: Marker) -> None:
        self._solid(
            mujoco.mjtGeom.mjGEOM_SPHERE, _MARKER_SIZE, np.array(marker.location, float), _NO_TURN, marker.color
        )

    @add.register
    def _(self, line: Line) -> None:
        self._line(self._nearer(line.from_), self._nearer(line.to), line.color, line.thickness)

    @add.register
    def _(self, box: WireBox) -> None:
        mujoco.mju_quat2Mat(turn := np.empty(9), np.array(box.quat_wxyz, float))
        half = turn.reshape(3, 3) * (_NEARER * np.array(box.half_extents, float))
        corners = self._nearer(box.center) + _BOX_CORNERS @ half.T
        for first, second in _BOX_EDGES:
            self._line(corners[first], corners[second], box.color, _BOX_THICKNESS_PX)

    @add.register
    def _(self, arrow: Arrow) -> None:
        start, tip = self._nearer(arrow.from_), self._nearer(arrow.to)
        length = float(np.linalg.norm(tip - start))
        head = HEAD_SHARE * length if arrow.arrow_size is None else min(_NEARER * arrow.arrow_size, length)
        direction = (tip - start) / length if length else np.zeros(3)
        self._line(start, tip - head * direction, arrow.color, arrow.thickness)
        if head > 0:
            self._head(tip, direction, head, arrow.color)

    @add.register
    def _(self, axes: Axes) -> None:
        origin = self._nearer(axes.location)
        for axis, color in zip(_AXES, _AXIS_COLORS, strict=True):
            end = origin + _NEARER * axes.scale * np.array(rotate(axes.quat_wxyz, axis))
            self._line(origin, end, color, _AXIS_THICKNESS_PX)

    def add_backdrop(self, center: Array, turn: Array, half_size: Array, color: Color) -> None:
        """A flat wall; ``turn`` (3, 3) has its axes as columns, the third one its normal."""
        self._solid(mujoco.mjtGeom.mjGEOM_BOX, half_size, center, turn.ravel(), color)

    def _nearer(self, point: Vec3) -> Array:
        moved: Array = self._camera_pos + _NEARER * (np.array(point, float) - self._camera_pos)
        return moved

    def _head(self, tip: Array, direction: Array, length: float, color: Color) -> None:
        """A pyramid with a square base."""
        mujoco.mju_quatZ2Vec(quat := np.empty(4), direction)
        mujoco.mju_quat2Mat(turn := np.empty(9), quat)
        across = turn.reshape(3, 3)[:, :2] * (_HEAD_SLIMNESS * length)
        base, (a, b) = tip - length * direction, across.T
        ring = base + a, base + b, base - a, base - b
        for first, second in zip(ring, ring[1:] + ring[:1], strict=True):
            self._triangle(tip, first, second, color)
        self._triangle(ring[0], ring[2], ring[1], color)
        self._triangle(ring[0], ring[3], ring[2], color)

    def _triangle(self, corner: Array, second: Array, third: Array, color: Color) -> None:
        """Seen from where its corners run counter-clockwise."""
        turn = _NO_TURN.copy()
        turn[0::3], turn[1::3] = second - corner, third - corner
        mujoco.mju_cross(normal := np.empty(3), turn[0::3].copy(), turn[1::3].copy())
        turn[2::3] = normal
        self._solid(mujoco.mjtGeom.mjGEOM_TRIANGLE, _UNIT_SIZE, corner, turn, color)

    def _line(self, start: Array, end: Array, color: Color, width: float) -> None:
        kind = mujoco.mjtGeom.mjGEOM_LINE
        geom = self._geom(kind, _UNIT_SIZE, start, _NO_TURN, _rgba(color, _LINE_ALPHA))
        mujoco.mjv_connector(geom, kind, max(1.0, width), start, end)

    def _solid(self, kind: Any, size: Array, place: Array, turn: Array, color: Color) -> None:
        flatten(self._geom(kind, size, place, turn, _rgba(color)))

    def _geom(self, kind: Any, size: Array, place: Array, turn: Array, rgba: NDArray[np.float32]) -> Any:
        geom = self._geoms[self._scene.ngeom]
        mujoco.mjv_initGeom(geom, kind, size, place, turn, rgba)
        if present(geom, "castshadow"):
            geom.castshadow = 0
        self._scene.ngeom += 1
        return geom


def _rgba(color: Color, alpha: float = 1.0) -> NDArray[np.float32]:
    return np.array([*color, alpha], dtype=np.float32)
