"""The memory of the GL context that pictures of one model are drawn into. Everything here is for the GL thread only.

GL is called directly where MuJoCo has no call for it: PyOpenGL's conversions and checks take many times as long.
"""

import copy
import ctypes
import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.cameras.profile import DrawSettings
from urlab.errors import NoViewport

Colors = NDArray[np.uint32]
Depths = NDArray[np.float32]

_OFFSCREEN = mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value
_SMALLEST_FONT = mujoco.mjtFontScale.mjFONTSCALE_50.value
_FIRST_SIZE = (16, 16)
_SMOOTH_PIXELS = 1920 * 1200
"""A larger picture is drawn with one sample per pixel: more would take gigabytes."""

_MOST_GL_ERRORS = 100
"""GL keeps fewer; but a context that was lost may report errors for ever."""

# What the headers of GL define.
_BGRA = 0x80E1
_PACK_INVERT = 0x8758
_FRAMEBUFFER, _RENDERBUFFER, _FRAMEBUFFER_COMPLETE = 0x8D40, 0x8D41, 0x8CD5
_DEPTH_ATTACHMENT, _DEPTH_STENCIL_ATTACHMENT = 0x8D00, 0x821A
_INTERNAL_FORMAT, _DEPTH32F_STENCIL8, _DEPTH32F = 0x8D44, 0x8CAD, 0x8CAC


class OffscreenBuffer:
    """A buffer of colours and depths for pictures of any size. Made, used and freed on the GL thread.

    MuJoCo draws into the buffer that is bound, and `resize` binds this one: call it before each picture.
    """

    def __init__(self, model: Any, settings: DrawSettings) -> None:
        self._settings = settings
        self._context = _make_context(model, settings)
        self._rectangle = mujoco.MjrRect(0, 0, *_FIRST_SIZE)
        self._own_depths: ctypes.c_uint | None = None

    def resize(self, width: int, height: int, *, shrink: bool = False) -> None:
        """Bind the buffer and make it ready for a picture of that size; NoViewport when GL has no such buffer.

        ``shrink`` gives back what a larger picture has taken: a buffer of the picture's own size is drawn faster, but
        allocating it takes time, so not where cameras of several sizes take turns.
        """
        context = self._context
        samples = self._settings.samples if width * height <= _SMOOTH_PIXELS else 0
        size = (width, height) if shrink else (max(width, context.offWidth), max(height, context.offHeight))
        if context.offSamples != samples or (context.offWidth, context.offHeight) != size:
            context.offSamples = samples
            self._allocate(*size)
        self._rectangle.width, self._rectangle.height = width, height
        mujoco.mjr_setBuffer(_OFFSCREEN, context)

    def render(self, scene: Any) -> None:
        """Draw an MjvScene."""
        mujoco.mjr_render(self._rectangle, scene, self._context)

    def render_depths(self, scene: Any) -> None:
        """Draw the depths of an MjvScene alone, which takes less time; the buffer keeps its colours.

        The scene's flags ask for segmentation: MuJoCo's passes for shadows and reflections would undo the mask.
        """
        gl = gl_library()
        gl.glColorMask(0, 0, 0, 0)
        try:
            self.render(scene)
        finally:
            gl.glColorMask(1, 1, 1, 1)

    def read_colors(self) -> Colors:
        """The picture, (height, width), BGRA in each element's bytes, the highest row first; the caller's own."""
        width, height = self._rectangle.width, self._rectangle.height
        channels = np.empty((height, width, 4), dtype=np.uint8)
        with _highest_row_first() as upright:
            mujoco.mjr_readPixels(channels, None, self._rectangle, self._context)
        pixels = channels.view(np.uint32)[..., 0]
        return pixels if upright else pixels[::-1].copy()

    def read_depths(self) -> Depths:
        """The depth buffer, (height, width), 1 = near, 0 = nothing, the highest row first; the caller's own."""
        depths = np.empty((self._rectangle.height, self._rectangle.width), dtype=np.float32)
        with _highest_row_first() as upright:
            mujoco.mjr_readPixels(None, depths, self._rectangle, self._context)
        return depths if upright else depths[::-1].copy()

    def free(self) -> None:
        """Give back the GL memory; nothing can be drawn afterwards."""
        self._free_own_depths()
        self._context.free()

    def _allocate(self, width: int, height: int) -> None:
        """MuJoCo keeps a buffer whose size stays, whatever its samples; so it goes through another size.

        It does not notice when GL refuses, and would go on with the old buffer.
        """
        context = self._context
        _take_gl_errors()
        self._free_own_depths()
        if (context.offWidth, context.offHeight) == (width, height):
            mujoco.mjr_resizeOffscreen(width, height + 1, context)
        mujoco.mjr_resizeOffscreen(width, height, context)
        if _take_gl_errors():
            raise NoViewport("this GL has no buffer of that size")
        if not context.offSamples and not self._settings.reflections:
            self._own_depths = replace_depth_stencil(context)

    def _free_own_depths(self) -> None:
        name, self._own_depths = self._own_depths, None
        if name is not None:
            gl_library().glDeleteRenderbuffers(1, ctypes.byref(name))


def replace_depth_stencil(context: Any) -> ctypes.c_uint:
    """Put a depth buffer of our own into an MjrContext of one sample per pixel, for its depth and stencil buffer.

    Depths are the same, and software draws faster without a stencil beside each; only reflections need one. MuJoCo's
    own buffer stays where it holds depths of another kind, or where GL refuses. Returns the name of the new
    renderbuffer (0 where there is none), to be deleted by the caller; the context's framebuffer is bound afterwards.
    """
    gl, name, kind = gl_library(), ctypes.c_uint(), ctypes.c_int()
    gl.glBindFramebuffer(_FRAMEBUFFER, context.offFBO)
    gl.glBindRenderbuffer(_RENDERBUFFER, context.offDepthStencil)
    gl.glGetRenderbufferParameteriv(_RENDERBUFFER, _INTERNAL_FORMAT, ctypes.byref(kind))
    if kind.value == _DEPTH32F_STENCIL8:
        gl.glGenRenderbuffers(1, ctypes.byref(name))
        gl.glBindRenderbuffer(_RENDERBUFFER, name)
        gl.glRenderbufferStorage(_RENDERBUFFER, _DEPTH32F, context.offWidth, context.offHeight)
        gl.glFramebufferRenderbuffer(_FRAMEBUFFER, _DEPTH_STENCIL_ATTACHMENT, _RENDERBUFFER, 0)
        gl.glFramebufferRenderbuffer(_FRAMEBUFFER, _DEPTH_ATTACHMENT, _RENDERBUFFER, name)
        if gl.glCheckFramebufferStatus(_FRAMEBUFFER) != _FRAMEBUFFER_COMPLETE:
            original = context.offDepthStencil
            gl.glFramebufferRenderbuffer(_FRAMEBUFFER, _DEPTH_STENCIL_ATTACHMENT, _RENDERBUFFER, original)
    gl.glBindRenderbuffer(_RENDERBUFFER, 0)
    return name


@functools.cache
def gl_library() -> Any:
    """The library that the context is of; PyOpenGL has chosen it when the context was made."""
    return importlib.import_module("OpenGL.platform").PLATFORM.GL


def _make_context(model: Any, settings: DrawSettings) -> Any:
    """MuJoCo reads from the model how large its buffers are to be, so it is given a copy, just for that."""
    asked = copy.copy(model)
    asked.vis.global_.offwidth, asked.vis.global_.offheight = _FIRST_SIZE
    asked.vis.quality.offsamples = settings.samples
    if not settings.shadows:
        asked.vis.quality.shadowsize = 0
    context = mujoco.MjrContext(asked, _SMALLEST_FONT)
    context.readPixelFormat = _BGRA
    context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR.value
    return context


def _take_gl_errors() -> bool:
    """Whether a GL call since the last question has failed."""
    gl, count = gl_library(), 0
    while count < _MOST_GL_ERRORS and gl.glGetError():
        count += 1
    return count > 0


@contextmanager
def _highest_row_first() -> Iterator[bool]:
    """Let GL hand out the highest row first, as pictures are kept, and say whether it does: Mesa can."""
    gl, can = gl_library(), _can_invert_rows()
    if can:
        gl.glPixelStorei(_PACK_INVERT, 1)
    try:
        yield can
    finally:
        if can:
            gl.glPixelStorei(_PACK_INVERT, 0)


@functools.cache
def _can_invert_rows() -> bool:
    return bool(importlib.import_module("OpenGL.extensions").hasGLExtension("GL_MESA_pack_invert"))
