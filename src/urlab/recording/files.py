"""Recordings on disk, whatever their format."""

from pathlib import Path

from urlab.recording.csv_format import read_csv
from urlab.recording.json_reader import read_json
from urlab.recording.json_writer import write_json
from urlab.recording.recording import Recording

write_recording = write_json


def read_recording(path: Path) -> Recording:
    """Read ``path`` as CSV when its suffix says so, else as JSON; PathNotReadable with the reason."""
    return read_csv(path) if path.suffix.lower() == ".csv" else read_json(path)
