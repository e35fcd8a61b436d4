"""The camera modes: how a scene is drawn for each, and how the drawing becomes the pixels of a frame.

Every module of this folder is imported here, so declaring a mode registers it.
"""

import importlib
import pkgutil

from urlab.cameras.modes.render_mode import RenderMode, declared_modes, make_mode

__all__ = ["RenderMode", "declared_modes", "make_mode"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
