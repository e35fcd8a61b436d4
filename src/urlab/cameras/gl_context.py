"""A GL context without a screen: EGL, or OSMesa where there is none. Nothing of GL is imported before it is needed."""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from urlab.errors import NoViewport

BACKENDS = ("egl", "osmesa")
PACKAGES = ("libegl1", "libegl-mesa0", "libgl1-mesa-dri", "libosmesa6")
INSTALL_LINE = f"apt-get install -y --no-install-recommends {' '.join(PACKAGES)}"
_OFF_WORDS = ("disable", "disabled", "off", "false", "0")
_CHOICE = "MUJOCO_GL"
_PLATFORM = "PYOPENGL_PLATFORM"
_NOTHING = """
<mujoco><visual><global offwidth="16" offheight="16"/><quality shadowsize="0" offsamples="0"/></visual></mujoco>
"""
_WINDOW_SIZE = (16, 16)
"""Of the context's own buffer, which nobody uses: pictures are drawn into buffers of their own size."""


@dataclass(frozen=True, slots=True)
class GlContext:
    """A context that works. ``renderer`` is what draws, as the driver calls it; ``handle.free()`` ends it."""

    backend: str
    renderer: str
    handle: Any


def open_context() -> GlContext:
    """Make a context that is current on this thread, and stays there; NoViewport says why there is none.

    ``MUJOCO_GL`` chooses egl or osmesa, or switches drawing off; its other words need a screen and choose nothing.
    """
    reasons = []
    for backend in _wanted():
        try:
            with _one_platform():
                return _open(backend)
        except Exception as refused:  # noqa: BLE001 - what a driver raises is not known beforehand
            reasons.append(f"{backend}: {type(refused).__name__}: {refused}")
    raise NoViewport(
        f"nothing can be drawn on this machine, as no GL without a screen works ({'; '.join(reasons)}). "
        f"`urlab doctor` looks into it; on Debian: {INSTALL_LINE}"
    )


def _wanted() -> tuple[str, ...]:
    word = os.environ.get(_CHOICE, "").strip().lower()
    if word in _OFF_WORDS:
        raise NoViewport(f"nothing can be drawn, as MUJOCO_GL={word} switches drawing off; unset it or set it to egl")
    return (word,) if word in BACKENDS else BACKENDS


def _open(backend: str) -> GlContext:
    handle = importlib.import_module(f"mujoco.{backend}").GLContext(*_WINDOW_SIZE)
    handle.make_current()
    _let_mujoco_draw(backend)
    gl: Any = importlib.import_module("OpenGL.GL")
    return GlContext(backend, gl.glGetString(gl.GL_RENDERER).decode(), handle)


def _let_mujoco_draw(backend: str) -> None:
    """MuJoCo looks up GL's functions once, when it first draws, where the variable says; it must be the same GL."""
    mujoco: Any = importlib.import_module("mujoco")
    chosen = os.environ.get(_CHOICE)
    os.environ[_CHOICE] = backend
    try:
        mujoco.MjrContext(mujoco.MjModel.from_xml_string(_NOTHING), mujoco.mjtFontScale.mjFONTSCALE_50.value).free()
    finally:
        _restore(_CHOICE, chosen)


@contextmanager
def _one_platform() -> Iterator[None]:
    """Let PyOpenGL bind itself to a platform; should that fail, let the next one have a chance.

    It does so once and for all when it is imported, after a variable that our own child processes must not inherit.
    """
    modules, platform = set(sys.modules), os.environ.get(_PLATFORM)
    try:
        yield
    except Exception:
        for name in [name for name in sys.modules if name not in modules and _is_gl(name)]:
            del sys.modules[name]
        raise
    finally:
        _restore(_PLATFORM, platform)


def _restore(variable: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value


def _is_gl(module: str) -> bool:
    return module.split(".")[0] == "OpenGL" or module.startswith(tuple(f"mujoco.{backend}" for backend in BACKENDS))
