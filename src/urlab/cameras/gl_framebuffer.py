"""Being a good neighbour in the one GL context."""

import importlib
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MOST_ERRORS = 100
"""GL keeps fewer; but a context that was lost may never stop complaining."""


def gl_complains() -> bool:
    """Whether a call since the last question has failed. GL thread only."""
    gl: Any = importlib.import_module("OpenGL.GL")
    return _forget_errors(gl) > 0


@contextmanager
def framebuffer_kept() -> Iterator[None]:
    """Leave bound the framebuffer that was bound before. GL thread only.

    MuJoCo draws into whichever one is bound, and other views bind theirs once and rely on it.
    """
    gl: Any = importlib.import_module("OpenGL.GL")
    before = int(gl.glGetIntegerv(gl.GL_FRAMEBUFFER_BINDING))
    try:
        yield
    finally:
        _forget_errors(gl)
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, before)


def _forget_errors(gl: Any) -> int:
    """How many there were; those of MuJoCo's calls would be taken for errors of our next one."""
    return len(list(itertools.takewhile(bool, (gl.glGetError() for _ in range(_MOST_ERRORS)))))
