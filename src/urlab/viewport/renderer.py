"""Drawing a model for the viewport: through a free camera, in one of its modes, with drawings over it."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.cameras.offscreen_buffer import OffscreenBuffer
from urlab.cameras.profile import SETTINGS
from urlab.cameras.renderer import max_geoms, set_positions
from urlab.config import RenderProfile
from urlab.errors import NoViewport
from urlab.overlay import Drawing
from urlab.viewport.camera import ViewCamera
from urlab.viewport.overlay_geoms import MAX_GEOMS_PER_DRAWING, OverlayGeoms, flatten
from urlab.viewport.view_mode import ViewStyle, collision_model, collision_option
from urlab_wire.pixels import Bytes, pick_channels

_SKY_RGB = (0.36, 0.42, 0.48)
_SKY_SHARE = 0.98
"""Of the farthest distance that is drawn."""


@dataclass(frozen=True)
class PosedModel:
    """A model and one state of it. Views read, and never write, model and arrays.

    ``key`` is another one whenever the model is; ``sim_time`` is None while nothing plays. ``qpos`` is (nq,),
    ``mocap_pos`` (nmocap, 3) and ``mocap_quat`` (nmocap, 4), w first.
    """

    key: Hashable
    model: Any
    qpos: NDArray[np.float64]
    mocap_pos: NDArray[np.float64]
    mocap_quat: NDArray[np.float64]
    sim_time: float | None = None
    selected_bodies: tuple[int, ...] = ()
    """Ids of the bodies of the selected actor."""


class ViewportRenderer:
    """Draws models, each with a state of its own. Used on the GL thread only.

    It holds the GL memory of the model that was drawn last; the model itself is only read.
    """

    def __init__(self) -> None:
        self._key: Hashable = None
        self._buffer: OffscreenBuffer | None = None
        self._model: Any = None
        self._data: Any = None
        self._collision_model: Any = None
        self._drawn: Any = None

    @property
    def is_in_use(self) -> bool:
        """Whether it holds GL memory."""
        return self._buffer is not None

    def draw(
        self,
        posed: PosedModel,
        camera: ViewCamera,
        style: ViewStyle,
        drawings: Sequence[Drawing],
        width: int,
        height: int,
    ) -> Bytes:
        """One picture, RGB (height, width, 3), the first row at the top; NoViewport when it cannot be drawn."""
        try:
            buffer = self._open(posed)
            set_positions(self._model, self._data, posed)
            self._fill(camera, style, drawings, width / height)
            buffer.resize(width, height, shrink=True)
            buffer.render(self._drawn)
            return pick_channels(buffer.read_colors().view(np.uint8).reshape(height, width, 4), "bgra")
        except (mujoco.FatalError, NoViewport) as refused:
            self.free()
            raise NoViewport(f"this scene cannot be drawn at {width}x{height}: {refused}") from refused

    def free(self) -> None:
        """Give back the GL memory; the next picture takes it anew."""
        buffer, self._buffer = self._buffer, None
        self._model = self._data = self._collision_model = self._drawn = None
        if buffer is not None:
            buffer.free()

    def _open(self, posed: PosedModel) -> OffscreenBuffer:
        if self._buffer is None or self._key != posed.key:
            self.free()
            self._key, self._model = posed.key, posed.model
            self._data = mujoco.MjData(posed.model)
            self._buffer = OffscreenBuffer(posed.model, SETTINGS[RenderProfile.QUALITY])
        return self._buffer

    # -- what is in the picture ---------------------------------------------------------------------------------

    def _fill(self, camera: ViewCamera, style: ViewStyle, drawings: Sequence[Drawing], aspect: float) -> None:
        needed = max_geoms(self._model) + MAX_GEOMS_PER_DRAWING * len(drawings)
        if self._drawn is None or self._drawn.maxgeom < needed:
            self._drawn = mujoco.MjvScene(self._model, maxgeom=needed)
        self._aim(camera, aspect)
        self._add_model(style)
        geoms = OverlayGeoms(self._drawn, camera.location)
        has_sky = np.any(self._model.tex_type == int(mujoco.mjtTexture.mjTEXTURE_SKYBOX))
        if not (style.wires or has_sky):
            self._add_backdrop(geoms, camera, aspect)
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

    def _add_model(self, style: ViewStyle) -> None:
        scene, viewpoint = self._drawn, mujoco.MjvCamera()
        viewpoint.type = mujoco.mjtCamera.mjCAMERA_USER
        model, option = self._shown(style)
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(model, self._data, option, None, viewpoint, everything, scene)
        flag = mujoco.mjtRndFlag
        scene.flags[flag.mjRND_SHADOW] = scene.flags[flag.mjRND_REFLECTION] = style.mirrors
        scene.flags[flag.mjRND_WIREFRAME] = style.wires
        for hidden in (flag.mjRND_SKYBOX, flag.mjRND_HAZE, flag.mjRND_CULL_FACE):
            scene.flags[hidden] = not style.wires
        if style.flat:
            scene.nlight = 0
            for geom in scene.geoms[: scene.ngeom]:
                flatten(geom)

    def _shown(self, style: ViewStyle) -> tuple[Any, Any]:
        if style.shapes:
            if self._collision_model is None:
                self._collision_model = collision_model(self._model)
            return self._collision_model, collision_option()
        option = mujoco.MjvOption()
        option.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER] = 0
        return self._model, option

    def _add_backdrop(self, geoms: OverlayGeoms, camera: ViewCamera, aspect: float) -> None:
        """A wall at the end of the world, as MuJoCo's own background is black."""
        distance = _SKY_SHARE * _depth_range(self._model, camera)[1]
        half_width, half_height = camera.half_size(aspect)
        forward, left, up = np.array(camera.forward), np.array(camera.left), np.array(camera.up)
        center = np.array(camera.location) + distance * forward
        half_size = 1.01 * distance * np.array([half_width, half_height, 0.0])
        geoms.add_backdrop(center, np.column_stack([-left, up, -forward]), half_size, _SKY_RGB)


def _depth_range(model: Any, camera: ViewCamera) -> tuple[float, float]:
    """The nearest and the farthest distance that is drawn, metres: the whole model, wherever the camera is."""
    extent = max(float(model.stat.extent), 1e-3)
    away = math.dist(camera.location, model.stat.center)
    near = min(max(float(model.vis.map.znear) * extent, 1e-3), 1e-2)
    return near, max(float(model.vis.map.zfar) * extent, away + 4 * extent, 100.0)
