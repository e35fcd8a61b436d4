"""How old a camera frame in a reply may be: never from before a jump, and in stepped modes no older than the request
before."""

from typing import Any

import pytest

EYES = ({"eye": "latest", "seer/far": "latest"}, True)


@pytest.fixture
def seeing(builder: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A robot with two cameras, in direct mode. On a busy machine the first frame takes long."""
    monkeypatch.setattr("urlab.cameras.capture._FRAME_WAIT_S", 60.0)
    builder.spawn("seer", builder.seer_file)
    builder.play()
    return builder


def times(reply: Any) -> set[float]:
    """The simulated times that the frames of a reply show."""
    return {round(block["sim_time"], 9) for block in reply["cameras"].values()}


@pytest.mark.parametrize("asked", EYES)
def test_in_direct_mode_a_frame_shows_the_request_before_or_this_one(seeing: Any, asked: Any) -> None:
    before = seeing.wire.ok("step")["time"]
    for n_steps in (10, 10, 10, 3, 40, 1):
        reply = seeing.wire.ok("step", n_steps=n_steps, include_cameras=asked)
        assert len(reply["cameras"]) == 2
        assert min(times(reply)) >= round(before, 9), f"after {n_steps} steps"
        before = reply["time"]


@pytest.mark.parametrize("asked", EYES)
def test_in_direct_mode_requests_without_cameras_count_as_well(seeing: Any, asked: Any) -> None:
    for _ in range(3):
        seeing.wire.ok("step", n_steps=5, include_cameras=asked)
        before = seeing.wire.ok("step", n_steps=200)["time"]
        reply = seeing.wire.ok("step", n_steps=5, include_cameras=asked)
        assert min(times(reply)) >= round(before, 9)


@pytest.mark.parametrize("asked", EYES)
def test_in_puppet_mode_a_frame_shows_the_push_before_or_this_one(seeing: Any, asked: Any) -> None:
    seeing.wire.ok("set_mode", mode="puppet")
    before = 0.0
    for push in range(1, 8):
        reply = seeing.wire.ok("step", time=float(push), include_cameras=asked)
        assert min(times(reply)) >= before
        before = float(push)


@pytest.mark.parametrize("fields", [{}, {"scope": "state"}])
def test_no_frame_crosses_a_reset(seeing: Any, fields: dict[str, str]) -> None:
    for _ in range(3):
        for _ in range(3):
            seeing.wire.ok("step", n_steps=20, include_cameras=True)
        reset = seeing.wire.ok("reset", **fields)["time"]
        reply = seeing.wire.ok("step", n_steps=1, include_cameras=True)
        assert times(reply) <= {round(reset, 9), round(reply["time"], 9)}


def test_no_frame_crosses_a_jump_of_a_replay(seeing: Any) -> None:
    seeing.wire.ok("recording_start")
    seeing.wire.ok("step", n_steps=6)
    seeing.wire.ok("recording_stop")
    seeing.wire.ok("step", n_steps=500, include_cameras=True)
    seeing.wire.ok("replay_start", loop=True)
    assert times(seeing.wire.ok("step", n_steps=1, include_cameras=True)) <= {0.002, 0.004}
    seeing.wire.ok("step", n_steps=4, include_cameras=True)
    wrapped = seeing.wire.ok("step", n_steps=1, include_cameras=True)
    assert (wrapped["replay"]["frame"], times(wrapped)) == (0, {0.002})


@pytest.mark.parametrize("mode", ["direct", "puppet", "live"])
def test_no_frame_crosses_a_seek(seeing: Any, mode: str) -> None:
    wire = seeing.wire
    wire.ok("set_camera_streaming", cameras={"eye": {"rate_hz": 0.01}, "far": {"rate_hz": 0.01}})
    wire.ok("recording_start")
    wire.ok("step", n_steps=600)
    wire.ok("recording_stop")
    wire.ok("set_mode", mode=mode)
    wire.ok("replay_start", paused=True)
    for frame in (500, 20, 300, 299, 301):
        shown = wire.ok("replay_seek", frame=frame)["time"]
        assert times(wire.ok("step", n_steps=0, include_cameras=True)) == {round(shown, 9)}


def test_no_frame_crosses_a_restart_of_play(seeing: Any) -> None:
    seeing.wire.ok("step", n_steps=500, include_cameras=True)
    seeing.play()
    assert times(seeing.wire.ok("step", n_steps=1, include_cameras=True)) == {0.002}


def test_in_live_mode_no_frame_crosses_a_reset(seeing: Any) -> None:
    seeing.wire.ok("set_camera_streaming", cameras={"eye": {"rate_hz": 0.01}, "far": {"rate_hz": 0.01}})
    seeing.wire.ok("step", n_steps=5000)
    seeing.wire.ok("set_mode", mode="live")
    assert min(times(seeing.wire.ok("step", include_cameras=True))) >= 10.0
    seeing.wire.ok("reset")
    reply = seeing.wire.ok("step", include_cameras=True)
    assert max(times(reply)) < 10.0


def test_in_live_mode_a_frame_of_a_scene_that_was_paused_shows_its_state(seeing: Any) -> None:
    seeing.wire.ok("set_mode", mode="live")
    seeing.wire.ok("step", include_cameras=True)
    seeing.wire.ok("set_paused", paused=True)
    seeing.wire.ok("set_qpos", target="seer", qpos=[0.3], qvel=[0.0])
    reply = seeing.wire.ok("step", include_cameras={"eye": "latest"})
    exact = seeing.wire.ok("step", include_cameras={"eye": "sync"})
    assert reply["cameras"]["eye"]["quat"] == exact["cameras"]["eye"]["quat"]


@pytest.mark.parametrize("mode", ["live", "direct", "puppet"])
def test_a_name_that_was_asked_for_is_a_key_of_the_reply(seeing: Any, mode: str) -> None:
    seeing.wire.ok("set_mode", mode=mode)
    for asked in ({"eye": "latest"}, {"seer/eye": "sync", "far": "latest"}):
        assert set(seeing.wire.ok("step", include_cameras=asked)["cameras"]) == set(asked)
