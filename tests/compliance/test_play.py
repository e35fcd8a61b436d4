"""The play lifecycle: begin_pie, stop_pie, pie_status."""

import threading
import time
from typing import Any

import pytest

from urlab.manager import play


def test_a_running_play_is_left_alone(wire: Any) -> None:
    wire.ok("step", n_steps=5)
    reply = wire.ok("begin_pie")
    assert (reply["state"], reply["compile_error"]) == ("ready", "")
    assert wire.ok("step")["step"] == 6


def test_ready_comes_with_a_handshake_of_the_same_session(wire: Any) -> None:
    wire.ok("stop_pie")
    payload = wire.ok("begin_pie")["handshake_payload"]
    assert payload["op"] == "hello_ok"
    assert payload["session_id"] == wire.session_id
    hello = wire.hello()
    moving = ("session_id", "state")
    assert {key: payload[key] for key in payload if key not in moving} == {
        key: hello[key] for key in hello if key not in moving
    }


def test_a_play_can_begin_in_a_mode_so_that_no_live_step_comes_first(wire: Any) -> None:
    wire.ok("stop_pie")
    payload = wire.ok("begin_pie", step_mode="direct")["handshake_payload"]
    assert payload["state"]["time"] == 0
    assert wire.ok("step")["step"] == 1
    assert wire.refused("begin_pie", step_mode="sideways") == "bad_value"


def test_the_states_follow_one_another(wire: Any) -> None:
    wire.ok("step", n_steps=5)
    status = wire.ok("pie_status")
    assert (status["state"], status["compile_error"]) == ("ready", "")
    assert status["sim_time"] == pytest.approx(0.01)
    assert wire.ok("stop_pie") == {"op": "stop_pie_ok"}
    status = wire.ok("pie_status")
    assert (status["state"], status["compile_error"]) == ("off", "")
    assert "sim_time" not in status
    assert wire.ok("stop_pie") == {"op": "stop_pie_ok"}, "stopping twice is fine"
    assert wire.ok("begin_pie")["state"] == "ready"


def test_the_status_tells_pace_seed_and_whose_setpoints_count(wire: Any) -> None:
    status = wire.ok("pie_status")
    assert status["speed_percent"] == 100
    assert "seed" not in status
    assert status["control_source"] == {"arm": "zmq", "walker": "zmq"}
    wire.ok("set_sim_speed", percent=25)
    wire.ok("reset", seed=42)
    wire.ok("set_control_source", source="ui", articulation="walker")
    status = wire.ok("pie_status")
    assert (status["speed_percent"], status["seed"]) == (25, 42)
    assert status["control_source"] == {"arm": "zmq", "walker": "ui"}
    robots = {one["prefix"]: one["control_source"] for one in wire.hello()["articulations"]}
    assert robots == {"arm": "zmq", "walker": "ui"}
    wire.ok("stop_pie")
    assert set(wire.ok("pie_status")) == {"op", "state", "compile_error", "level"}


def test_a_new_play_begins_at_the_start(wire: Any) -> None:
    wire.ok("step", n_steps=5)
    wire.ok("stop_pie")
    wire.ok("begin_pie")
    seen = wire.ok("step")
    assert (seen["step"], seen["time"]) == (1, 0.002)


@pytest.mark.parametrize("path", ["solo", "/Game/Levels/solo", "/Game/Levels/solo.solo"])
def test_another_level_is_loaded_by_path(wire: Any, path: str) -> None:
    payload = wire.ok("begin_pie", level_path=path)["handshake_payload"]
    assert [one["prefix"] for one in payload["articulations"]] == ["arm"]
    assert payload["entities"] == {}
    wire.ok("stop_pie")
    assert wire.play("arena")["entities"].keys() == {"crate", "goal", "slab"}


def test_shipped_levels_can_be_played(wire: Any) -> None:
    payload = wire.ok("begin_pie", level_path="demo")["handshake_payload"]
    assert {one["prefix"]: one["actor_id"] for one in payload["articulations"]} == {"panda": "arm", "quadruped": "dog"}
    assert {"box", "box-2", "box-3", "pallet", "target", "table"} <= set(payload["entities"])


@pytest.mark.parametrize("path", ["nowhere", "../solo", "/etc/passwd", "", "solo\0", "x" * 5000, ".."])
def test_a_level_that_does_not_exist_fails_and_the_next_one_works(wire: Any, path: str) -> None:
    reply = wire.ok("begin_pie", level_path=path)
    if path == "":
        assert reply["state"] == "ready", "empty means none"
        return
    assert reply["state"] == "compile_failed"
    assert reply["compile_error"]
    assert "handshake_payload" not in reply
    assert wire.play("solo")


def test_a_level_that_does_not_exist_ends_nothing(wire: Any) -> None:
    wire.ok("step", n_steps=5)
    assert wire.ok("begin_pie", level_path="nowhere")["state"] == "compile_failed"
    assert wire.ok("pie_status")["state"] == "ready"
    assert wire.ok("step")["step"] == 6


def test_a_level_that_does_not_compile_names_the_actor_and_the_reason(wire: Any) -> None:
    reply = wire.ok("begin_pie", level_path="broken")
    assert reply["state"] == "compile_failed"
    assert "'broken'" in reply["compile_error"]
    assert "mass" in reply["compile_error"]
    assert wire.ok("pie_status")["state"] == "compile_failed"
    assert wire.ok("pie_status")["compile_error"] == reply["compile_error"]
    assert wire.refused("step") == "no_active_manager"
    assert wire.hello()["manager_present"] is False
    assert wire.play("solo")
    assert wire.ok("pie_status")["compile_error"] == ""


@pytest.fixture
def slow(monkeypatch: Any) -> Any:
    """Compilations that wait for ``gate``; ``begun`` tells that one has."""
    gate, begun, real = threading.Event(), threading.Event(), play.compile_scene
    count = []

    def compile_scene(*args: Any) -> Any:
        count.append(args)
        begun.set()
        assert gate.wait(20)
        return real(*args)

    monkeypatch.setattr(play, "compile_scene", compile_scene)
    yield gate, begun, count
    gate.set()


def test_a_slow_compile_times_out_and_goes_on(wire: Any, server: Any, slow: Any) -> None:
    gate, begun, _ = slow
    finished = threading.Event()
    server.play.on_start.append(tell := lambda _: finished.set())
    reply = wire.ok("begin_pie", level_path="solo", timeout_s=0.05)
    assert reply["state"] == "timeout"
    assert "handshake_payload" not in reply
    assert begun.wait(20), "and the scene before it has ended"
    assert wire.ok("pie_status")["state"] == "compiling"
    assert wire.refused("step") == "no_active_manager"
    assert wire.hello()["manager_present"] is False
    gate.set()
    assert finished.wait(20)
    server.play.on_start.remove(tell)
    assert wire.ok("begin_pie")["state"] == "ready"
    wire.ok("step")


def test_asking_again_joins_the_compile_that_runs(wire: Any, server: Any, slow: Any) -> None:
    gate, begun, count = slow
    assert wire.ok("begin_pie", level_path="solo", timeout_s=0.01)["state"] == "timeout"
    assert begun.wait(20)
    threading.Timer(0.05, gate.set).start()
    assert wire.ok("begin_pie")["state"] == "ready"
    assert len(count) == 1


def test_a_second_start_that_cannot_wait_times_out(wire: Any, slow: Any) -> None:
    gate, _, _ = slow
    assert wire.ok("begin_pie", level_path="solo", timeout_s=0.01)["state"] == "timeout"
    assert wire.ok("begin_pie", level_path="arena", timeout_s=0.01)["state"] == "timeout"
    gate.set()
    assert wire.ok("begin_pie", level_path="arena")["state"] == "ready"


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf"), "soon"])
def test_a_timeout_must_be_a_duration(wire: Any, timeout_s: Any) -> None:
    assert wire.refused("begin_pie", timeout_s=timeout_s) == "bad_value"
    assert wire.ok("pie_status")["state"] == "ready"


@pytest.mark.parametrize("mode", ["live", "direct", "puppet"])
def test_a_new_play_begins_in_the_mode_that_the_client_last_asked_for(wire: Any, server: Any, mode: str) -> None:
    wire.ok("set_mode", mode=mode)
    wire.ok("stop_pie")
    wire.ok("begin_pie")
    assert server.play.manager.mode == mode


def test_for_a_client_that_never_asked_a_new_play_is_live_and_unpaused(wire: Any, server: Any) -> None:
    wire.ok("set_paused", paused=True)
    wire.hello()
    wire.ok("stop_pie")
    wire.ok("begin_pie")
    assert server.play.manager.mode == "live"
    assert server.play.manager.loop.paused is False


def test_a_server_may_begin_in_the_editor(make_server: Any, connect: Any) -> None:
    wire = connect(make_server("solo", play=False))
    assert wire.hello()["manager_present"] is False
    assert wire.ok("pie_status")["state"] == "off"
    assert wire.ok("begin_pie")["state"] == "ready"


def test_a_state_that_mujoco_cannot_step_has_a_code_of_its_own_and_is_mended_by_a_reset(wire: Any, caplog: Any) -> None:
    wire.play("heap")
    reply = wire.ask("step", n_steps=400)
    assert reply["code"] == "physics_error"
    assert "out of memory" in reply["message"]
    assert reply["message"].endswith("reset goes back to the start; begin_pie compiles the level anew")
    assert wire.refused("step") == wire.refused("forward") == "physics_error"
    assert "out of memory" in wire.ok("pie_status")["physics_error"]
    assert not [record for record in caplog.records if record.exc_info], "no traceback for each request"
    wire.ok("reset")
    assert "physics_error" not in wire.ok("pie_status")
    assert wire.ok("step", n_steps=10)["step"] == 10


def test_in_live_mode_the_reason_of_a_failed_step_stands_in_the_status(wire: Any, engine: Any, caplog: Any) -> None:
    wire.play("heap", "live")
    while not (status := wire.ok("pie_status"))["paused"]:
        time.sleep(0.001)
    assert "out of memory" in status["physics_error"]
    (line,) = (one.message for one in caplog.records if "live physics is paused" in one.message)
    assert "out of memory" in line
    wire.ok("reset")
    with engine().locked():  # it would fail again after a tenth of a second
        wire.ok("set_paused", paused=False)
        assert "physics_error" not in wire.ok("pie_status")
    assert wire.play("solo")
