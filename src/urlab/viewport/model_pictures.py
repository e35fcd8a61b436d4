"""Pictures of models by themselves, as a list of blueprints shows them."""

import threading
from collections.abc import Callable, Hashable
from typing import Any

import mujoco
import numpy as np
from PIL import Image

from urlab.cameras import GlThread, shared_gl
from urlab.cameras.profile import effective_profile
from urlab.compile.bounds import ShapeBox, world_shapes
from urlab.config import RenderProfile
from urlab.geometry import Pose, Vec3, wxyz_from_euler_deg
from urlab.scene.level import Light
from urlab.viewport.camera import ViewCamera, corners_of
from urlab.viewport.framing import box_of_actor
from urlab.viewport.posed_model import PosedData, PosedModel
from urlab.viewport.renderer import MAX_PIXELS, ViewportRenderer, ViewRequest, check_size
from urlab.viewport.texts import png_file
from urlab.viewport.view_mode import ViewStyle
from urlab_wire.pixels import Bytes

PICTURE_SIZE = (256, 192)
_VIEW = ViewCamera((2.0, 1.4, 1.1), (1.0, 0.0, 0.0, 0.0), fov_deg=30.0).looking_at((0.0, 0.0, 0.0))
"""From the front and above: models look along +X."""

PICTURE_LIGHT = Light("light", pose=Pose(quat_wxyz=wxyz_from_euler_deg((0.0, 50.0, 225.0))), intensity=3800.0)
"""From the front, above and the side, for a model that brings no light."""

_STYLE = ViewStyle(plain=True)
_FINER = 2
"""Each pixel is the mean of so many by so many, where that is not more than can be drawn."""

_LEAST_AMBIENT, _LEAST_DIFFUSE = 0.2, 0.3
_PLANE_EXTENT_M = 5.0
_SHOWN_GROUPS = 3
"""MuJoCo shows geoms of the groups 0, 1 and 2."""

_MOST_BYTES = 32 << 20
"""Of all pictures that are kept; those go that have not been asked for longest."""


class ModelPictures:
    """Draws a model in the middle of a plain picture, and keeps what it drew. Any thread may call it.

    It has a renderer of its own, which holds GL memory only while it draws: no view is disturbed.
    """

    def __init__(self, *, profile: RenderProfile = RenderProfile.AUTO, gl: GlThread | None = None) -> None:
        self._profile = profile
        self._gl = gl or shared_gl()
        self._renderer = ViewportRenderer()
        self._gl.adopt(self._renderer)
        self._kept: dict[Hashable, bytes] = {}
        self._lock = threading.Lock()
        self._drawing = threading.Lock()

    def png(self, content: Hashable, load: Callable[[], PosedModel], width: int, height: int) -> bytes:
        """A picture as a PNG file; the same ``content`` is not loaded and drawn again at the same size.

        BadValue for a size that cannot be drawn, NoViewport when there is no GL; or what ``load`` raises. The actors of
        the model are what is shown.
        """
        check_size(width, height)
        key = (content, width, height)
        found = self._find(key)
        if found is not None:
            return found
        with self._drawing:
            found = self._find(key)  # another thread may just have drawn it
            if found is None:
                found = self._draw(load(), width, height)
                self._keep(key, found)
            return found

    def _find(self, key: Hashable) -> bytes | None:
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None:
                self._kept[key] = found  # the last now: those that come first are forgotten first
            return found

    def _keep(self, key: Hashable, png: bytes) -> None:
        with self._lock:
            self._kept[key] = png
            total_bytes = sum(map(len, self._kept.values()))
            while total_bytes > _MOST_BYTES:
                total_bytes -= len(self._kept.pop(next(iter(self._kept))))

    def _draw(self, posed: PosedModel, width: int, height: int) -> bytes:
        finer = _FINER if max(width, height) * _FINER <= MAX_PIXELS else 1
        points = _points(posed, PosedData().of(posed))
        camera = _VIEW.framing_points(points, width / height) if points else _VIEW
        request = ViewRequest(posed, camera, _STYLE, width * finer, height * finer)

        def draw() -> Bytes:
            try:
                return self._renderer.draw(request, effective_profile(self._profile, self._gl.gl_name()))
            finally:
                self._renderer.free()

        return png_file(Image.fromarray(self._gl.run(draw)).reduce(finer))


def light_for_picture(model: Any) -> None:
    """Let a model, which is drawn and not simulated, be seen well, and an endless plane as far as the camera stands."""
    headlight = model.vis.headlight
    headlight.ambient[:] = np.maximum(headlight.ambient, _LEAST_AMBIENT)
    headlight.diffuse[:] = np.maximum(headlight.diffuse, _LEAST_DIFFUSE)
    if (model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE)).any():
        model.stat.extent = max(float(model.stat.extent), _PLANE_EXTENT_M)


def _points(posed: PosedModel, data: Any) -> list[Vec3]:
    """What has to be seen: the corners around each shape that is shown; of an endless plane, its middle."""
    shapes = [one for one in world_shapes(posed.model, data) if _is_finite(one)]
    shown = [one for one in shapes if _is_shown(posed.model, one)] or shapes
    shown = [one for one in shown if not one.is_ground] or shown
    boxes = [(_vec3(one.lower), _vec3(one.upper)) for one in shown]
    if not boxes:
        around = [box_of_actor(posed, data, actor) for actor in posed.actors]
        boxes = [(box.lower, box.upper) for box in around if box is not None]
    return [corner for lower, upper in boxes for corner in corners_of(lower, upper)]


def _is_finite(shape: ShapeBox) -> bool:
    return bool(np.isfinite(shape.lower).all() and np.isfinite(shape.upper).all())


def _is_shown(model: Any, shape: ShapeBox) -> bool:
    return shape.geom < 0 or int(model.geom_group[shape.geom]) < _SHOWN_GROUPS


def _vec3(values: "np.ndarray[Any, np.dtype[np.float64]]") -> Vec3:
    x, y, z = values.tolist()
    return x, y, z
