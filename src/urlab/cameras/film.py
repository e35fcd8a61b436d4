"""The memory of the GL context that pictures of one model are drawn into."""

import copy
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.cameras.depth_buffer import DepthBuffer
from urlab.cameras.gl_framebuffer import colors_kept, gl_complains, read_from_the_top
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
    """An offscreen buffer, as large as the largest picture so far. Made, used and freed on the GL thread.

    MuJoCo draws into whichever buffer is bound: every view in this context binds its own before each picture.
    """

    def __init__(self, model: Any, settings: DrawSettings) -> None:
        self._settings = settings
        self._context = _make_context(model, settings)
        self._rectangle = mujoco.MjrRect(0, 0, *_FIRST_SIZE)
        self._depth_buffer: DepthBuffer | None = None

    def load(self, width: int, height: int) -> None:
        """Make ready for a picture of that size; NoViewport when GL has no such buffer."""
        context = self._context
        samples = self._settings.samples if width * height <= _SMOOTH_PIXELS else 0
        if context.offSamples != samples or context.offWidth < width or context.offHeight < height:
            context.offSamples = samples
            self._resize(max(width, context.offWidth), max(height, context.offHeight))
        self._rectangle.width, self._rectangle.height = width, height
        mujoco.mjr_setBuffer(_OFFSCREEN, context)

    def expose(self, scene: Any) -> None:
        """Draw an MjvScene."""
        mujoco.mjr_render(self._rectangle, scene, self._context)

    def expose_depths(self, scene: Any) -> None:
        """Draw an MjvScene whose flags ask for segmentation, for its depths only: it takes less time."""
        with colors_kept():
            self.expose(scene)

    def colors(self) -> Colors:
        """The picture, (height, width), BGRA in each element's bytes, the highest row first; the caller's own."""
        width, height = self._rectangle.width, self._rectangle.height
        channels = np.empty((height, width, 4), dtype=np.uint8)
        with read_from_the_top() as upright:
            mujoco.mjr_readPixels(channels, None, self._rectangle, self._context)
        pixels = channels.view(np.uint32)[..., 0]
        return pixels if upright else pixels[::-1].copy()

    def depths(self) -> Depths:
        """The depth buffer, (height, width), 1 = near, 0 = nothing, the highest row first; the caller's own."""
        depths = np.empty((self._rectangle.height, self._rectangle.width), dtype=np.float32)
        with read_from_the_top() as upright:
            mujoco.mjr_readPixels(None, depths, self._rectangle, self._context)
        return depths if upright else depths[::-1].copy()

    def free(self) -> None:
        """Give back the GL memory; nothing can be drawn afterwards."""
        self._free_depth_buffer()
        self._context.free()

    def _resize(self, width: int, height: int) -> None:
        """MuJoCo keeps a buffer whose size stays, whatever its samples; so it goes through another size.

        It does not notice when GL refuses, and would go on with the old buffer.
        """
        context = self._context
        gl_complains()
        self._free_depth_buffer()
        if (context.offWidth, context.offHeight) == (width, height):
            mujoco.mjr_resizeOffscreen(width, height + 1, context)
        mujoco.mjr_resizeOffscreen(width, height, context)
        if gl_complains():
            raise NoViewport("this GL has no buffer of that size")
        if not context.offSamples and not self._settings.reflections:
            self._depth_buffer = DepthBuffer(context)

    def _free_depth_buffer(self) -> None:
        buffer, self._depth_buffer = self._depth_buffer, None
        if buffer is not None:
            buffer.free()


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
