"""File formats that can be imported: one file each, found because it is here."""

import importlib
import pkgutil

from urlab.importing.formats.format import ImportFormat, format_of, suffixes

__all__ = ["ImportFormat", "format_of", "suffixes"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
