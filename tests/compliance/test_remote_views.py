"""What viewers get that draw the world by themselves: `read_view`, the server's own world number by number."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

PARTS = ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat", "sensordata")


def loaded(reply: dict[str, Any]) -> tuple[Any, Any]:
    """The model and the state of a reply, read without any of our client's code."""
    model = mujoco.MjModel.from_binary_path("view.mjb", {"view.mjb": reply["mjb"]})
    data = mujoco.MjData(model)
    numbers = np.frombuffer(reply["state"], "<f8")
    assert len(numbers) == sum(getattr(data, name).size for name in PARTS)
    for name in PARTS:
        array = getattr(data, name).reshape(-1)
        array[:], numbers = numbers[: array.size], numbers[array.size :]
    return model, data


def test_a_viewer_has_the_state_of_the_last_step(wire: Any):
    reply = wire.ok("step", n_steps=7, observations="full")
    view = wire.ok("read_view")
    model, data = loaded(view)
    assert view["playing"] is True
    assert view["sim_time"] == reply["time"]
    told = [number for block in reply["per_articulation"].values() for number in block["qpos"]]
    assert set(told) <= set(data.qpos.tolist())
    assert model.nq == len(data.qpos)


def test_the_model_comes_once_and_then_only_states(wire: Any):
    first = wire.ok("read_view")
    wire.ok("step", n_steps=3)
    second = wire.ok("read_view", known_model=first["model"])
    assert second["model"] == first["model"]
    assert "mjb" not in second
    assert "actors" not in second
    assert second["state"] != first["state"]
    wire.play("arena")
    assert "mjb" in wire.ok("read_view", known_model=first["model"])


def test_a_viewer_on_this_machine_is_told_a_file_that_has_the_very_bytes(wire: Any):
    sent = wire.ok("read_view")
    named = wire.ok("read_view", as_file=True)
    assert "mjb" not in named
    assert named["actors"] == sent["actors"]
    assert Path(named["mjb_file"]).read_bytes() == sent["mjb"]
    assert wire.ok("read_view", as_file=True)["mjb_file"] == named["mjb_file"]  # once for all viewers
    with pytest.raises(OSError, match="not permitted"):
        os.truncate(named["mjb_file"], 0)
    assert "mjb_file" not in wire.ok("read_view", as_file=True, known_model=named["model"])


def test_a_file_with_a_model_is_gone_when_the_server_has_another(wire: Any):
    first = wire.ok("read_view", as_file=True)
    held = Path(first["mjb_file"]).stat()
    wire.play("arena")
    second = wire.ok("read_view", as_file=True)
    assert second["model"] != first["model"]
    assert (held.st_dev, held.st_ino) not in set(open_files())


def open_files() -> Iterator[tuple[int, int]]:
    """Device and inode of all that this process has open."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - with a descriptor of its own, which is gone then
        with contextlib.suppress(OSError):
            found = os.fstat(int(name))
            yield found.st_dev, found.st_ino


def test_actors_are_told_with_the_bodies_that_they_have(wire: Any):
    view = wire.ok("read_view")
    model, _ = loaded(view)
    for actor, bodies in view["actors"].items():
        names = [model.body(body).name for body in bodies]
        assert all(name == actor or name.startswith(f"{actor}_") for name in names), (actor, names)


def test_while_nothing_plays_a_viewer_sees_the_level_as_it_would_start(builder: Any):
    before = builder.wire.ok("read_view")
    assert before["playing"] is False
    assert "sim_time" not in before
    builder.wire.ok("spawn_actor", blueprint="box", actor_id="b1", location=[1.0, 2.0, 3.0])
    after = builder.wire.ok("read_view", known_model=before["model"])
    model, data = loaded(after)
    mujoco.mj_kinematics(model, data)
    (bodies,) = after["actors"].values()
    assert data.xpos[bodies[0]].tolist() == pytest.approx([1.0, 2.0, 3.0])


def test_a_viewer_is_told_what_is_drawn_selected_held_and_where_the_camera_is(wire: Any):
    wire.ok("clear_markers")
    wire.ok("set_camera", location=[-2, 0, 1], rotation_quat=[0, 0, 0, 1], fov=60)
    wire.ask("set_viewport_mode", mode="wireframe")
    wire.ok("set_viewport_overlays", contacts=True)
    wire.ok("draw_arrow", **{"from": [0, 0, 0], "to": [1, 0, 0], "color": [1, 0, 0], "ttl": -1, "thickness": 3})
    wire.ok("set_overlay_text", text="hello", anchor="top")
    assert wire.ok("set_overlay_choice", name="robot", options=["left", "right"], chosen="right")["chosen"] == "right"
    view = wire.ok("read_view")
    try:
        assert (view["location"], view["rotation_quat"], view["fov"]) == ([-2, 0, 1], [0, 0, 0, 1], 60)
        assert (view["mode"], view["overlays"]["contacts"]) == ("wireframe", True)
        arrow = {"kind": "arrow", "from": [0, 0, 0], "to": [1, 0, 0], "color": [1, 0, 0], "thickness": 3}
        assert view["drawings"] == [arrow]
        assert view["texts"] == {"top": "hello"}
        assert view["choices"] == {"robot": {"options": ["left", "right"], "chosen": "right"}}
    finally:
        wire.ok("clear_markers")
        wire.ok("set_overlay_text", text="", anchor="top")
        assert "chosen" not in wire.ok("set_overlay_choice", name="robot", options=[])
        wire.ask("set_viewport_mode", mode="lit")
        wire.ok("set_viewport_overlays", contacts=False)
