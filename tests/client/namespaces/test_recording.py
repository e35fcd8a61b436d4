from pathlib import Path
from typing import Any

from urlab_client import RecordingHandle, RecordingSummary, URLabClient


def test_a_recording_is_begun_stopped_and_saved(client: URLabClient, server: Any):
    server.replies |= {
        "recording_start": {"name": "ep_1", "max_duration_s": 60.0},
        "recording_stop": {"name": "ep_1", "frame_count": 100, "sim_duration_s": 1.0},
        "recording_save": {"absolute_path": "/data/ep_1.json"},
    }
    assert client.recording.start("ep_1") == RecordingHandle("ep_1", 60.0)
    assert client.recording.is_active
    assert client.recording.stop() == RecordingSummary(100, 1.0)
    assert not client.recording.is_active
    assert (client.recording.frame_count, client.recording.sim_duration) == (100, 1.0)
    assert client.recording.save(Path("ep_1.json")) == Path("/data/ep_1.json")
    assert server.last("recording_save")["path"] == "ep_1.json"
    assert client.recording.last_saved_path == Path("/data/ep_1.json")
    client.recording.clear()
    assert client.recording.frame_count == 0


def test_clearing_does_not_end_a_recording(client: URLabClient):
    client.recording.start()
    client.recording.clear()
    assert client.recording.is_active


def test_saving_without_a_path_leaves_the_name_to_the_server(client: URLabClient, server: Any):
    client.recording.save()
    assert "path" not in server.last("recording_save")
