from typing import Any

import pytest

from urlab_client import PIEState, URLabClient, URLabPIEError

EDITOR = {"session_id": "s", "manager_present": False, "articulations": []}


@pytest.fixture
def editing(make_client: Any, server: Any) -> URLabClient:
    server.replies["hello"] = EDITOR
    client: URLabClient = make_client(step_mode="direct")
    client.discover()
    return client


def test_ready_absorbs_the_handshake_and_asks_for_the_mode(editing: URLabClient, server: Any, handshake: Any):
    server.replies["begin_pie"] = {"state": "ready", "compile_error": "", "handshake_payload": handshake}
    result = editing.sim.start("/Game/Levels/X", timeout_s=3)
    assert result.is_ready
    assert editing.manager_present
    assert list(editing.articulations) == ["arm", "dog"]
    assert server.ops() == ["hello", "meta", "begin_pie", "set_mode"]
    assert server.last("begin_pie")["step_mode"] == "direct"
    assert (server.last("begin_pie")["level_path"], server.last("begin_pie")["timeout_s"]) == ("/Game/Levels/X", 3.0)


@pytest.mark.parametrize("options", [{}, {"step_mode": "direct", "auto_promote_step_mode": False}])
def test_a_client_that_does_not_ask_for_its_mode_starts_without_one(make_client: Any, server: Any, options: Any):
    client = make_client(**options)
    client.discover()
    server.replies["begin_pie"] = {"state": "timeout"}
    client.sim.start(raise_on_failure=False)
    assert "step_mode" not in server.last("begin_pie")


def test_failure_raises_with_the_compile_log_or_is_returned(editing: URLabClient, server: Any):
    server.replies["begin_pie"] = {"state": "compile_failed", "compile_error": "line 3"}
    with pytest.raises(URLabPIEError, match="line 3") as raised:
        editing.sim.start()
    assert (raised.value.code, raised.value.state) == ("pie_compile_failed", PIEState.COMPILE_FAILED)
    assert editing.sim.start(raise_on_failure=False).compile_error == "line 3"
    assert not editing.manager_present


def test_stop_leaves_no_manager(client: URLabClient, server: Any):
    server.replies["pie_status"] = {"state": "ready", "sim_time": 1.5}
    assert client.sim.status().sim_time == 1.5
    client.sim.stop()
    assert not client.manager_present
