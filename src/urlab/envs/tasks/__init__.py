"""The tasks that ship with the server, one per module; importing this package declares them all."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__: list[str] = []
