"""Exports: saved recordings in, files of other formats out, with pictures of what cameras would have seen.

`formats` has the base of a format, which registers by being declared: `film`, `mcap`, `table` (Parquet), `hdf5`
(robomimic's layout) and `lerobot` with its `lerobot_tables`. `clip` is the part of a recording that is exported,
`episodes` what a format is given: clips and cameras, and their samples for learners. `pictures` draws states through a
camera of a scene. `jobs` runs exports one after the other, away from the simulation, and tells how far they are.
"""

from urlab.export.clip import Clip, RecordedState
from urlab.export.episodes import EpisodeOutcome, ExportSource, RecordedEpisode
from urlab.export.film import Mp4
from urlab.export.formats import Advance, CameraUse, ExportFormat, export_format
from urlab.export.hdf5 import Hdf5
from urlab.export.jobs import ExportJob, ExportJobs
from urlab.export.lerobot import LeRobot
from urlab.export.mcap import Mcap
from urlab.export.pictures import CameraPictures, StatePictures
from urlab.export.table import Parquet

__all__ = [
    "Advance",
    "CameraPictures",
    "CameraUse",
    "Clip",
    "EpisodeOutcome",
    "ExportFormat",
    "ExportJob",
    "ExportJobs",
    "ExportSource",
    "Hdf5",
    "LeRobot",
    "Mcap",
    "Mp4",
    "Parquet",
    "RecordedEpisode",
    "RecordedState",
    "StatePictures",
    "export_format",
]
