"""The handlers of all ops: a typed request in, a typed reply out. Most modules are named after a namespace.

Three are not: `session` has hello and meta, `stepping` has step, reset and forward, `cameras` the camera ops of the
namespace runtime. Every module of this folder is imported here, so declaring a handler registers it.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__: list[str] = []
