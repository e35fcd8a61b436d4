"""Drawing a model for the viewport: through a free camera, in one of its modes, with drawings over it."""

import copy
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.cameras.modes import FLAT_FLAGS, set_flags
from urlab.cameras.offscreen_buffer import OffscreenBuffer
from urlab.cameras.profile import SETTINGS, DrawSettings
from urlab.cameras.renderer import max_geoms, set_positions
from urlab.config import RenderProfile
from urlab.errors import BadValue, NoViewport
from urlab.overlay import Drawing
from urlab.overlay.visual_flags import VisualFlags, default_option
from urlab.viewport.camera import ViewCamera
from urlab.viewport.overlay_geoms import MAX_GEOMS_PER_DRAWING, OverlayGeoms, flatten
from urlab.viewport.posed_model import PosedModel, set_dynamics
from urlab.viewport.view_mode import ViewStyle, collision_model, collision_option
from urlab_wire.pixels import Bytes, pick_channels

MIN_PIXELS, MAX_PIXELS = 16, 4096
_SKY_RGB = (0.36, 0.42, 0.48)
_SKY_SHARE = 0.98
"""Of the farthest distance that is drawn."""

_NEAR_SHARE = 1e-5
"""Of that distance, the least that is drawn: with less, GL could not tell the backdrop from the end of the world."""

OUTLINE_RGB = (255, 150, 20)
_OUTLINE_SHARE = 1 / 240
"""Of the picture's height: the width of an outline."""

_DECOR = int(mujoco.mjtCatBit.mjCAT_DECOR)
_OTHERS, _CHOSEN, _HIDDEN = 0, 1, -1
"""Segmentation ids, which MuJoCo paints as colours: red is one more than the id."""


@dataclass(frozen=True)
class ViewRequest:
    """One picture of a posed model. ``outlined`` are ids of the bodies around which a line is drawn."""

    posed: PosedModel
    camera: ViewCamera
    style: ViewStyle
    width: int
    height: int
    flags: VisualFlags = field(default_factory=VisualFlags)
    outlined: frozenset[int] = frozenset()
    drawings: Sequence[Drawing] = ()

    @property
    def aspect(self) -> float:
        """Width over height."""
        return self.width / self.height


def check_size(width: int, height: int) -> None:
    """BadValue unless a picture may have so many pixels a side."""
    for name, pixel_count in (("width", width), ("height", height)):
        if not MIN_PIXELS <= pixel_count <= MAX_PIXELS:
            raise BadValue(f"{name} must be between {MIN_PIXELS} and {MAX_PIXELS} pixels, but is {pixel_count}")


class ViewportRenderer:
    """Draws models, each with a state of its own. Used on the GL thread only.

    It holds the GL memory of the model that was drawn last; the model itself is only read.
    """

    def __init__(self) -> None:
        self._opened: Hashable = None
        self._buffer: OffscreenBuffer | None = None
        self._model: Any = None
        self._data: Any = None
        self._collision_model: Any = None
        self._awake_model: Any = None
        self._drawn: Any = None
        self._model_geoms = 0
        """How many geoms of the scene are MuJoCo's; drawings come after them."""

    @property
    def is_in_use(self) -> bool:
        """Whether it holds GL memory."""
        return self._buffer is not None

    def draw(self, request: ViewRequest, profile: RenderProfile) -> Bytes:
        """One picture, RGB (height, width, 3), the first row at the top; NoViewport when it cannot be drawn.

        ``profile`` is fast or quality; mirrors and shadows, which a mode asks for, are drawn in either.
        """
        try:
            buffer = self._open(request.posed, SETTINGS[RenderProfile.QUALITY if request.style.mirrors else profile])
            self._pose(request)
            self._fill(request)
            buffer.resize(request.width, request.height, shrink=True)
            buffer.render(self._drawn)
            pixels = pick_channels(
                buffer.read_colors().view(np.uint8).reshape(request.height, request.width, 4), "bgra"
            )
            if request.outlined:
                _draw_outline(pixels, self._mask(buffer, request.outlined))
            return pixels
        except (mujoco.FatalError, NoViewport) as refused:
            self.free()
            raise NoViewport(f"this scene cannot be drawn at {request.width}x{request.height}: {refused}") from refused

    def free(self) -> None:
        """Give back the GL memory; the next picture takes it anew."""
        buffer, self._buffer = self._buffer, None
        self._model = self._data = self._collision_model = self._awake_model = self._drawn = None
        if buffer is not None:
            buffer.free()

    def _open(self, posed: PosedModel, settings: DrawSettings) -> OffscreenBuffer:
        if self._buffer is None or self._opened != (posed.key, settings):
            self.free()
            self._opened, self._model = (posed.key, settings), posed.model
            self._data = mujoco.MjData(posed.model)
            self._buffer = OffscreenBuffer(posed.model, settings)
        return self._buffer

    def _pose(self, request: ViewRequest) -> None:
        set_positions(self._model, self._data, request.posed)
        if request.flags.needs_dynamics:
            set_dynamics(self._awake(), self._data, request.posed)

    def _awake(self) -> Any:
        """The model, in which nothing sleeps: this state is not the one that fell asleep."""
        sleep = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
        if not self._model.opt.enableflags & sleep:
            return self._model
        if self._awake_model is None:
            self._awake_model = copy.copy(self._model)
            self._awake_model.opt.enableflags &= ~sleep
        return self._awake_model

    # -- what is in the picture ---------------------------------------------------------------------------------

    def _fill(self, request: ViewRequest) -> None:
        camera, style, drawings = request.camera, request.style, request.drawings
        needed = max_geoms(self._model) + request.flags.more_geoms(self._model, self._data)
        needed += MAX_GEOMS_PER_DRAWING * len(drawings)
        if self._drawn is None or self._drawn.maxgeom < needed:
            self._drawn = mujoco.MjvScene(self._model, maxgeom=needed)
        self._aim(camera, request.aspect)
        perturb = _perturb(request.posed, self._data) if request.flags.chosen.get("perturbation") else None
        self._add_model(style, request.flags, perturb)
        geoms = OverlayGeoms(self._drawn, camera.location)
        has_sky = np.any(self._model.tex_type == int(mujoco.mjtTexture.mjTEXTURE_SKYBOX))
        if style.plain or not (style.wires or has_sky):
            self._add_backdrop(geoms, camera, request.aspect)
        for drawing in drawings:
            geoms.add(drawing)

    def _aim(self, camera: ViewCamera, aspect: float) -> None:
        near, far = _depth_range(self._model, camera)
        half_height = near * camera.half_size(aspect)[1]
        for gl_camera in self._drawn.camera:
            gl_camera.pos[:], gl_camera.forward[:], gl_camera.up[:] = camera.location, camera.forward, camera.up
            gl_camera.frustum_center = gl_camera.frustum_width = 0.0
            gl_camera.frustum_bottom, gl_camera.frustum_top = -half_height, half_height
            gl_camera.frustum_near, gl_camera.frustum_far = near, far
            gl_camera.orthographic = 0

    def _add_model(self, style: ViewStyle, flags: VisualFlags, perturb: Any) -> None:
        scene, viewpoint = self._drawn, mujoco.MjvCamera()
        viewpoint.type = mujoco.mjtCamera.mjCAMERA_USER
        model, option = self._shown(style)
        flags.apply(option)
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(model, self._data, option, perturb, viewpoint, everything, scene)
        self._model_geoms = scene.ngeom
        flag = mujoco.mjtRndFlag
        scene.flags[flag.mjRND_SHADOW] = scene.flags[flag.mjRND_REFLECTION] = style.mirrors
        scene.flags[flag.mjRND_WIREFRAME] = style.wires
        for hidden in (flag.mjRND_SKYBOX, flag.mjRND_HAZE, flag.mjRND_CULL_FACE):
            scene.flags[hidden] = not style.wires
        if style.plain:
            scene.flags[flag.mjRND_SKYBOX] = scene.flags[flag.mjRND_HAZE] = 0
        if style.flat:
            scene.nlight = 0
            for geom in scene.geoms[: scene.ngeom]:
                flatten(geom)

    def _shown(self, style: ViewStyle) -> tuple[Any, Any]:
        if style.shapes:
            if self._collision_model is None:
                self._collision_model = collision_model(self._model)
            return self._collision_model, collision_option()
        return self._model, default_option()

    def _add_backdrop(self, geoms: OverlayGeoms, camera: ViewCamera, aspect: float) -> None:
        """A wall at the end of the world, as MuJoCo's own background is black."""
        distance = _SKY_SHARE * _depth_range(self._model, camera)[1]
        half_width, half_height = camera.half_size(aspect)
        forward, left, up = np.array(camera.forward), np.array(camera.left), np.array(camera.up)
        center = np.array(camera.location) + distance * forward
        half_size = 1.01 * distance * np.array([half_width, half_height, 0.0])
        geoms.add_backdrop(center, np.column_stack([-left, up, -forward]), half_size, _SKY_RGB)

    def _mask(self, buffer: OffscreenBuffer, bodies: frozenset[int]) -> NDArray[np.bool_]:
        """Which pixels of the picture that was drawn show these bodies, (height, width)."""
        scene, owners = self._drawn, _body_ids(self._model)
        flags = scene.flags.copy()
        set_flags(scene, FLAT_FLAGS)
        for place, geom in enumerate(scene.geoms[: scene.ngeom]):
            owner = owners.get(int(geom.objtype))
            if place >= self._model_geoms or owner is None or geom.category == _DECOR:
                geom.segid = _HIDDEN
            else:
                geom.segid = _CHOSEN if int(owner[geom.objid]) in bodies else _OTHERS
        buffer.render(scene)
        scene.flags[:] = flags
        red = (buffer.read_colors() >> 16) & 0xFF
        mask: NDArray[np.bool_] = red == _CHOSEN + 1
        return mask


def _body_ids(model: Any) -> dict[int, Any]:
    """The body of each element that is drawn, by its kind (mjtObj) and id."""
    kinds = mujoco.mjtObj
    skins = model.skin_bonebodyid[model.skin_boneadr] if model.nskin else ()
    flexes = [int(model.flex_vertbodyid[start]) for start in model.flex_vertadr]
    return {
        int(kinds.mjOBJ_GEOM): model.geom_bodyid,
        int(kinds.mjOBJ_SITE): model.site_bodyid,
        int(kinds.mjOBJ_SKIN): skins,
        int(kinds.mjOBJ_FLEX): flexes,
    }


def _draw_outline(pixels: Bytes, mask: NDArray[np.bool_]) -> None:
    """Paint a line around what a mask covers, just outside of it."""
    width = max(1, round(_OUTLINE_SHARE * mask.shape[0]))
    grown = mask
    for axis in (0, 1):
        padded = np.pad(grown, [(width, width) if one == axis else (0, 0) for one in (0, 1)])
        size = mask.shape[axis]
        shifted = [np.take(padded, range(start, start + size), axis=axis) for start in range(2 * width + 1)]
        grown = np.logical_or.reduce(shifted)
    pixels[grown & ~mask] = OUTLINE_RGB


def _perturb(posed: PosedModel, data: Any) -> Any:
    """The newest drag as MuJoCo's own viewer has it; None when no body is dragged."""
    dragged = [one for one in posed.held if one.target is not None]
    if not dragged:
        return None
    held, perturb = dragged[-1], mujoco.MjvPerturb()
    perturb.select, perturb.active = held.body_id, int(mujoco.mjtPertBit.mjPERT_TRANSLATE)
    perturb.localpos[:], perturb.refselpos[:] = held.point, held.target
    turn = data.xmat[held.body_id].reshape(3, 3)
    perturb.refpos[:] = np.asarray(held.target) - turn @ held.point + data.xipos[held.body_id] - data.xpos[held.body_id]
    perturb.refquat[:] = data.xquat[held.body_id]
    perturb.scale = 1.0
    return perturb


def _depth_range(model: Any, camera: ViewCamera) -> tuple[float, float]:
    """The nearest and the farthest distance that is drawn, metres: the whole model, wherever the camera is."""
    extent = max(float(model.stat.extent), 1e-3)
    away = math.dist(camera.location, model.stat.center)
    near = min(max(float(model.vis.map.znear) * extent, 1e-3), 1e-2)
    far = max(float(model.vis.map.zfar) * extent, away + 4 * extent, 100.0)
    return max(near, _NEAR_SHARE * far), far
