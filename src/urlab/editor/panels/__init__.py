"""The panels of a page: declaring one puts it there, at the place that its ``order`` says.

Most are a file each; `place` and `push` are parts of the inspector that have one of their own.
"""

import pkgutil
from importlib import import_module

from urlab.editor.panels.base import PANELS, Panel

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
PANELS.sort(key=lambda kind: kind.order)

__all__ = ["PANELS", "Panel"]
