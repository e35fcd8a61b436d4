"""Bringing files into a project: read, made self-contained, compiled once in a child process, and stored.

``heightfields`` makes ground from heights, ``hulls`` cuts imported meshes into convex pieces.
"""

from urlab.importing.limited_process import StopSwitch
from urlab.importing.pipeline import add_import, import_file

__all__ = ["StopSwitch", "add_import", "import_file"]
