"""Replay in direct and puppet mode: step(n) shows the frame n further on."""

import json
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

FRAMES = 12


@pytest.fixture
def recorded(wire: Any, tmp_path: Path, engine: Any) -> Any:
    """A client, a file of a recording, and the qpos of its frames; the scene has been reset since."""
    wire.ok("recording_start")
    qpos = []
    for index in range(FRAMES):
        wire.ok("step", per_articulation={"arm": {"ctrl": [0.1 * index, 0.5]}})
        qpos.append(engine().data.qpos.tolist())
    wire.ok("recording_stop")
    path = wire.ok("recording_save", path=str(tmp_path / "episode.json"))["absolute_path"]
    wire.ok("reset")
    return wire, path, qpos


@pytest.fixture
def playing(recorded: Any) -> Any:
    """The recording, loaded and started."""
    wire, path, qpos = recorded
    assert wire.ok("replay_load", path=path) == {"op": "replay_load_ok", "name": "episode", "total_frames": FRAMES}
    reply = wire.ok("replay_start")
    assert (reply["active_session"], reply["total_frames"]) == ("episode", FRAMES)
    return wire, qpos


def test_the_start_shows_frame_0(playing: Any, engine: Any) -> None:
    _, qpos = playing
    assert engine().data.qpos.tolist() == qpos[0]
    assert engine().data.time == 0.002


@pytest.mark.parametrize("mode", ["direct", "puppet"])
def test_a_step_of_n_goes_on_by_n_frames(playing: Any, engine: Any, mode: str) -> None:
    wire, qpos = playing
    wire.ok("set_mode", mode=mode)
    for n_steps, frame in ((1, 1), (3, 4), (5, 9)):
        seen = wire.ok("step", n_steps=n_steps, per_articulation={"arm": {"ctrl": [9, 9]}})
        assert seen["replay"] == {"active_session": "episode", "frame": frame, "total_frames": FRAMES}
        assert engine().data.qpos.tolist() == qpos[frame]
        assert seen["time"] == pytest.approx(0.002 * (frame + 1))
        assert seen["per_articulation"]["arm"]["qpos"] == qpos[frame][:2]


def test_derived_values_follow_the_frame(playing: Any, engine: Any, plain: Any) -> None:
    wire, qpos = playing
    wire.ok("step", n_steps=4)
    alone = plain(wire.hello()["mjb"])
    alone.data.qpos[:] = qpos[4]
    mujoco.mj_kinematics(alone.model, alone.data)
    assert np.array_equal(engine().data.xpos, alone.data.xpos)


def test_the_end_is_held(playing: Any, engine: Any) -> None:
    wire, qpos = playing
    for _ in range(2):
        seen = wire.ok("step", n_steps=1000)
        assert seen["replay"]["frame"] == FRAMES - 1
        assert engine().data.qpos.tolist() == qpos[-1]


def test_a_loop_wraps(recorded: Any, engine: Any) -> None:
    wire, path, qpos = recorded
    wire.ok("replay_load", path=path)
    wire.ok("replay_start", loop=True)
    assert wire.ok("step", n_steps=FRAMES + 2)["replay"]["frame"] == 2
    assert engine().data.qpos.tolist() == qpos[2]


def test_after_the_stop_stepping_goes_on_from_the_state_shown(
    playing: Any, engine: Any, plain: Any, full_state: Any
) -> None:
    wire, qpos = playing
    wire.ok("step", n_steps=5)
    wire.ok("replay_stop")
    alone = plain(wire.hello()["mjb"])
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    mujoco.mj_setState(alone.model, alone.data, full_state(engine()), spec)
    assert alone.data.qpos.tolist() == qpos[5]
    raw = {"walker": {"control_mode": "raw"}}
    seen = wire.ok("step", n_steps=20, per_articulation=raw)
    alone.data.ctrl[:] = 0
    alone.step(20)
    assert "replay" not in seen
    assert seen["time"] == pytest.approx(0.012 + 0.04)
    assert np.array_equal(engine().data.qpos, alone.data.qpos)


def test_commands_of_a_replayed_step_are_checked_but_not_staged(playing: Any, server: Any) -> None:
    wire, _ = playing
    assert wire.refused("step", per_articulation={"robot": {}}) == "unknown_articulation"
    wire.ok("step", per_articulation={"arm": {"ctrl": [9, 9]}})
    assert server.play.manager.articulations["arm"].staged.active.tolist() == [0, 0]


@pytest.mark.parametrize("mode", ["direct", "puppet", "live"])
def test_a_seek_goes_to_a_frame_in_every_mode(recorded: Any, engine: Any, mode: str) -> None:
    wire, path, qpos = recorded
    wire.ok("replay_load", path=path)
    wire.ok("set_mode", mode=mode)
    wire.ok("replay_start", paused=True)
    for frame in (7, 2, FRAMES - 1, 0):
        reply = wire.ok("replay_seek", frame=frame)
        assert reply == {
            "op": "replay_seek_ok", "active_session": "episode", "frame": frame, "total_frames": FRAMES,
            "time": pytest.approx(0.002 * (frame + 1)),
        }  # fmt: skip
        assert engine().data.qpos.tolist() == qpos[frame]
    assert wire.ok("replay_seek", time=0.0091)["frame"] == 3
    seen = wire.ok("step", n_steps=0)
    assert (seen["replay"]["frame"], seen["time"]) == (3, pytest.approx(0.008))


def test_steps_go_on_from_where_a_seek_went(playing: Any, engine: Any) -> None:
    wire, qpos = playing
    wire.ok("replay_seek", frame=8)
    assert wire.ok("step", n_steps=2)["replay"]["frame"] == 10
    assert engine().data.qpos.tolist() == qpos[10]


def test_a_seek_that_leads_nowhere_changes_nothing(playing: Any, world: Any) -> None:
    wire, _ = playing
    wire.ok("replay_seek", frame=4)
    before = world()
    for fields in ({"frame": FRAMES}, {"frame": -1}, {"time": 0.001}, {"frame": 1, "time": 0.01}, {"time": 1e400}):
        reply = wire.ask("replay_seek", **fields)
        assert reply["code"] == "bad_value"
    assert f"{FRAMES} frames" in wire.ask("replay_seek", frame=FRAMES)["message"]
    assert wire.refused("replay_seek") == "missing_field"
    assert world() == before
    assert wire.ok("step", n_steps=0)["replay"]["frame"] == 4
    wire.ok("replay_stop")
    assert wire.refused("replay_seek", frame=0) == "replay_session_not_found"


def test_an_observer_sees_where_a_replay_stands(playing: Any, stranger: Any) -> None:
    wire, _ = playing
    stranger.hello(observer=True)
    wire.ok("replay_seek", frame=5)
    told = stranger.ok("pie_status")["replay"]
    assert told == {
        "active_session": "episode", "frame": 5, "total_frames": FRAMES, "time": pytest.approx(0.012),
        "playing": False, "loop": False,
    }  # fmt: skip
    assert stranger.refused("replay_seek", frame=0) == "observer_read_only"
    wire.ok("replay_stop")
    assert "replay" not in stranger.ok("pie_status")


def test_live_mode_plays_a_replay_for_a_client_that_says_paused(recorded: Any, engine: Any) -> None:
    wire, path, qpos = recorded
    wire.ok("set_mode", mode="live")
    wire.ok("replay_load", path=path)
    assert wire.ok("replay_start", paused=False)["total_frames"] == FRAMES
    while (at := wire.ok("pie_status")["replay"])["frame"] < FRAMES - 1:
        pass
    assert engine().data.qpos.tolist() == qpos[-1]
    while at["playing"]:
        at = wire.ok("pie_status")["replay"]
    assert wire.ok("step")["replay"]["frame"] == FRAMES - 1, "the end is held"


def test_a_pause_halts_a_live_replay_and_lets_it_go_on(recorded: Any) -> None:
    wire, path, _ = recorded
    wire.ok("set_mode", mode="live")
    wire.ok("replay_load", path=path)
    wire.ok("replay_start", paused=True, loop=True)
    status = wire.ok("pie_status")
    assert (status["paused"], status["replay"]["frame"], status["replay"]["playing"]) == (True, 0, False)
    wire.ok("set_paused", paused=False)
    assert wire.ok("pie_status")["replay"]["playing"]
    while wire.ok("pie_status")["replay"]["frame"] < 5:
        pass
    wire.ok("set_paused", paused=True)
    stood = wire.ok("replay_seek", frame=3)
    assert wire.ok("pie_status")["replay"]["frame"] == stood["frame"] == 3
    wire.ok("set_mode", mode="direct")
    assert wire.ok("step")["replay"]["frame"] == 4, "a client that steps goes on from there"


def test_live_mode_has_no_replay(recorded: Any) -> None:
    wire, path, _ = recorded
    wire.ok("set_mode", mode="live")
    wire.ok("replay_load", path=path)
    assert wire.refused("replay_start") == "replay_requires_stepped"


def test_going_live_ends_a_replay(playing: Any) -> None:
    wire, _ = playing
    wire.ok("set_mode", mode="live")
    wire.ok("set_mode", mode="direct")
    assert "replay" not in wire.ok("step")


def test_a_reset_and_a_recording_end_a_replay(playing: Any) -> None:
    wire, _ = playing
    wire.ok("reset")
    assert "replay" not in wire.ok("step")
    wire.ok("replay_start")
    wire.ok("recording_start")
    assert "replay" not in wire.ok("step")


def test_the_live_recording_can_be_replayed_without_a_file(recorded: Any) -> None:
    wire, _, qpos = recorded
    assert wire.ok("replay_list_sessions")["sessions"] == ["live"]
    assert wire.ok("replay_start")["active_session"] == "live"
    assert wire.ok("step")["per_articulation"]["arm"]["qpos"] == qpos[1][:2]


def test_the_session_of_a_recording_has_the_name_that_it_was_started_with(wire: Any) -> None:
    assert wire.ok("recording_start", name="ep_1234")["name"] == "ep_1234"
    wire.ok("step", n_steps=4)
    assert wire.ok("recording_stop")["name"] == "ep_1234"
    assert wire.ok("replay_list_sessions")["sessions"] == ["ep_1234"]
    for name in ("ep_1234", "live"):
        wire.ok("replay_set_active", name=name)
        assert wire.ok("replay_start") == {"op": "replay_start_ok", "active_session": "ep_1234", "total_frames": 4}
        assert wire.ok("step")["replay"]["active_session"] == "ep_1234"


def test_sessions_are_listed_and_chosen(recorded: Any) -> None:
    wire, path, _ = recorded
    wire.ok("replay_load", path=path)
    assert wire.ok("replay_list_sessions")["sessions"] == ["live", "episode"]
    wire.ok("replay_set_active", name="live")
    assert wire.ok("replay_start")["active_session"] == "live"
    reply = wire.ask("replay_set_active", name="other")
    assert (reply["code"], "episode" in reply["message"]) == ("replay_session_not_found", True)
    assert wire.refused("replay_set_active") == "missing_field"


def test_without_any_recording_there_is_nothing_to_start(wire: Any, world: Any) -> None:
    before = world()
    assert wire.refused("replay_start") == "replay_session_not_found"
    assert world() == before
    wire.ok("replay_stop")


def half(text: str) -> str:
    return text[: len(text) // 2]


SPOILT = {
    "half-written": half,
    "empty": lambda _: "",
    "no JSON": lambda _: "once upon a time",
    "a list": lambda _: "[1, 2]",
    "no frames": lambda _: '{"Frames": []}',
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_file_that_is_no_recording_is_refused_with_a_reason(recorded: Any, world: Any, spoil: Any) -> None:
    wire, path, _ = recorded
    Path(path).write_text(spoil(Path(path).read_text()))
    before = world()
    reply = wire.ask("replay_load", path=path)
    assert reply["code"] == "path_not_readable"
    assert path in reply["message"]
    assert len(reply["message"]) > len(path) + 20
    assert world() == before


def test_a_file_of_another_robot_is_refused_with_both_sides_joints(recorded: Any, tmp_path: Path) -> None:
    wire, _, _ = recorded
    foreign = {"Frames": [{"timestamp": 0.0, "jointStates": {"lamp_switch": {"qPos": [1], "qVel": [0]}}}]}
    (tmp_path / "lamp.json").write_text(json.dumps(foreign))
    reply = wire.ask("replay_load", path=str(tmp_path / "lamp.json"))
    assert reply["code"] == "path_not_readable"
    assert all(name in reply["message"] for name in ("lamp_switch", "arm_elbow"))


def test_a_file_that_does_not_exist_is_named(wire: Any) -> None:
    reply = wire.ask("replay_load", path="nowhere.json")
    assert (reply["code"], "nowhere.json" in reply["message"]) == ("path_not_readable", True)
    assert wire.refused("replay_load") == "missing_field"
