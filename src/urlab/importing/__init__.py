"""Bringing files into a project: read, made self-contained, compiled once in a child process, and stored.

``hulls`` cuts imported meshes into convex pieces.
"""

from urlab.importing.heightfields import heightfield_bundle, heights_from_image
from urlab.importing.limited_process import StopSwitch
from urlab.importing.pipeline import add_import, import_file

__all__ = ["StopSwitch", "add_import", "heightfield_bundle", "heights_from_image", "import_file"]
