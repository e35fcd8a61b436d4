"""What MuJoCo does not ask of GL. Everything here is for the GL thread only.

GL is called directly: PyOpenGL's conversions and checks take many times as long as the calls.
"""

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MOST_ERRORS = 100
"""GL keeps fewer; but a context that was lost may never stop complaining."""

_PACK_INVERT = 0x8758
_ALL_CHANNELS = (1, 1, 1, 1)
_NO_CHANNELS = (0, 0, 0, 0)


def gl_complains() -> bool:
    """Whether a call since the last question has failed."""
    gl, count = gl_library(), 0
    while count < _MOST_ERRORS and gl.glGetError():
        count += 1
    return count > 0


@contextmanager
def colors_kept() -> Iterator[None]:
    """Draw depths alone: colours stay what they are. MuJoCo's own masks, of shadows and reflections, would undo it."""
    gl = gl_library()
    gl.glColorMask(*_NO_CHANNELS)
    try:
        yield
    finally:
        gl.glColorMask(*_ALL_CHANNELS)


@contextmanager
def read_from_the_top() -> Iterator[bool]:
    """Let GL hand out the highest row first, as pictures are kept, and say whether it does: Mesa can."""
    gl, can = gl_library(), _can_turn_over()
    if can:
        gl.glPixelStorei(_PACK_INVERT, 1)
    try:
        yield can
    finally:
        if can:
            gl.glPixelStorei(_PACK_INVERT, 0)


@functools.cache
def gl_library() -> Any:
    """The library that the context is of; PyOpenGL has chosen it when the context was made."""
    return importlib.import_module("OpenGL.platform").PLATFORM.GL


@functools.cache
def _can_turn_over() -> bool:
    return bool(importlib.import_module("OpenGL.extensions").hasGLExtension("GL_MESA_pack_invert"))
