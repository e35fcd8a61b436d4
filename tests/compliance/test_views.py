"""Debug drawings and the viewport over the wire. What the pictures show is tested with the viewport itself."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

RED = [1.0, 0.0, 0.0]


def picture(builder: Any, **fields: Any) -> Any:
    reply = builder.wire.ok("viewport_screenshot", **{"width": 320, "height": 240, **fields})
    return np.asarray(Image.open(io.BytesIO(reply["png"])).convert("RGB")).astype(int)


def red(builder: Any) -> int:
    pixels = picture(builder)
    return int(((pixels[..., 0] > 150) & (pixels[..., 1] < 80) & (pixels[..., 2] < 80)).sum())


@pytest.fixture
def facing(builder: Any) -> Any:
    """The camera looks along +x at the origin."""
    builder.wire.ok("set_camera", location=[-2, 0, 0], rotation_quat=[0, 0, 0, 1], fov=60)
    return builder


@pytest.mark.parametrize(
    ("op", "fields"),
    [
        ("draw_marker", {"location": [0, 0, 0], "color": RED, "label": "here"}),
        ("draw_line", {"from": [0, -1, 0], "to": [0, 1, 0], "color": RED, "thickness": 4}),
        (
            "draw_box",
            {"center": [0, 0, 0], "half_extents": [0.3, 0.3, 0.3], "color": RED, "rotation_euler": [0, 0, 20]},
        ),
        ("draw_arrow", {"from": [0, -0.5, 0], "to": [0, 0.5, 0], "color": RED, "thickness": 5}),
        ("draw_axes", {"location": [0, 0, 0], "scale": 1.0, "rotation_euler": [0, 0, 90]}),
    ],
)
def test_every_drawing_is_seen_until_it_is_cleared(facing: Any, op: str, fields: dict[str, Any]) -> None:
    assert red(facing) == 0
    assert facing.wire.ok(op, ttl=-1, tag="mine", **fields) == {"op": f"{op}_ok"}
    assert red(facing) > 10
    facing.wire.ok("clear_markers", tag="other")
    assert red(facing) > 10
    assert facing.wire.ok("clear_markers", tag="mine") == {"op": "clear_markers_ok"}
    assert red(facing) == 0


def test_a_drawing_without_a_ttl_is_for_one_picture(facing: Any) -> None:
    facing.wire.ok("draw_marker", location=[0, 0, 0], color=RED)
    assert red(facing) > 10
    assert red(facing) == 0


def test_a_drawing_lasts_its_ttl(facing: Any) -> None:
    facing.wire.ok("draw_marker", location=[0, 0, 0], color=RED, ttl=600.0)
    alone, ttl_s = red(facing), 0.05
    both = alone
    while both == alone:  # a picture may take longer than that, on a busy machine
        ttl_s *= 2
        facing.wire.ok("draw_marker", location=[0, 0.5, 0], color=RED, ttl=ttl_s)
        both = red(facing)
    while (left := red(facing)) == both:
        pass
    assert 0 < left == alone < both


@pytest.mark.parametrize(
    ("op", "fields", "code"),
    [
        ("draw_marker", {"location": [0, 0], "color": RED}, "dim_mismatch"),
        ("draw_marker", {"location": [0, 0, 0], "color": [2, 0, 0]}, "bad_value"),
        ("draw_marker", {"location": [0, 0, 0]}, "missing_field"),
        ("draw_line", {"from": [0, 0, 0], "color": RED}, "missing_field"),
        ("draw_line", {"from": [0, 0, 0], "to": [0, 0, float("nan")], "color": RED}, "bad_value"),
        ("draw_box", {"center": [0, 0, 0], "half_extents": [1, 1], "color": RED}, "dim_mismatch"),
        ("draw_arrow", {"from": [0, 0, 0], "to": [0, 0, 1], "color": RED, "ttl": float("inf")}, "bad_value"),
        ("draw_axes", {"location": [0, 0, 0], "rotation_quat": [0, 0, 0, 0]}, "bad_value"),
        ("set_overlay_text", {"text": "x", "anchor": "attic"}, "bad_value"),
        ("set_overlay_text", {}, "missing_field"),
        ("set_overlay_choice", {"name": "robot"}, "missing_field"),
        ("set_overlay_choice", {"name": "robot", "chosen": "left"}, "bad_value"),
        ("set_overlay_choice", {"name": "robot", "options": ["left"], "chosen": "right"}, "bad_value"),
        ("set_overlay_choice", {"name": "robot", "options": [], "chosen": "left"}, "bad_value"),
        ("set_viewport_mode", {"mode": "sepia"}, "invalid_mode"),
        ("set_camera", {"location": [0, 0]}, "dim_mismatch"),
        ("set_camera", {}, "missing_field"),
        ("look_through", {"camera": "nose"}, "bad_value"),
        ("look_through", {}, "missing_field"),
        ("set_viewport_overlays", {"frames": "wheel"}, "bad_value"),
        ("set_viewport_overlays", {"contacts": 3}, "bad_value"),
        ("set_camera", {"location": [0, 0, 0], "fov": 180.0}, "bad_value"),
        ("frame_actor", {"target": "gone"}, "unknown_actor"),
        ("track_actor", {"target": "gone"}, "unknown_actor"),
        ("viewport_screenshot", {"width": 0}, "bad_value"),
        ("viewport_screenshot", {"width": 100_000}, "bad_value"),
    ],
)
def test_what_cannot_be_drawn_or_shown_has_its_code(builder: Any, op: str, fields: dict[str, Any], code: str) -> None:
    assert builder.wire.refused(op, **fields) == code


def test_text_is_shown_in_its_corner_and_cleared(builder: Any) -> None:
    empty = picture(builder)
    builder.wire.ok("set_overlay_text", text="HELLO", anchor="bottom_right")
    shown = picture(builder)
    changed = np.argwhere(np.abs(shown - empty).sum(axis=2) > 30)
    assert len(changed) > 20
    assert changed[:, 0].min() > 120
    assert changed[:, 1].min() > 160
    builder.wire.ok("set_overlay_text", text="", anchor="bottom_right")
    assert np.array_equal(picture(builder), empty)


def test_the_camera_is_where_it_was_put(builder: Any) -> None:
    put = builder.wire.ok("set_camera", location=[1, 2, 3], rotation_euler=[0, 30, 60], fov=75.0)
    assert put["location"] == [1, 2, 3]
    assert put["rotation_euler"] == pytest.approx([0, 30, 60])
    assert put["fov"] == 75
    got = builder.wire.ok("get_camera")
    assert {key: got[key] for key in got if key != "op"} == {key: put[key] for key in put if key != "op"}


def test_modes_answer_as_the_original_does(builder: Any) -> None:
    for mode in ("lit", "unlit", "wireframe", "collision", "reflections"):
        assert builder.wire.ask("set_viewport_mode", mode=mode) == {"op": "set_mode_ok", "mode": mode}


def test_an_actor_is_framed_and_followed(builder: Any) -> None:
    builder.spawn("box", builder.box_file, location=[0, 0, 50])
    framed = builder.wire.ok("frame_actor", target="box")
    assert np.linalg.norm(np.subtract(framed["location"], [0, 0, 50.1])) < 2
    builder.wire.ok("spawn_light", actor_id="lamp")
    assert builder.wire.refused("frame_actor", target="lamp") == "no_bounds"
    builder.play()
    tracked = builder.wire.ok("track_actor", target="box", offset=[-3, 0, 0])
    assert tracked["tracked_actor_path"] == "/Game/Levels/lab.lab:PersistentLevel.crate"
    assert builder.wire.ok("get_camera")["location"] == pytest.approx([-3, 0, 50], abs=0.2)
    fallen = builder.wire.ok("step", n_steps=500)["entities"]["crate"]["xpos"]
    assert fallen[2] < 49
    assert builder.wire.ok("get_camera")["location"] == pytest.approx(np.add(fallen, [-3, 0, -0.1]), abs=0.05)
    assert builder.wire.refused("track_actor", target="box", smoothing=1.0) == "bad_value"
    assert builder.wire.ok("untrack")["was_tracking"] is True
    assert builder.wire.ok("untrack")["was_tracking"] is False


def test_a_picture_shows_the_edited_level_and_then_the_running_one(facing: Any) -> None:
    nothing = picture(facing)
    facing.spawn("box", facing.box_file, location=[0, 0, -0.1])
    standing = picture(facing)
    assert (np.abs(standing - nothing).sum(axis=2) > 30).sum() > 100
    facing.play()
    facing.wire.ok("step", n_steps=1)
    reply = facing.wire.ok("viewport_screenshot", width=320, height=240)
    assert (reply["width"], reply["height"], reply["mode"]) == (320, 240, "lit")
    assert reply["sim_time"] == pytest.approx(0.002)
    facing.wire.ok("step", n_steps=2000)
    fallen = picture(facing)
    assert (np.abs(fallen - nothing).sum(axis=2) > 30).sum() < 20, "it has fallen out of sight"


def test_overlays_are_switched_and_told(facing: Any) -> None:
    facing.spawn("box", facing.box_file, location=[0, 0, -0.1])
    before = facing.wire.ok("set_viewport_overlays")["overlays"]
    assert (before["contacts"], before["frames"], before["tendons"]) == (False, False, True)
    plain = picture(facing)
    after = facing.wire.ok("set_viewport_overlays", frames="geom", inertia=True, names=True)["overlays"]
    assert {word: value for word, value in after.items() if before[word] != value} == {
        "frames": "geom",
        "inertia": True,
        "names": "body",
    }
    assert (np.abs(picture(facing) - plain).sum(axis=2) > 30).sum() > 50
    assert facing.wire.ok("set_viewport_overlays", frames=False, inertia=False, names=False)["overlays"] == before
    assert np.array_equal(picture(facing), plain)


def test_contacts_of_the_running_scene_are_drawn_and_its_steps_are_not_disturbed(facing: Any) -> None:
    floor = "<mujoco model='ground'><worldbody><geom type='plane' size='5 5 .1'/></worldbody></mujoco>"

    def run(overlays: bool) -> tuple[Any, Any]:
        facing.wire.ok("set_viewport_overlays", contacts=overlays, contact_forces=overlays)
        facing.wire.ok("reset")
        states, pictures = [], []
        for _ in range(4):
            states.append(facing.wire.ok("step", n_steps=50)["entities"]["crate"]["qpos"])
            pictures.append(picture(facing))
        return states, pictures

    facing.spawn("ground", facing.write("ground.xml", floor))
    facing.spawn("box", facing.box_file, location=[0, 0, 0])
    facing.play()
    facing.wire.ok("set_camera", location=[-1, 0, 0.4], rotation_euler=[0, 20, 0], fov=60)
    (plain_states, plain), (states, drawn) = run(False), run(True)
    assert states == plain_states
    assert (np.abs(drawn[-1] - plain[-1]).sum(axis=2) > 30).sum() > 20


def test_the_selected_actor_is_outlined_in_pictures(facing: Any) -> None:
    def orange() -> int:
        return int((np.abs(picture(facing) - [255, 150, 20]).sum(axis=2) < 12).sum())

    facing.spawn("box", facing.box_file, location=[0, 0, -0.1])
    assert orange() == 0
    facing.wire.ok("select_actor", target="box")
    assert orange() > 30
    facing.play()
    facing.wire.ok("step", n_steps=1)
    assert orange() > 30, "in the running level too"


def test_a_view_through_a_camera_of_a_robot(builder: Any) -> None:
    builder.spawn("seer", builder.seer_file)
    builder.spawn("brick", builder.wall_file, location=[2.05, 0, 1])
    own = builder.wire.ok("set_camera", location=[5, 5, 5])
    for playing in (False, True):
        if playing:
            builder.play()
        seen = builder.wire.ok("look_through", camera="eye")
        assert (seen["camera"], seen["location"]) == ("eye", pytest.approx([0, 0, 1], abs=1e-3))
        assert builder.wire.ok("get_camera")["camera"] == "eye"
        pixels = picture(builder)
        assert pixels[120, 160, 0] > pixels[120, 160, 1] + 60, "the red brick is ahead"
        assert builder.wire.ok("untrack")["was_tracking"] is True
        assert builder.wire.ok("get_camera")["location"] == own["location"]


def test_an_actor_is_framed_as_it_stands_now_and_an_arena_is_framed_too(builder: Any) -> None:
    arena = "<mujoco model='hall'><worldbody><geom type='plane' size='0 0 1'/></worldbody></mujoco>"
    crane = """<mujoco model="crane"><worldbody><body name="base"><geom size=".05"/><body name="hook">
      <joint name="lift" type="slide" axis="0 0 1"/><geom size=".1"/></body></body></worldbody>
      <actuator><motor joint="lift"/></actuator></mujoco>"""
    builder.spawn("hall", builder.write("hall.xml", arena))
    builder.spawn("crane", builder.write("crane.xml", crane))
    builder.play()
    low = builder.wire.ok("frame_actor", target="crane")["location"]
    builder.wire.ok("set_qpos", target="crane", qpos=[30.0])
    high = builder.wire.ok("frame_actor", target="crane")["location"]
    assert (low[2] < 1, high[2] > 20) == (True, True)
    whole = builder.wire.ok("frame_actor", target="hall")["location"]
    assert 1 < np.linalg.norm(whole) < 10


def test_a_tracked_actor_is_in_the_first_picture_and_smoothing_is_of_simulated_time(builder: Any) -> None:
    builder.spawn("box", builder.box_file, location=[30, 0, 50])
    builder.play()
    builder.wire.ok("track_actor", target="box", offset=[-3, 0, 0], smoothing=0.9)
    first = builder.wire.ok("get_camera")["location"]
    assert first == pytest.approx([27, 0, 50], abs=0.2)
    assert builder.wire.ok("get_camera")["location"] == first
    fallen = builder.wire.ok("step", n_steps=50)["entities"]["crate"]["xpos"]
    now = builder.wire.ok("get_camera")["location"]
    left = 0.9 ** (50 * 0.002 * 60)
    assert now[2] == pytest.approx(left * first[2] + (1 - left) * (fallen[2] - 0.1), abs=1e-3)
    assert builder.wire.ok("get_camera")["location"] == now


def test_a_fresh_view_frames_the_scene(builder: Any) -> None:
    builder.spawn("box", builder.box_file, location=[40, 0, 50])
    location = builder.wire.ok("get_camera")["location"]
    assert np.linalg.norm(np.subtract(location, [40, 0, 50.1])) < 2


def test_a_picture_says_how_it_was_drawn(builder: Any) -> None:
    told = builder.wire.ok("viewport_screenshot", width=32, height=32)["rendering"]
    assert told["profile"] in ("fast", "quality")
    assert told["renderer"]


# -- pictures of blueprints ---------------------------------------------------------------------------------------


def test_a_blueprint_is_shown_by_itself(builder: Any) -> None:
    path = builder.import_file(builder.box_file)
    reply = builder.wire.ok("blueprint_picture", blueprint_path=path)
    assert (reply["width"], reply["height"]) == (256, 192)
    pixels = np.asarray(Image.open(io.BytesIO(reply["png"])).convert("RGB")).astype(int)
    assert pixels.shape == (192, 256, 3)
    covered = np.argwhere(np.abs(pixels - pixels[0, 0]).sum(axis=2) > 30)
    assert covered[:, 0].max() - covered[:, 0].min() == pytest.approx(0.9 * 192, abs=4), "it fills the picture"
    for name in ("crate", "Imports/crate", "/Game/MuJoCoImports/crate"):
        assert builder.wire.ok("blueprint_picture", blueprint_path=name) == reply


def test_a_picture_of_a_blueprint_leaves_the_level_and_the_viewport_alone(facing: Any) -> None:
    facing.spawn("box", facing.box_file)
    facing.wire.ok("select_actor", target="box")
    facing.wire.ask("set_viewport_mode", mode="unlit")
    facing.wire.ok("draw_marker", location=[0, 0, 0], color=RED, ttl=-1)
    before, camera, level = picture(facing), facing.wire.ok("get_camera"), facing.wire.ok("current_level")
    facing.wire.ok("blueprint_picture", blueprint_path="panda", width=100, height=80)
    assert np.array_equal(picture(facing), before)
    assert facing.wire.ok("get_camera") == camera
    assert facing.wire.ok("current_level") == level


def test_a_file_is_no_blueprint_to_be_shown(builder: Any) -> None:
    reply = builder.wire.ask("blueprint_picture", blueprint_path=builder.box_file)
    assert reply["code"] == "blueprint_picture_failed"
    assert "no model" in reply["message"] or "does not exist" in reply["message"]


def test_an_observer_may_see_a_blueprint(builder: Any, connect: Any) -> None:
    observer = connect(builder.server)
    observer.hello(observer=True)
    assert observer.ok("blueprint_picture", blueprint_path="box", width=32, height=32)["png"].startswith(b"\x89PNG")
