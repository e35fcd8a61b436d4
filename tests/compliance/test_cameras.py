"""Camera frames in the step reply, and the switches of cameras."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.every_transport

DISTANCE = 2.0


@pytest.fixture
def seeing(builder: Any) -> Any:
    """A robot looks along +x at a red brick two metres away, in direct mode."""
    builder.spawn("seer", builder.seer_file)
    builder.spawn("brick", builder.wall_file, location=[DISTANCE + 0.05, 0, 1])
    builder.handshake = builder.play()
    return builder


def frame(reply: Any, name: str) -> Any:
    block = reply["cameras"][name]
    kind = np.float32 if block["dtype"] == "float32" else np.uint8
    pixels = np.frombuffer(block["data"], kind)
    return pixels.reshape(
        (block["height"], block["width"]) if kind is np.float32 else (block["height"], block["width"], 4)
    )


def test_the_handshake_tells_what_draws_and_what_colours_mean(seeing: Any) -> None:
    hello = seeing.handshake
    assert hello["rendering"]["profile"] in ("fast", "quality")
    assert hello["rendering"]["renderer"]
    names = {one["name"] for one in hello["segmentation"]["semantic"]}
    assert {"seer", "wall"} <= names
    topics = hello["articulations"][0]["camera_topics"]
    assert topics["eye"]["resolution"] == [80, 60]
    assert topics["eye"]["zmq_topic"] == "seer/camera/eye"


def test_a_sync_frame_is_of_this_very_step(seeing: Any) -> None:
    reply = seeing.wire.ok("step", n_steps=5, include_cameras={"eye": "sync", "seer/far": "sync"})
    assert set(reply["cameras"]) == {"eye", "seer/far"}
    block = reply["cameras"]["eye"]
    assert (block["width"], block["height"], block["dtype"], block["mode"]) == (80, 60, "bgra8", "real")
    assert block["sim_time"] == reply["time"]
    assert block["pos"] == pytest.approx([0, 0, 1], abs=1e-3)
    pixels = frame(reply, "eye").astype(int)
    red = pixels[..., 2] > pixels[..., 1] + 60
    focal = 30 / np.tan(np.radians(30))
    assert block["K"][0] == pytest.approx(focal, rel=1e-6)
    width, height = red.any(axis=0).sum(), red.any(axis=1).sum()
    assert width == pytest.approx(0.4 * focal / DISTANCE, abs=1.5)
    assert height == pytest.approx(0.2 * focal / DISTANCE, abs=1.5)


def test_depth_is_in_metres_along_the_optical_axis(seeing: Any) -> None:
    assert seeing.wire.ok("set_camera_mode", camera="eye", mode="depth")["mode"] == "depth"
    depth = frame(seeing.wire.ok("step", include_cameras={"eye": "sync"}), "eye")
    assert depth[30, 40] == pytest.approx(DISTANCE, abs=1e-3)
    assert depth[30, 42] == pytest.approx(DISTANCE, abs=1e-3), "not along the ray"


def test_segmentation_has_the_colours_of_the_table(seeing: Any) -> None:
    table = {tuple(one["color"]): one["name"] for one in seeing.handshake["segmentation"]["semantic"]}
    seeing.wire.ok("set_camera_mode", camera="eye", mode="semantic")
    pixels = frame(seeing.wire.ok("step", include_cameras={"eye": "sync"}), "eye")
    colours = {tuple(int(part) for part in colour[2::-1]) for colour in pixels.reshape(-1, 4)}
    assert {table[colour] for colour in colours if colour != (0, 0, 0)} == {"wall"}
    assert (0, 0, 0) in colours


def test_the_same_trajectory_gives_the_same_pixels(seeing: Any) -> None:
    taken = []
    for _ in range(2):
        seeing.wire.ok("reset")
        command = {"seer": {"ctrl": [0.2], "control_mode": "raw"}}
        for _ in range(3):
            reply = seeing.wire.ok("step", n_steps=20, per_articulation=command, include_cameras={"eye": "sync"})
        taken.append(reply["cameras"]["eye"]["data"])
    assert taken[0] == taken[1]


def test_true_is_the_newest_frame_of_every_camera_and_it_does_not_disappear(seeing: Any) -> None:
    first = seeing.wire.ok("step", include_cameras=True)
    assert set(first["cameras"]) == {"eye", "far"}
    again = seeing.wire.ok("step", include_cameras={"eye": "latest"})
    assert again["cameras"]["eye"]["sim_time"] >= first["cameras"]["eye"]["sim_time"]


def test_cameras_with_one_name_are_told_apart(builder: Any) -> None:
    builder.spawn("one", builder.seer_file)
    builder.spawn("two", builder.seer_file, location=[0, 5, 0])
    builder.play()
    reply = builder.wire.ok("step", include_cameras=True)
    assert set(reply["cameras"]) == {"seer/eye", "seer/far", "seer-2/eye", "seer-2/far"}
    assert builder.wire.refused("step", include_cameras={"eye": "sync"}) == "bad_value"


@pytest.mark.parametrize("asked", [{"ear": "sync"}, {"eye": "soon"}, {"nobody/eye": "sync"}])
def test_what_does_not_exist_is_refused_and_nothing_moves(seeing: Any, asked: dict[str, str]) -> None:
    before = seeing.wire.ok("forward")["time"]
    assert seeing.wire.refused("step", include_cameras=asked) == "bad_value"
    assert seeing.wire.ok("forward")["time"] == before


def test_frames_travel_in_json_too(seeing: Any) -> None:
    seeing.wire.json = True
    seeing.wire.hello(encoding="json")
    reply = seeing.wire.ok("step", include_cameras={"eye": "sync"})
    assert len(reply["cameras"]["eye"]["data_base64"]) > 4 * 80 * 60
    json.dumps(reply)


def test_cameras_are_switched_all_or_none(seeing: Any) -> None:
    reply = seeing.wire.ok("set_camera_streaming", cameras={"eye": True, "seer/far": {"zmq": True, "rate_hz": 5}})
    assert reply["cameras"]["eye"]["streaming"] is True
    assert reply["cameras"]["seer/far"]["rate_hz"] == 5
    for bad in ({"eye": False, "ear": True}, {"eye": {"zmq": False}, "far": {"rate_hz": 0}}, {"eye": {"rate_hz": 1e9}}):
        assert seeing.wire.refused("set_camera_streaming", cameras=bad) == "bad_value"
    kept = seeing.wire.ok("set_camera_streaming", cameras={"eye": {}})
    assert kept["cameras"]["eye"]["streaming"] is True
    assert seeing.wire.refused("set_camera_mode", camera="eye", mode="sepia") == "bad_value"
    assert seeing.wire.refused("set_camera_mode", camera="ear", mode="real") == "bad_value"


def test_all_cameras_are_switched_at_once_and_those_of_the_next_scene_follow(seeing: Any) -> None:
    named = seeing.wire.ok("set_camera_streaming", cameras={"eye": True})
    assert "all_cameras" not in named
    off = seeing.wire.ok("set_camera_streaming", cameras=False)
    assert off["all_cameras"] is False
    assert {name: (one["streaming"], one["zmq"], one["shm"]) for name, one in off["cameras"].items()} == {
        "seer/eye": (False, False, False),
        "seer/far": (False, False, False),
    }
    assert set(seeing.wire.ok("step", include_cameras=True)["cameras"]) == {"eye", "far"}, "replies have frames still"
    seeing.play()
    again = seeing.wire.ok("set_camera_streaming", cameras={"eye": {}})
    assert (again["all_cameras"], again["cameras"]["eye"]["streaming"]) == (False, False)
    on = seeing.wire.ok("set_camera_streaming", cameras=True)
    assert (on["all_cameras"], {one["streaming"] for one in on["cameras"].values()}) == (True, {True})
    seeing.play()
    assert seeing.wire.ok("set_camera_streaming", cameras={"far": {}})["cameras"]["far"]["streaming"] is True
    assert seeing.wire.refused("set_camera_streaming", cameras="off") == "bad_value"
    assert seeing.wire.refused("set_camera_streaming") == "missing_field"


def test_a_camera_that_no_robot_owns_goes_by_the_name_of_the_handshake(builder: Any) -> None:
    eye = '<mujoco model="post"><worldbody><camera name="eye" resolution="16 12"/></worldbody></mujoco>'
    builder.spawn("post", builder.write("post.xml", eye))
    builder.spawn("seer", builder.seer_file)
    ((name, topic),) = builder.play()["global_cameras"].items()
    assert (name, topic["short_name"]) == ("post_eye", "eye")
    assert set(builder.wire.ok("step", include_cameras=True)["cameras"]) == {name, "seer/eye", "far"}
    assert set(builder.wire.ok("step", include_cameras={name: "sync"})["cameras"]) == {name}
    taken = builder.wire.ok("step", include_cameras={"eye": "sync"})["cameras"]["eye"]
    assert (taken["width"], taken["height"]) == (80, 60), "that of the robot goes first"


def test_a_camera_that_no_robot_owns_goes_by_its_bare_name_where_it_is_the_only_one(builder: Any) -> None:
    side = '<mujoco model="post"><worldbody><camera name="side" resolution="16 12"/></worldbody></mujoco>'
    builder.spawn("post", builder.write("post.xml", side))
    builder.spawn("seer", builder.seer_file)
    builder.play()
    assert set(builder.wire.ok("step", include_cameras=True)["cameras"]) == {"side", "eye", "far"}
    for name in ("side", "post_side"):
        assert set(builder.wire.ok("step", include_cameras={name: "latest"})["cameras"]) == {name}


def test_a_recording_keeps_how_cameras_were_drawn(seeing: Any) -> None:
    seeing.wire.ok("recording_start")
    seeing.wire.ok("step", n_steps=3)
    seeing.wire.ok("recording_stop")
    saved = json.loads(Path(seeing.wire.ok("recording_save")["absolute_path"]).read_text())
    assert saved["urlab"]["rendering"] == seeing.handshake["rendering"]
