"""Exports: a saved recording in, a file of another format out, with pictures of what cameras would have seen.

`formats` has the base of a format, which registers by being declared; `film` is one of them. `clip` is the part of a
recording that is exported, `pictures` draws its states through a camera of a scene. `jobs` runs exports one after the
other, away from the simulation, and tells how far they are.
"""

from urlab.export.clip import Clip, RecordedState
from urlab.export.film import Mp4
from urlab.export.formats import Advance, ExportFormat, StatePictures, export_format
from urlab.export.jobs import ExportJob, ExportJobs
from urlab.export.pictures import CameraPictures

__all__ = [
    "Advance",
    "CameraPictures",
    "Clip",
    "ExportFormat",
    "ExportJob",
    "ExportJobs",
    "Mp4",
    "RecordedState",
    "StatePictures",
    "export_format",
]
