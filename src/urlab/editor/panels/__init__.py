"""The panels of a page, one file each: declaring a panel puts it there, in the order of its ``place``."""

import pkgutil
from importlib import import_module

from urlab.editor.panels.base import PANELS, Panel

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
PANELS.sort(key=lambda kind: kind.place)

__all__ = ["PANELS", "Panel"]
