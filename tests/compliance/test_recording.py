"""Recording: one frame per mj_step, a rolling window, and files that stay where they belong."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import make_reader


@pytest.fixture
def replays(project: Path) -> Path:
    return project / "Saved" / "URLab" / "Replays"


def frames_of(path: str | Path) -> list[Any]:
    return json.loads(Path(path).read_text())["Frames"]


def record(wire: Any, n_steps: int = 10, **start: Any) -> Any:
    wire.ok("recording_start", **start)
    wire.ok("step", n_steps=n_steps)
    return wire.ok("recording_stop")


def test_a_recording_has_a_name_and_a_window(wire: Any) -> None:
    reply = wire.ok("recording_start", name=None, max_duration_s=None)
    assert (reply["name"], reply["max_duration_s"]) == ("live", 3.4028234663852886e38)
    wire.ok("recording_stop")
    reply = wire.ok("recording_start", name="ep_1", max_duration_s=3600)
    assert (reply["name"], reply["max_duration_s"]) == ("ep_1", 3600)


def test_direct_mode_records_one_frame_per_mj_step(wire: Any, tmp_path: Path) -> None:
    wire.ok("recording_start")
    for n_steps in (1, 7, 2):
        wire.ok("step", n_steps=n_steps)
    reply = wire.ok("recording_stop")
    assert reply["frame_count"] == 10
    assert reply["sim_duration_s"] == 10 * 0.002, "a frame stands for the step that led to it"
    frames = frames_of(wire.ok("recording_save", path=str(tmp_path / "a.json"))["absolute_path"])
    assert [frame["timestamp"] for frame in frames] == pytest.approx([0.002 * (i + 1) for i in range(10)])
    assert len(frames[0]["jointStates"]["walker_root"]["qPos"]) == 7


def test_puppet_mode_records_one_frame_per_push(wire: Any) -> None:
    wire.ok("set_mode", mode="puppet")
    wire.ok("recording_start")
    for time in (0.5, 1.5, 2.5):
        wire.ok("step", time=time, n_steps=9)
    reply = wire.ok("recording_stop")
    assert (reply["frame_count"], reply["sim_duration_s"]) == (3, 3 * 0.002)


def test_frames_are_counted_while_a_recording_runs(wire: Any, stranger: Any) -> None:
    def told() -> Any:
        status = stranger.ok("recording_status")
        return [status[key] for key in ("active", "name", "frame_count", "sim_duration_s")]

    stranger.hello(observer=True)
    assert told() == [False, "live", 0, 0.0]
    wire.ok("recording_start", name="ep_7")
    assert told() == [True, "ep_7", 0, 0.0]
    wire.ok("step", n_steps=7)
    assert told() == [True, "ep_7", 7, 7 * 0.002]
    wire.ok("recording_stop")
    assert told() == [False, "ep_7", 7, 7 * 0.002]
    wire.ok("recording_clear")
    assert told() == [False, "ep_7", 0, 0.0]


def test_a_rolling_window_counts_the_frames_that_it_holds(wire: Any) -> None:
    wire.ok("recording_start", max_duration_s=0.02)
    for n_steps in (4, 40):
        wire.ok("step", n_steps=n_steps)
    counted = wire.ok("recording_status")["frame_count"]
    assert counted == wire.ok("recording_stop")["frame_count"] == 11


def test_a_recording_keeps_the_seed_of_its_reset(wire: Any, tmp_path: Path) -> None:
    def kept(name: str) -> Any:
        path = wire.ok("recording_save", path=str(tmp_path / name))["absolute_path"]
        return json.loads(Path(path).read_text())["urlab"].get("seed")

    record(wire)
    assert kept("none.json") is None
    wire.ok("reset", seed=42)
    record(wire)
    wire.ok("reset", seed=7)
    assert kept("a.json") == 42, "what comes after the end of a recording is not part of it"
    wire.ok("recording_start")
    wire.ok("step")
    wire.ok("reset", seed=8)
    assert kept("b.json") == 8


def test_live_mode_records_one_frame_per_mj_step(wire: Any) -> None:
    wire.ok("recording_start")
    wire.ok("set_paused", paused=True)  # none runs before the switch has begun the count
    wire.ok("set_mode", mode="live")
    wire.ok("set_paused", paused=False)
    while wire.ok("step")["step"] < 10:
        pass
    wire.ok("set_mode", mode="direct")
    steps = wire.ok("step")["step"]
    assert wire.ok("recording_stop")["frame_count"] == steps


def test_nothing_but_steps_is_recorded(wire: Any) -> None:
    wire.ok("recording_start")
    for op in ("forward", "get_contacts", "reset"):
        wire.ok(op)
    wire.ok("set_qpos", target="arm", qpos=[0, 0])
    assert wire.ok("recording_stop")["frame_count"] == 0


def test_the_window_keeps_the_last_seconds(wire: Any, tmp_path: Path) -> None:
    assert record(wire, n_steps=100, max_duration_s=0.02)["frame_count"] == 11
    frames = frames_of(wire.ok("recording_save", path=str(tmp_path / "w.json"))["absolute_path"])
    assert frames[-1]["timestamp"] == pytest.approx(0.2)
    assert frames[0]["timestamp"] == pytest.approx(0.18)


@pytest.mark.parametrize("window", [0, -1, float("nan"), float("inf"), "long"])
def test_a_window_must_be_a_duration(wire: Any, window: Any) -> None:
    assert wire.refused("recording_start", max_duration_s=window) == "bad_value"
    assert wire.refused("recording_stop") == "recording_not_active"


def test_one_recording_at_a_time(wire: Any) -> None:
    wire.ok("recording_start", name="first")
    reply = wire.ask("recording_start", name="second")
    assert (reply["code"], "first" in reply["message"]) == ("recording_already_active", True)


def test_without_a_recording_there_is_nothing_to_stop_or_save(wire: Any) -> None:
    assert wire.refused("recording_stop") == "recording_not_active"
    assert wire.refused("recording_save") == "recording_not_active"
    assert wire.ok("recording_clear")


def test_a_recording_survives_a_change_of_session(wire: Any) -> None:
    wire.ok("recording_start")
    wire.ok("step", n_steps=3)
    wire.hello()
    wire.ok("step", n_steps=2)
    assert wire.ok("recording_stop")["frame_count"] == 5


def test_a_running_recording_can_be_saved_and_goes_on(wire: Any) -> None:
    wire.ok("recording_start")
    wire.ok("step", n_steps=3)
    assert len(frames_of(wire.ok("recording_save", path="part")["absolute_path"])) == 3
    wire.ok("step", n_steps=3)
    assert wire.ok("recording_stop")["frame_count"] == 6


def test_clearing_forgets_a_stopped_recording(wire: Any) -> None:
    record(wire)
    wire.ok("recording_clear")
    assert wire.refused("recording_save") == "recording_not_active"


def test_clearing_empties_a_running_recording(wire: Any) -> None:
    wire.ok("recording_start")
    wire.ok("step", n_steps=3)
    wire.ok("recording_clear")
    wire.ok("step", n_steps=2)
    assert wire.ok("recording_stop")["frame_count"] == 2


def test_bare_names_go_to_the_replay_folder(wire: Any, replays: Path) -> None:
    record(wire)
    assert wire.ok("recording_save")["absolute_path"] == str(replays / "recording.json")
    assert wire.ok("recording_save", path="ep")["absolute_path"] == str(replays / "ep.json")
    assert wire.ok("recording_save", path="day/ep.json")["absolute_path"] == str(replays / "day" / "ep.json")
    assert len(frames_of(replays / "day" / "ep.json")) == 10


def test_an_absolute_path_is_used_as_it_is(wire: Any, tmp_path: Path) -> None:
    record(wire)
    path = tmp_path / "deep" / "ep.json"
    assert wire.ok("recording_save", path=str(path))["absolute_path"] == str(path)
    assert path.is_file()


def test_an_empty_recording_is_not_written(wire: Any, replays: Path) -> None:
    wire.ok("recording_start")
    assert wire.refused("recording_save", path="empty.json") == "path_not_writable"
    assert not (replays / "empty.json").exists()


@pytest.fixture
def jailed(make_server: Any, connect: Any, tmp_path: Path) -> Any:
    """A client of a server that may write to its project and to one folder."""
    wire = connect(make_server("solo", write_roots=(tmp_path / "open",), model_roots=(tmp_path / "open",)))
    wire.hello()
    wire.ok("set_mode", mode="direct")
    record(wire)
    return wire


def test_saving_outside_the_write_roots_is_refused(jailed: Any, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "closed").mkdir()
    (tmp_path / "open" / "door").symlink_to(tmp_path / "closed")
    jailed.ok("recording_save", path=str(tmp_path / "open" / "a.json"))
    for path in ("closed/a.json", "open/../closed/a.json", "open/door/a.json"):
        reply = jailed.ask("recording_save", path=os.path.join(tmp_path, path))  # noqa: PTH118 - keeps the ".."
        assert reply["code"] == "path_not_writable"
        assert "--write-root" in reply["message"] or "link" in reply["message"]
        assert reply["absolute_path"] == os.path.normpath(tmp_path / path)
    assert list((tmp_path / "closed").iterdir()) == []


@pytest.mark.parametrize("path", ["../a.json", "a/../../a.json", "..", "/", ".", "a\0b"])
def test_bare_names_do_not_leave_the_replay_folder(jailed: Any, path: str) -> None:
    assert jailed.refused("recording_save", path=path) in ("path_not_writable", "bad_value")


def test_loading_outside_the_roots_is_refused(jailed: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    reply = jailed.ask("replay_load", path=str(tmp_path / "a.json"))
    assert reply["code"] == "path_not_readable"
    assert "--model-root" in reply["message"]


def autosaved(folder: Path) -> set[Path]:
    return set(folder.glob("autosave-*.json"))


def test_an_unsaved_recording_is_kept_when_the_play_ends(wire: Any, replays: Path) -> None:
    before = autosaved(replays)
    wire.ok("recording_start")
    wire.ok("step", n_steps=7)
    wire.ok("stop_pie")
    (path,) = autosaved(replays) - before
    assert len(frames_of(path)) == 7


def test_a_saved_recording_is_not_kept_twice(wire: Any, replays: Path) -> None:
    before = autosaved(replays)
    record(wire)
    wire.ok("recording_save")
    wire.ok("stop_pie")
    assert autosaved(replays) == before


def test_frames_after_the_last_save_are_kept_when_the_play_ends(wire: Any, replays: Path) -> None:
    before = autosaved(replays)
    wire.ok("recording_start")
    wire.ok("step", n_steps=3)
    wire.ok("recording_save")
    wire.ok("step", n_steps=4)
    wire.ok("stop_pie")
    (path,) = autosaved(replays) - before
    assert len(frames_of(path)) == 7


# -- straight to a file -------------------------------------------------------------------------------------------


def test_a_recording_goes_to_a_file_as_it_comes_and_is_whole_when_it_stops(wire: Any, replays: Path) -> None:
    reply = wire.ok("recording_start", name="ep", path="streamed")
    assert reply["absolute_path"] == str(replays / "streamed.mcap")
    wire.ok("step", n_steps=30)
    assert wire.ok("recording_status")["frame_count"] == 30
    wire.ok("recording_stop")
    with (replays / "streamed.mcap").open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    topics = {summary.channels[one].topic: n for one, n in summary.statistics.channel_message_counts.items()}
    assert topics["/clock"] == topics["/joint_states"] == 30
    (listed,) = (one for one in wire.ok("list_recordings")["recordings"] if one["name"] == "streamed.mcap")
    assert (listed["format"], "problem" in listed) == ("mcap", False)
    assert wire.ok("replay_load", path="streamed.mcap")["total_frames"] == 30


def test_a_file_of_another_writer_stays_and_no_recording_begins(wire: Any, replays: Path) -> None:
    replays.mkdir(parents=True, exist_ok=True)
    (replays / "foreign.mcap").write_bytes(b"precious")
    reply = wire.ask("recording_start", path="foreign")
    assert (reply["op"], reply["code"]) == ("error", "path_not_writable")
    assert (replays / "foreign.mcap").read_bytes() == b"precious"
    assert wire.ok("recording_status")["active"] is False
    reply = wire.ask("recording_start", path="new", max_duration_s=1.0)
    assert "keeps everything" in reply["message"]
    assert not (replays / "new.mcap").exists()


def test_a_recording_to_a_file_is_not_cleared_while_it_runs(wire: Any) -> None:
    wire.ok("recording_start", path="running")
    assert "stop it first" in wire.ask("recording_clear")["message"]
    wire.ok("recording_stop")
    wire.ok("recording_clear")
