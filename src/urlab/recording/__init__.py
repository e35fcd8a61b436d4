"""Recording and replay: states in while the simulation steps, files and frames to show again out.

`recorder` copies one frame per mj_step, and `journal` has them on disk as they come; a `recording` is what was
captured. `files` finds one that a client names and reads it, as JSON (`json_format`), CSV or MCAP (`mcap_frames`),
large ones of other writers in a child process (`reading_child`); `listing` tells what is saved; `player` shows it frame
by frame, on the joints that it matches. `mcap_file` writes MCAP, of messages that `ros_messages` makes.
"""

from urlab.recording.files import load_path, read_recording, save_path
from urlab.recording.journal import Journal, JournalHeader, recover_in_background
from urlab.recording.json_format import write_json
from urlab.recording.listing import RecordingFile, list_recordings, read_header
from urlab.recording.mcap_frames import MCAP
from urlab.recording.player import PlayableRecording, ReplayPlayer, ReplayPosition, fitted
from urlab.recording.recorder import Recorder
from urlab.recording.recording import LIVE, RecordedJoint, RecordedSignals, Recording, recorded_signals

__all__ = [
    "LIVE",
    "MCAP",
    "Journal",
    "JournalHeader",
    "PlayableRecording",
    "RecordedJoint",
    "RecordedSignals",
    "Recorder",
    "Recording",
    "RecordingFile",
    "ReplayPlayer",
    "ReplayPosition",
    "fitted",
    "list_recordings",
    "load_path",
    "read_header",
    "read_recording",
    "recorded_signals",
    "recover_in_background",
    "save_path",
    "write_json",
]
