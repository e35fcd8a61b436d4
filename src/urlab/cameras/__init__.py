"""Seeing without a screen: the GL context that every view shares, the renderer, and the cameras of a scene.

Whoever only asks about GL, as the command line does, gets it without loading MuJoCo; the rest comes when it is named.
"""

import importlib
from typing import TYPE_CHECKING, Any

from urlab.cameras.gl_thread import GlThread, shared_gl

if TYPE_CHECKING:
    from urlab.cameras.capture import Capture
    from urlab.cameras.channel import CameraChannel
    from urlab.cameras.frame import Frame, PixelType, Shot
    from urlab.cameras.profile import effective_profile, is_software
    from urlab.cameras.renderer import SceneRenderer
    from urlab.cameras.segmentation import segmentation_table

__all__ = [
    "CameraChannel",
    "Capture",
    "Frame",
    "GlThread",
    "PixelType",
    "SceneRenderer",
    "Shot",
    "effective_profile",
    "is_software",
    "segmentation_table",
    "shared_gl",
]

_HOMES = {
    "CameraChannel": "channel",
    "Capture": "capture",
    "Frame": "frame",
    "PixelType": "frame",
    "SceneRenderer": "renderer",
    "Shot": "frame",
    "effective_profile": "profile",
    "is_software": "profile",
    "segmentation_table": "segmentation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
