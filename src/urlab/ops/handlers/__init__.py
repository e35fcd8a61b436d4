"""The handlers of all ops, one module per namespace.

Every module of this folder is imported here: to declare a handler in one is to have it.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__: list[str] = []
