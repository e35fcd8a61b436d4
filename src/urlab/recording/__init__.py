"""Recording and replay: what the joints did, step by step, in memory and in files."""

from urlab.recording.files import read_recording, write_recording
from urlab.recording.joint_match import JointMapping, match_joints
from urlab.recording.paths import DEFAULT_FILE, Allow, load_path, save_path
from urlab.recording.player import ReplayPlayer, ReplaySession
from urlab.recording.recorder import UNLIMITED_S, Recorder
from urlab.recording.recording import LIVE, RecordedJoint, Recording

__all__ = [
    "DEFAULT_FILE",
    "LIVE",
    "UNLIMITED_S",
    "Allow",
    "JointMapping",
    "RecordedJoint",
    "Recorder",
    "Recording",
    "ReplayPlayer",
    "ReplaySession",
    "load_path",
    "match_joints",
    "read_recording",
    "save_path",
    "write_recording",
]
