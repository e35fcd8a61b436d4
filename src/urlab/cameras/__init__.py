"""Snapshots in, pictures out: drawing without a screen, and the cameras of a running scene.

`capture` gives frames on request and keeps the wanted cameras drawn; `scene_camera` is one camera. `renderer` draws a
snapshot on the one thread of `gl_thread`, into an `offscreen_buffer`, as the camera's mode (`modes`), its `projection`
and the render `profile` say; `segmentation` has the labels and their colours.

The names of `gl_thread` come without loading MuJoCo, for the command line; the others load it when they are named.
"""

import importlib
from typing import TYPE_CHECKING, Any

from urlab.cameras.gl_thread import GL_BACKENDS, GL_INSTALL_LINE, GlThread, shared_gl

if TYPE_CHECKING:
    from urlab.cameras.capture import Capture
    from urlab.cameras.profile import effective_profile
    from urlab.cameras.renderer import Frame, RenderRequest, SceneRenderer, rendering
    from urlab.cameras.scene_camera import SceneCamera
    from urlab.cameras.segmentation import segmentation_table

__all__ = [
    "GL_BACKENDS",
    "GL_INSTALL_LINE",
    "Capture",
    "Frame",
    "GlThread",
    "RenderRequest",
    "SceneCamera",
    "SceneRenderer",
    "effective_profile",
    "rendering",
    "segmentation_table",
    "shared_gl",
]

_HOMES = {
    "Capture": "capture",
    "Frame": "renderer",
    "RenderRequest": "renderer",
    "SceneCamera": "scene_camera",
    "SceneRenderer": "renderer",
    "effective_profile": "profile",
    "rendering": "renderer",
    "segmentation_table": "segmentation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
