from pathlib import Path
from typing import Any

import urlab
from urlab_client import RecordingHandle, RecordingStatus, RecordingSummary, URLabClient


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


def test_the_properties_count_while_a_recording_runs(tmp_path: Path):
    with urlab.launch("box", project=tmp_path) as client:
        recording, timestep = client.recording, client.model.opt.timestep
        assert (recording.is_active, recording.frame_count, recording.sim_duration) == (False, 0, 0.0)
        recording.start("ep_1")
        client.step(7)
        assert (recording.is_active, recording.frame_count, recording.sim_duration) == (True, 7, 7 * timestep)
        assert recording.status() == RecordingStatus(True, "ep_1", 7, 7 * timestep)
        assert recording.stop() == RecordingSummary(7, 7 * timestep)
        assert (recording.is_active, recording.frame_count) == (False, 7)
        recording.start()
        client.sim.stop()
        assert not recording.is_active
    assert not recording.is_active, "of a closed client"
