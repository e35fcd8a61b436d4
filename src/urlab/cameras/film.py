"""The memory of the GL context that pictures of one model are drawn into."""

import copy
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.cameras.gl_framebuffer import gl_complains
from urlab.cameras.profile import DrawSettings
from urlab.errors import NoViewport

Colors = NDArray[np.uint32]
Depths = NDArray[np.float32]

_OFFSCREEN = mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value
_SMALLEST_FONT = mujoco.mjtFontScale.mjFONTSCALE_50.value
_GL_BGRA = 0x80E1
_FIRST_SIZE = (16, 16)
_SMOOTH_PIXELS = 1920 * 1200
"""A larger picture is drawn with one sample per pixel: more would take gigabytes."""


class Film:
    """An offscreen buffer, as large as the largest picture so far. Made, used and freed on the GL thread."""

    def __init__(self, model: Any, settings: DrawSettings) -> None:
        self._samples = settings.samples
        self._context = _make_context(model, settings)
        self._rectangle = mujoco.MjrRect(0, 0, *_FIRST_SIZE)
        self._scratch = np.empty((2, 0), dtype=np.uint32)

    def load(self, width: int, height: int) -> None:
        """Make ready for a picture of that size; NoViewport when GL has no such buffer."""
        context = self._context
        samples = self._samples if width * height <= _SMOOTH_PIXELS else 0
        if context.offSamples != samples or context.offWidth < width or context.offHeight < height:
            context.offSamples = samples
            _resize(context, max(width, context.offWidth), max(height, context.offHeight))
        if self._scratch.shape[1] < width * height:
            self._scratch = np.empty((2, width * height), dtype=np.uint32)
        self._rectangle = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_setBuffer(_OFFSCREEN, context)

    def expose(self, scene: Any) -> None:
        """Draw an MjvScene."""
        mujoco.mjr_render(self._rectangle, scene, self._context)

    def colors(self) -> Colors:
        """The picture, (height, width), BGRA in each element's bytes, the lowest row first. Gone with the next one."""
        pixels = self._sheet(0)
        mujoco.mjr_readPixels(pixels.view(np.uint8).reshape(*pixels.shape, 4), None, self._rectangle, self._context)
        return pixels

    def depths(self) -> Depths:
        """The depth buffer, (height, width), 1 = near, 0 = nothing, the lowest row first. Gone with the next one."""
        depths = self._sheet(0).view(np.float32)
        mujoco.mjr_readPixels(None, depths, self._rectangle, self._context)
        return depths

    def blank(self) -> Colors:
        """Room for a picture of this size that is being worked on, (height, width)."""
        return self._sheet(1)

    def free(self) -> None:
        """Give back the GL memory; nothing can be drawn afterwards."""
        self._context.free()

    def _sheet(self, number: int) -> Colors:
        width, height = self._rectangle.width, self._rectangle.height
        return self._scratch[number, : width * height].reshape(height, width)


def _make_context(model: Any, settings: DrawSettings) -> Any:
    """MuJoCo reads from the model how large its buffers are to be, so it is given a copy, just for that."""
    asked = copy.copy(model)
    asked.vis.global_.offwidth, asked.vis.global_.offheight = _FIRST_SIZE
    asked.vis.quality.offsamples = settings.samples
    if not settings.shadows:
        asked.vis.quality.shadowsize = 0
    context = mujoco.MjrContext(asked, _SMALLEST_FONT)
    context.readPixelFormat = _GL_BGRA
    context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR.value
    return context


def _resize(context: Any, width: int, height: int) -> None:
    """MuJoCo keeps a buffer whose size stays, whatever its samples; so it goes through another size.

    It does not notice when GL refuses, and would go on with the old buffer.
    """
    gl_complains()
    if (context.offWidth, context.offHeight) == (width, height):
        mujoco.mjr_resizeOffscreen(width, height + 1, context)
    mujoco.mjr_resizeOffscreen(width, height, context)
    if gl_complains():
        raise NoViewport("this GL has no buffer of that size")
