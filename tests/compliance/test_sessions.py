"""Who may speak: hello, meta, and the one plain session at a time."""

import time
import uuid
from collections.abc import Callable
from typing import Any

import msgpack
import mujoco
import numpy as np
import pytest

from urlab.manager import StreamSource
from urlab_wire import CATALOGUE

pytestmark = pytest.mark.every_transport
STANDARD = {"qpos", "qvel", "ctrl", "act", "sensors"}


def until(condition: Callable[[], Any], limit_s: float = 60.0) -> None:
    """Live physics answers to the wall clock, so there is no event to wait for."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it never came true"


def test_hello_and_meta_need_no_session(stranger: Any) -> None:
    assert stranger.exchange({"op": "meta"})["op"] == "meta_ok"
    assert stranger.exchange({"op": "hello"})["op"] == "hello_ok"


def test_hello_ignores_the_session_that_it_is_sent_with(stranger: Any) -> None:
    assert stranger.exchange({"op": "hello", "session_id": "no such session"})["op"] == "hello_ok"


def test_hello_tells_the_versions_and_a_fresh_uuid(stranger: Any) -> None:
    first, second = stranger.hello(), stranger.hello()
    assert first["mujoco_version"] == mujoco.__version__
    assert first["mujoco_version_int"] == mujoco.mj_version()
    assert first["urlab_version"].startswith("urlab/")
    assert str(uuid.UUID(first["session_id"])) == first["session_id"] != second["session_id"]


def test_a_second_hello_expires_the_first_session(wire: Any, stranger: Any) -> None:
    assert wire.ok("pie_status")["state"] == "ready"
    stranger.hello()
    reply = wire.ask("pie_status")
    assert (reply["code"], wire.session_id in reply["message"]) == ("session_expired", True)
    assert stranger.ok("pie_status")["state"] == "ready"


@pytest.mark.parametrize("session_id", [None, "", 7, "x" * 1000, ["a"], str(uuid.UUID(int=0))])
def test_any_other_session_is_expired(wire: Any, session_id: Any) -> None:
    assert wire.refused("pie_status", session_id=session_id) == "session_expired"


def test_a_hello_that_is_refused_expires_nobody(wire: Any, stranger: Any) -> None:
    assert stranger.refused("hello", encoding="xml") == "bad_value"
    assert stranger.refused("hello", observations="everything") == "bad_value"
    assert stranger.refused("hello", include_assets="yes") == "bad_value"
    assert wire.ok("pie_status")["state"] == "ready"


def test_hello_leaves_mode_pause_and_state_alone(wire: Any, engine: Any, full_state: Any) -> None:
    wire.ok("step", n_steps=5)
    wire.ok("set_paused", paused=True)
    before = full_state(engine())
    wire.hello()
    assert np.array_equal(full_state(engine()), before)
    assert wire.ok("set_mode", mode="direct")["previous_mode"] == "direct"
    assert wire.ok("step", n_steps=2)["time"] == pytest.approx(7 * 0.002)
    wire.ok("set_mode", mode="live")
    assert wire.ok("step")["time"] == wire.ok("step")["time"], "it is still paused"


def test_hello_zeroes_its_own_step_counter_only(wire: Any, stranger: Any, server: Any, connect: Any) -> None:
    watcher = connect(server)
    watcher.hello(observer=True)
    wire.ok("step", n_steps=5)
    stranger.hello()
    assert stranger.ok("step", n_steps=2)["step"] == 2
    stranger.ok("set_paused", paused=True)
    stranger.ok("set_mode", mode="live")
    assert watcher.ok("step")["step"] == 7
    assert stranger.ok("step")["step"] == 2


def test_the_state_stream_counts_steps_as_the_replies_to_the_driver_do(wire: Any, stranger: Any, server: Any) -> None:
    def streamed() -> Any:
        manager = server.play.manager
        with manager.engine.locked():
            return msgpack.unpackb(StreamSource(manager).state())["step"]

    assert wire.ok("step", n_steps=4)["step"] == streamed() == 4
    stranger.hello(observer=True)
    assert streamed() == 4
    stranger.hello()
    assert streamed() == 0
    assert stranger.ok("step", n_steps=3)["step"] == streamed() == 3
    stranger.ok("reset")
    assert streamed() == 0


@pytest.mark.parametrize("level", ["minimal", "full"])
def test_hello_inherits_no_observation_level(wire: Any, level: str) -> None:
    wire.hello(observations=level)
    assert set(wire.hello()["state"]["per_articulation"]["arm"]) == STANDARD
    assert set(wire.ok("step")["per_articulation"]["arm"]) == STANDARD


def test_hello_inherits_no_encoding(wire: Any) -> None:
    wire.hello(encoding="json")
    frame = wire.send(msgpack.packb({"op": "hello"}))
    assert msgpack.unpackb(frame)["op"] == "hello_ok"


def test_steps_that_live_physics_made_before_a_switch_to_direct_are_not_counted(wire: Any, engine: Any) -> None:
    wire.ok("set_mode", mode="live")
    opened = wire.hello()["state"]
    assert opened["step"] == 0
    until(lambda: engine().sim_time > opened["time"] + 0.01)
    wire.ok("set_mode", mode="direct")
    assert wire.ok("step")["step"] == 1
    wire.ok("set_mode", mode="puppet")
    assert wire.ok("step")["step"] == 2, "a session that has stepped goes on counting"


def test_a_session_survives_the_end_and_the_begin_of_a_play(wire: Any) -> None:
    wire.ok("stop_pie")
    assert wire.refused("step") == "no_active_manager"
    assert wire.ok("pie_status")["state"] == "off"
    wire.play("solo")
    assert wire.ok("step")["step"] == 1


def test_meta_lists_every_op_but_hello_and_meta(stranger: Any) -> None:
    ops = {entry["name"]: entry for entry in stranger.exchange({"op": "meta"})["ops"]}
    assert set(ops) == set(CATALOGUE) - {"hello", "meta"}
    assert ops["set_qpos"]["required_fields"] == ["target", "qpos"]
    assert ops["set_qpos"]["category"] == "manager_required"
    assert ops["set_qpos"]["namespace"] == "runtime"
    assert "required_fields" not in ops["step"]


def test_without_a_play_the_handshake_is_short(wire: Any, server: Any) -> None:
    wire.ok("stop_pie")
    reply = wire.hello()
    assert set(reply) == {
        "op", "session_id", "urlab_version", "mujoco_version_int", "mujoco_version", "manager_present", "articulations",
        "shm_session_dir",
    }  # fmt: skip
    assert reply["shm_session_dir"] == str(server.shm_folder)
    assert (reply["manager_present"], reply["articulations"]) == (False, [])
