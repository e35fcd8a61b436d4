"""A depth buffer of our own for MuJoCo's offscreen framebuffer."""

import ctypes
from typing import Any

from urlab.cameras.gl_framebuffer import gl_library

_FRAMEBUFFER, _RENDERBUFFER = 0x8D40, 0x8D41
_DEPTH_ATTACHMENT, _DEPTH_STENCIL_ATTACHMENT = 0x8D00, 0x821A
_FORMAT, _FLOAT_DEPTH_AND_STENCIL, _FLOAT_DEPTH = 0x8D44, 0x8CAD, 0x8CAC
_COMPLETE = 0x8CD5


class DepthBuffer:
    """Takes the place of MuJoCo's depth and stencil buffer. Depths are the same, and software draws faster without a
    stencil beside each; only reflections need one. GL thread only.

    MuJoCo's own buffer stays where it holds depths of another kind, or where GL refuses.
    """

    def __init__(self, context: Any) -> None:
        """``context`` is an MjrContext of one sample per pixel; its offscreen buffer is bound afterwards."""
        gl, self._name = gl_library(), ctypes.c_uint()
        gl.glBindFramebuffer(_FRAMEBUFFER, context.offFBO)
        gl.glBindRenderbuffer(_RENDERBUFFER, context.offDepthStencil)
        kind = ctypes.c_int()
        gl.glGetRenderbufferParameteriv(_RENDERBUFFER, _FORMAT, ctypes.byref(kind))
        if kind.value == _FLOAT_DEPTH_AND_STENCIL:
            gl.glGenRenderbuffers(1, ctypes.byref(self._name))
            gl.glBindRenderbuffer(_RENDERBUFFER, self._name)
            gl.glRenderbufferStorage(_RENDERBUFFER, _FLOAT_DEPTH, context.offWidth, context.offHeight)
            _attach(gl, depth_stencil=0, depth=self._name)
            if gl.glCheckFramebufferStatus(_FRAMEBUFFER) != _COMPLETE:
                _attach(gl, depth_stencil=context.offDepthStencil)
        gl.glBindRenderbuffer(_RENDERBUFFER, 0)

    def free(self) -> None:
        """Give it back; the framebuffer it was for must not be drawn into any more."""
        gl_library().glDeleteRenderbuffers(1, ctypes.byref(self._name))


def _attach(gl: Any, *, depth_stencil: Any, depth: Any = 0) -> None:
    gl.glFramebufferRenderbuffer(_FRAMEBUFFER, _DEPTH_STENCIL_ATTACHMENT, _RENDERBUFFER, depth_stencil)
    if depth:
        gl.glFramebufferRenderbuffer(_FRAMEBUFFER, _DEPTH_ATTACHMENT, _RENDERBUFFER, depth)
