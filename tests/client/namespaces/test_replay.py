from pathlib import Path
from typing import Any

import pytest

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
