"""What drawing one model takes: a state of its own, a scene, and memory of the GL context."""

import math
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.overlay import Drawing
from urlab.viewport.camera import ViewCamera
from urlab.viewport.collision_shapes import collision_option, collision_shapes
from urlab.viewport.mode import Look
from urlab.viewport.pen import MAX_GEOMS_PER_DRAWING, Pen, flatten
from urlab.viewport.stage import Stage

Pixels = NDArray[np.uint8]

_SKY_RGB = (0.36, 0.42, 0.48)
_SKY_SHARE = 0.98
"""Of the farthest distance that is drawn."""

_SPARE_GEOMS = 100
_CATENARY_GEOMS = 40
_SMOOTH_SAMPLES = 4
_SMOOTH_PIXELS = 1920 * 1200
"""A larger picture is drawn with one sample per pixel: more would take gigabytes."""


class ModelView:
    """Draws one model. Made, used and freed on the GL thread; the model itself is only read."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        self._shapes: Any = None
        self._scene: Any = None
        self._has_sky = bool(np.any(model.tex_type == int(mujoco.mjtTexture.mjTEXTURE_SKYBOX)))
        self._size = (0, 0)
        self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)

    def free(self) -> None:
        """Give back the GL memory; nothing can be drawn afterwards."""
        self._context.free()

    def pose(self, stage: Stage) -> None:
        """Take on a state: positions only, as a picture needs no more."""
        data = self._data
        data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = stage.qpos, stage.mocap_pos, stage.mocap_quat
        for compute in (
            mujoco.mj_kinematics,
            mujoco.mj_comPos,
            mujoco.mj_camlight,
            mujoco.mj_flex,
            mujoco.mj_tendon,
        ):
            compute(self._model, data)

    def picture(self, camera: ViewCamera, look: Look, drawings: Sequence[Drawing], width: int, height: int) -> Pixels:
        """Draw the state that was taken on, (height, width, 3), the first row at the top."""
        self._make_room(len(drawings))
        self._aim(camera, width / height)
        self._fill(look)
        pen = Pen(self._scene, camera.location)
        if not (self._has_sky or look.wires):
            self._draw_sky(pen, camera, width / height)
        for drawing in drawings:
            pen.draw(drawing)
        return self._render(width, height)

    def _make_room(self, drawings: int) -> None:
        model = self._model
        own = model.ngeom + model.nsite + 2 * model.nwrap + _CATENARY_GEOMS * model.ntendon + model.nskin + model.nflex
        needed = 2 * own + MAX_GEOMS_PER_DRAWING * drawings + _SPARE_GEOMS
        if self._scene is None or self._scene.maxgeom < needed:
            self._scene = mujoco.MjvScene(model, maxgeom=needed)

    def _aim(self, camera: ViewCamera, aspect: float) -> None:
        near, far = self._depth_range(camera)
        half_height = near * camera.half_size(aspect)[1]
        for eye in self._scene.camera:
            eye.pos[:], eye.forward[:], eye.up[:] = camera.location, camera.forward, camera.up
            eye.frustum_center = eye.frustum_width = 0.0
            eye.frustum_bottom, eye.frustum_top = -half_height, half_height
            eye.frustum_near, eye.frustum_far = near, far
            eye.orthographic = 0

    def _depth_range(self, camera: ViewCamera) -> tuple[float, float]:
        model = self._model
        extent = max(float(model.stat.extent), 1e-3)
        away = math.dist(camera.location, model.stat.center)
        near = min(max(float(model.vis.map.znear) * extent, 1e-3), 1e-2)
        return near, max(float(model.vis.map.zfar) * extent, away + 4 * extent, 100.0)

    def _fill(self, look: Look) -> None:
        scene, eye = self._scene, mujoco.MjvCamera()
        eye.type = mujoco.mjtCamera.mjCAMERA_USER
        model, option = self._shown(look)
        mujoco.mjv_updateScene(model, self._data, option, None, eye, mujoco.mjtCatBit.mjCAT_ALL.value, scene)
        flag = mujoco.mjtRndFlag
        scene.flags[flag.mjRND_SHADOW] = scene.flags[flag.mjRND_REFLECTION] = look.mirrors
        scene.flags[flag.mjRND_WIREFRAME] = look.wires
        for hidden in (flag.mjRND_SKYBOX, flag.mjRND_HAZE, flag.mjRND_CULL_FACE):
            scene.flags[hidden] = not look.wires
        if look.flat:
            scene.nlight = 0
            for geom in scene.geoms[: scene.ngeom]:
                flatten(geom)

    def _shown(self, look: Look) -> tuple[Any, Any]:
        if look.shapes:
            if self._shapes is None:
                self._shapes = collision_shapes(self._model)
            return self._shapes, collision_option()
        option = mujoco.MjvOption()
        option.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER] = 0
        return self._model, option

    def _draw_sky(self, pen: Pen, camera: ViewCamera, aspect: float) -> None:
        """A wall at the end of the world, as MuJoCo's own background is black."""
        distance = _SKY_SHARE * self._depth_range(camera)[1]
        half_width, half_height = camera.half_size(aspect)
        forward, left, up = np.array(camera.forward), np.array(camera.left), np.array(camera.up)
        center = np.array(camera.location) + distance * forward
        half_size = 1.01 * distance * np.array([half_width, half_height, 0.0])
        pen.backdrop(center, np.column_stack([-left, up, -forward]), half_size, _SKY_RGB)

    def _render(self, width: int, height: int) -> Pixels:
        if self._size != (width, height):
            self._context.offSamples = _SMOOTH_SAMPLES if width * height <= _SMOOTH_PIXELS else 0
            mujoco.mjr_resizeOffscreen(width, height, self._context)
            self._size = (width, height)
        pixels = np.empty((height, width, 3), dtype=np.uint8)
        rectangle = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)  # another view may have drawn
        mujoco.mjr_render(rectangle, self._scene, self._context)
        mujoco.mjr_readPixels(pixels, None, rectangle, self._context)
        return pixels[::-1]
