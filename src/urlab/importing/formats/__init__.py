"""File formats that can be imported: a file in, a `Bundle` out.

Every module of this folder is imported here, so declaring an `ImportFormat` registers it.
"""

import importlib
import pkgutil

from urlab.importing.formats.format import ImportFormat, format_of, suffixes

__all__ = ["ImportFormat", "format_of", "suffixes"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
