"""Recording and replay: what the joints did, step by step, in memory and in files."""

from urlab.recording.files import load_path, read_recording, save_path
from urlab.recording.json_format import write_json
from urlab.recording.player import ReplayPlayer
from urlab.recording.recorder import Recorder
from urlab.recording.recording import LIVE, RecordedJoint, Recording

__all__ = [
    "LIVE",
    "RecordedJoint",
    "Recorder",
    "Recording",
    "ReplayPlayer",
    "load_path",
    "read_recording",
    "save_path",
    "write_json",
]
