from pathlib import Path
from typing import Any

import pytest

import urlab
from urlab_client import ReplaySession, ReplayStatus, URLabClient


@pytest.fixture
def replaying(client: URLabClient, server: Any) -> URLabClient:
    server.replies |= {
        "replay_load": {"name": "ep_1", "total_frames": 50},
        "replay_start": {"active_session": "ep_1", "total_frames": 50},
        "replay_list_sessions": {"sessions": ["live", "ep_1"]},
    }
    server.received.clear()
    return client


def test_a_recording_is_loaded_chosen_and_started(replaying: URLabClient):
    assert replaying.replay.active_session is None
    assert replaying.replay.load("ep_1.json") == ReplaySession("ep_1", 50, Path("ep_1.json"))
    assert replaying.replay.list_sessions() == ["live", "ep_1"]
    replaying.replay.set_active("live")
    assert replaying.replay.active_session == "live"
    assert replaying.replay.start() == ReplayStatus("ep_1", 50)
    replaying.replay.stop()


def test_playing_a_path_loads_it(replaying: URLabClient, server: Any):
    session = replaying.replay.play("/data/ep_1.json", loop=True)
    assert session == ReplaySession("ep_1", 50, Path("/data/ep_1.json"))
    assert server.ops() == ["replay_load", "replay_set_active", "replay_start"]
    assert server.last("replay_start")["loop"] is True


def test_playing_a_loaded_name_does_not_load_it_again(replaying: URLabClient, server: Any):
    assert replaying.replay.play("ep_1").total_frames == 50
    assert server.ops() == ["replay_set_active", "replay_start"]
    assert "loop" not in server.last("replay_start")


def test_playing_a_name_that_is_not_loaded_loads_it(replaying: URLabClient, server: Any, refuse: Any):
    answers = iter([refuse("replay_session_not_found"), {}])
    server.replies["replay_set_active"] = lambda _: next(answers)
    replaying.replay.play("ep_1")
    assert server.ops() == ["replay_set_active", "replay_load", "replay_set_active", "replay_start"]


def test_a_replay_is_sent_to_a_frame_or_a_time(replaying: URLabClient, server: Any):
    server.replies["replay_seek"] = {"active_session": "ep_1", "frame": 7, "total_frames": 50, "time": 0.016}
    assert replaying.replay.seek(7) == ReplayStatus("ep_1", 50, frame=7, time=0.016)
    assert (server.last("replay_seek")["frame"], "time" in server.last("replay_seek")) == (7, False)
    replaying.replay.seek(time=0.5)
    sent = server.last("replay_seek")
    assert (sent["time"], "frame" in sent) == (0.5, False)


def test_whether_it_plays_by_itself_is_said_only_if_it_was_asked(replaying: URLabClient, server: Any):
    replaying.replay.start()
    assert "paused" not in server.last("replay_start")
    replaying.replay.play("ep_1", paused=False)
    assert server.last("replay_start")["paused"] is False


def test_the_status_tells_where_a_replay_stands(replaying: URLabClient, server: Any):
    assert replaying.replay.status() is None
    server.replies["pie_status"] = {
        "state": "ready",
        "replay": {
            "active_session": "ep_1", "frame": 3, "total_frames": 50, "time": 0.5, "playing": True, "loop": False,
        },
    }  # fmt: skip
    assert replaying.replay.status() == ReplayStatus("ep_1", 50, frame=3, time=0.5, playing=True)


def test_a_live_scene_is_scrubbed_and_played_by_a_client(tmp_path: Path):
    with urlab.launch("box", project=tmp_path, step_mode="live") as client:
        client.recording.start("drop")
        while client.recording.frame_count < 20:
            pass
        client.recording.stop()
        session = client.replay.play("drop", paused=True)
        assert client.replay.seek(5).frame == 5
        assert client.replay.status() == client.sim.status().replay
        assert not client.replay.status().playing
        client.runtime.set_paused(False)
        while client.replay.status().frame < session.total_frames - 1:
            pass
        client.replay.stop()
        assert client.replay.status() is None
