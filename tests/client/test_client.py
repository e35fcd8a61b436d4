import copy
import threading
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab_client import (
    InProcessTransport,
    PIEState,
    StepMode,
    Transport,
    URLabClient,
    URLabRPCError,
    URLabVersionMismatch,
)
from urlab_client.session import client_version

Make = Callable[..., URLabClient]


def test_discover_says_hello_reads_the_catalogue_and_asks_for_the_mode(client: URLabClient, server: Any):
    assert server.ops() == ["hello", "meta", "set_mode"]
    hello = server.received[0]
    assert {key: hello[key] for key in ("session_id", "observations", "encoding", "client_version")} == {
        "session_id": None, "observations": "standard", "encoding": "msgpack", "client_version": client_version(),
    }  # fmt: skip
    assert server.received[1]["session_id"] == client.session_id == "11111111-2222"
    assert server.received[2]["mode"] == "direct"
    assert client.urlab_version == "urlab/9"
    assert client.mujoco_version == mujoco.__version__
    assert client.manager_present


@pytest.mark.parametrize(
    "options",
    [{}, {"step_mode": "live", "auto_promote_step_mode": False}, {"step_mode": "live", "observer": True},
     {"step_mode": "direct", "auto_promote_step_mode": False}, {"step_mode": "direct", "operator": True}],
)  # fmt: skip
def test_the_mode_is_asked_for_only_where_it_is_named_and_promoted(make_client: Make, server: Any, options: Any):
    make_client(**options).discover()
    assert server.ops() == ["hello", "meta"]


def test_a_pinned_mode_only_warns(make_client: Make, server: Any, refuse: Any):
    server.replies["set_mode"] = refuse("mode_locked_by_server", "pinned to live")
    with pytest.warns(UserWarning, match="pinned to live"):
        make_client(step_mode="direct").discover()


def test_a_server_without_meta_is_fine_and_another_error_is_not(make_client: Make, server: Any, refuse: Any):
    server.replies["meta"] = refuse("unknown_op")
    client = make_client()
    client.discover()
    assert client._ops_meta == {}
    server.replies["meta"] = refuse("internal_error")
    with pytest.raises(URLabRPCError, match="internal_error"):
        client.discover()


def test_an_editor_time_handshake_has_no_model_and_asks_for_no_mode(make_client: Make, server: Any):
    server.replies["hello"] = {"session_id": "s", "manager_present": False, "articulations": []}
    client = make_client(step_mode="direct")
    client.discover()
    assert server.ops() == ["hello", "meta"]
    assert client.model is None
    assert client.articulations == {}


def test_other_muJoCo_versions_are_refused_or_warned_about(make_client: Make, handshake: dict[str, Any]):
    foreign = {**handshake, "mujoco_version": "99.1.0"}
    with pytest.raises(URLabVersionMismatch, match=r"MuJoCo 99\.1\.0, this client"):
        make_client()._apply_handshake(foreign)
    tolerant = make_client(mujoco_version_check=False)
    with pytest.warns(UserWarning, match=r"99\.1\.0"):
        tolerant._apply_handshake(foreign)
    assert tolerant.mujoco_version == "99.1.0"


def test_the_model_of_a_foreign_server_is_loaded_from_xml_and_assets(
    make_client: Make, server: Any, handshake: dict[str, Any]
):
    xml = "<mujoco><worldbody><body name='arm_only'><geom size='.1'/></body></worldbody></mujoco>"
    foreign = {**handshake, "mujoco_version": "99.1.0"}
    server.replies["hello"] = lambda request: (
        {**foreign, "mjcf_compiled": xml, "vfs_assets": {}} if request.get("include_assets") else foreign
    )
    client = make_client(mujoco_version_check=False)
    with pytest.warns(UserWarning, match=r"99\.1\.0"):
        client._absorb_handshake(client._hello())
    assert client.model.nbody == 2


def test_a_broken_binary_is_replaced_by_xml_and_assets(
    make_client: Make, server: Any, handshake: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)  # MuJoCo notes the broken file in a log where it runs
    xml = "<mujoco><worldbody><body name='arm_only'><geom size='.1'/></body></worldbody></mujoco>"
    broken = {**handshake, "mjb": b"nonsense" * 100, "entities": {}}
    server.replies["hello"] = lambda request: (
        {**broken, "mjcf_compiled": xml} if request.get("include_assets") else broken
    )
    client = make_client()
    with pytest.warns(UserWarning, match="cannot be loaded.*XML and assets instead"):
        client.discover()
    assert client.model.nbody == 2


def test_a_handshake_without_a_binary_keeps_the_model_that_is_there(make_client: Make, scene_model: Any):
    client = make_client()
    client._renew_data(scene_model)
    client._apply_handshake({"session_id": "s", "articulations": [{"prefix": "arm"}]})
    assert list(client.articulations["arm"].joints) == ["waist", "elbow_joint"]


def test_articulations_by_id_are_the_same_objects_and_follow_the_handshake(
    client: URLabClient, handshake: dict[str, Any]
):
    assert client.articulations_by_id == {"robot_0": client.articulations["arm"]}
    anonymous = copy.deepcopy(handshake)
    del anonymous["articulations"][0]["actor_id"]
    client._apply_handshake(anonymous)
    assert client.articulations_by_id == {}


def test_a_direct_step_sends_all_setpoints_and_the_wrenches_once(client: URLabClient, server: Any):
    arm = client.articulations["arm"]
    arm.set_ctrl({"waist": 0.5})
    arm.apply_xfrc("hand", force=[0, 5, 0])
    client.entities["box"].apply_xfrc(torque=[0, 0, 1])
    reply = client.step(10)
    assert reply["op"] == "step_ok"
    sent = server.last("step")
    assert (sent["n_steps"], sent["observations"], sent["include_cameras"]) == (10, "standard", False)
    assert sent["per_articulation"] == {
        "arm": {
            "ctrl": [0.5, 0.0],
            "control_mode": "ue_controller",
            "xfrc_applied": {"hand": [0, 5, 0, 0, 0, 0]},
        },
        "dog": {"ctrl": [0.0], "control_mode": "raw"},
        "box": {"xfrc_applied": {"box": [0, 0, 0, 0, 0, 1]}},
    }
    client.step()
    again = server.last("step")["per_articulation"]
    assert "box" not in again
    assert "xfrc_applied" not in again["arm"]


def test_the_level_of_discover_is_that_of_later_steps(make_client: Make, server: Any):
    client = make_client()
    client.discover("full")
    client.step()
    client.step(observations="minimal")
    client.step()
    asked = [request["observations"] for request in server.received if request["op"] in ("hello", "step")]
    assert asked == ["full", "full", "minimal", "full"]


def test_after_a_step_the_local_data_is_the_servers_with_everything_that_follows_from_it(client: URLabClient):
    client.step()
    expected = mujoco.MjData(client.model)
    expected.qpos[:], expected.qvel[:], expected.time = client.data.qpos, client.data.qvel, 0.5
    expected.ctrl[:], expected.act[:] = [0.4, 0.6, 0.9], [0.25]
    expected.mocap_pos[:] = [0.5, 0.5, 0.5]
    mujoco.mj_forward(client.model, expected)
    assert client.data.qpos[:2].tolist() == [0.7, -0.3]
    assert client.data.time == 0.5
    assert client.data.ctrl.tolist() == [0.4, 0.6, 0.9]
    assert np.array_equal(client.data.qacc, expected.qacc)
    assert np.array_equal(client.data.geom_xpos, expected.geom_xpos)
    assert np.array_equal(client.data.sensordata, expected.sensordata)


def test_the_clocks_follow_the_replies(client: URLabClient):
    assert (client.sim_time, client.step_count, client.recv_wall_time_ns) == (0.0, 0, 0)
    client.step()
    assert (client.sim_time, client.step_count) == (0.5, 25)
    assert (client.sim_time_sec, client.sim_time_nsec) == (0, 500_000_000)
    assert (client.wall_time_sec, client.wall_time_nsec) == (7, 8)
    assert client.recv_wall_time_ns > 0


def test_a_minimal_reply_keeps_the_sensors_that_were_there(client: URLabClient, server: Any):
    client.step()
    server.replies["step"] = {"time": 1.0, "per_articulation": {"arm": {"qpos": [0.0, 0.0], "qvel": [0.0, 0.0]}}}
    client.step(observations="minimal")
    assert client.articulations["arm"].sensors["waist_pos"].latest == [0.7]
    assert client.data.qpos[0] == 0.0


def test_a_puppet_step_steps_here_and_pushes(make_client: Make, server: Any):
    client = make_client(step_mode="puppet")
    client.discover()
    reference = mujoco.MjData(client.model)
    mujoco.mj_step(client.model, reference, nstep=3)
    client.step(3)
    sent = server.last("step")
    assert (sent["mode"], sent["n_steps"], sent["per_articulation"]) == ("puppet", 3, {})
    assert sent["qpos"] == reference.qpos.tolist() == client.data.qpos.tolist()
    assert sent["time"] == client.data.time == reference.time
    assert len(sent["ctrl"]) == client.model.nu


def test_a_puppet_step_of_zero_pushes_the_state_as_it_is(make_client: Make, server: Any):
    client = make_client(step_mode="puppet")
    client.discover()
    client.data.qpos[0] = 1.234
    client.step(0)
    assert (client.data.qpos[0], client.data.time) == (1.234, 0.0)
    assert server.last("step")["qpos"][0] == 1.234


def test_a_drag_acts_on_the_puppets_data_until_it_ends(make_client: Make, server: Any, state_reply: dict[str, Any]):
    client = make_client(step_mode="puppet")
    client.discover()
    drag = {"body_id": 2, "version": 1, "xfrc": [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]}
    server.replies["step"] = {**state_reply, "perturbation": drag}
    client.step(0)
    assert client.data.xfrc_applied[2].tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]
    server.replies["step"] = state_reply
    client.step(0)
    assert not client.data.xfrc_applied.any()


def test_a_puppet_without_a_model_says_why(make_client: Make, server: Any):
    without = make_client(step_mode="puppet", local_model=False)
    without.discover()
    with pytest.raises(RuntimeError, match="local_model=True"):
        without.step()
    server.replies["hello"] = {"session_id": "s", "manager_present": False, "articulations": []}
    editing = make_client(step_mode="puppet")
    editing.discover()
    with pytest.raises(RuntimeError, match=r"sim\.start\(\)"):
        editing.step()


def test_a_puppet_copies_setpoints_into_its_data_only_when_they_changed(make_client: Make, handshake: dict[str, Any]):
    handshake["articulations"][0]["setpoints"] = [0.25, 0.5]
    client = make_client(step_mode="puppet")
    client.discover()
    assert client.data.ctrl.tolist() == [0.25, 0.5, 0.0]
    client.data.ctrl[:] = [1.0, 2.0, 3.0]
    client.step(0)
    assert client.data.ctrl.tolist() == [1.0, 2.0, 3.0]
    client.articulations["arm"].set_ctrl({"elbow": 0.75})
    client.step(0)
    assert client.data.ctrl.tolist() == [0.25, 0.75, 3.0]
    client.data.ctrl[0] = 9.0
    client.step(0)
    assert client.data.ctrl[0] == 9.0


def test_setpoints_begin_with_the_servers_and_follow_a_reset(
    make_client: Make, server: Any, handshake: dict[str, Any], state_reply: dict[str, Any]
):
    handshake["articulations"][0]["setpoints"] = [0.25, 0.5]
    client = make_client(step_mode="direct")
    client.discover()
    arm, dog = client.articulations["arm"], client.articulations["dog"]
    assert (arm.ctrl_array.tolist(), dog.ctrl_array.tolist()) == ([0.25, 0.5], [0.0])
    client.reset()
    assert arm.ctrl_array.tolist() == [0.25, 0.5]
    server.replies["reset"] = {**state_reply, "setpoints": {"arm": [0.1, 0.2], "dog": [1.0, 2.0], "cat": [1.0]}}
    client.reset(keyframe_name="home")
    assert (arm.ctrl_array.tolist(), dog.ctrl_array.tolist()) == ([0.1, 0.2], [0.0])
    client.step()
    assert server.last("step")["per_articulation"]["arm"]["ctrl"] == [0.1, 0.2]


@pytest.mark.parametrize("mode", ["direct", "puppet"])
def test_after_discover_the_servers_state_is_there(
    make_client: Make, handshake: dict[str, Any], state_reply: dict[str, Any], mode: str
):
    handshake["state"] = {"op": "step_ok", **state_reply}
    client = make_client(step_mode=mode)
    client.discover()
    assert (client.sim_time, client.step_count, client.data.time) == (0.5, 0, 0.5)
    assert client.data.qpos[:2].tolist() == [0.7, -0.3]
    assert client.articulations["arm"].sensors["waist_pos"].latest == [0.7]
    assert client.entities["shelf"].root_pos_w.tolist() == [5.0, 6.0, 7.0]


def test_a_step_before_discover_asks_for_it_and_sends_nothing(make_client: Make, server: Any):
    client = make_client(step_mode="puppet")
    for call in (client.step, client.reset):
        with pytest.raises(URLabRPCError, match=r"call discover\(\) first"):
            call()
    assert server.ops() == []


def test_a_closed_client_refuses_every_call(client: URLabClient, server: Any):
    client.close()
    sent = len(server.received)
    for call in (client.step, client.reset, client.discover, client.sim.status, client.scene.snapshot):
        with pytest.raises(URLabRPCError, match="this client is closed: make a new one") as raised:
            call()
        assert raised.value.code == "client_closed"
    assert len(server.received) == sent


def test_an_unknown_robot_or_entity_is_a_key_error_that_lists_the_known_ones(make_client: Make, client: URLabClient):
    with pytest.raises(KeyError, match="no articulation 'cat'; there are arm, dog"):
        client.articulations["cat"]
    with pytest.raises(KeyError, match="no entity 'cat'; there are box, shelf, target, arm, dog"):
        client.entities["cat"]
    with pytest.raises(KeyError, match=r"there are none yet: call discover\(\) first"):
        make_client().articulations["arm"]
    assert client.articulations.get("cat") is None


@pytest.mark.parametrize("address", ["localhost", "http://localhost", "tcp://", "inproc://urlab", ""])
def test_an_address_of_another_form_is_refused(address: str):
    with pytest.raises(ValueError, match=r"write tcp://host or ipc:///path"):
        URLabClient(address)


@pytest.mark.parametrize("port", [0, -1, 65536, "5559", 5559.0, True])
def test_a_port_that_is_none_is_refused(port: Any):
    with pytest.raises(ValueError, match="step_port must be a whole number within 1 and 65535"):
        URLabClient(step_port=port)


def test_a_caller_with_a_transport_may_be_in_process(make_client: Make):
    assert make_client(address="inproc://urlab").address == "inproc://urlab"


@pytest.mark.parametrize("mode", ["direct", "puppet"])
def test_reset_sends_what_was_asked_and_mirrors_in_every_mode(make_client: Make, server: Any, mode: str):
    client = make_client(step_mode=mode)
    client.discover()
    client.data.ctrl[:] = 5.0
    reply = client.reset(keyframe_name="home", seed=42, per_articulation_qpos={"arm": {"waist": 0.7}})
    assert reply["op"] == "reset_ok"
    sent = server.last("reset")
    assert (sent["keyframe_name"], sent["seed"]) == ("home", 42)
    assert sent["per_articulation_qpos"] == {"arm": {"waist": 0.7}}
    assert client.data.qpos[0] == 0.7
    assert client.data.ctrl.tolist() == [0.4, 0.6, 0.9]
    assert client.step_count == 0


def test_a_plain_reset_sends_no_overrides(client: URLabClient, server: Any):
    client.reset()
    assert set(server.last("reset")) == {"op", "session_id", "request_id"}


def test_closing_gives_a_promoted_mode_back_once_and_survives_a_dead_server(client: URLabClient, server: Any):
    def die(request: dict[str, Any]) -> dict[str, Any]:
        raise ConnectionError("gone")

    server.replies["set_mode"] = die
    client.close()
    client.close()
    assert server.ops().count("set_mode") == 2
    assert server.last("set_mode")["mode"] == "live"


def test_closing_leaves_a_mode_alone_that_was_not_promoted(make_client: Make, server: Any):
    with make_client(step_mode="direct", auto_promote_step_mode=False) as client:
        client.discover()
    assert "set_mode" not in server.ops()


def test_an_expired_session_is_not_reopened_silently(client: URLabClient, server: Any, refuse: Any):
    server.replies["step"] = refuse("session_expired", "unknown session")
    with pytest.raises(URLabRPCError, match=r"call discover\(\) again"):
        client.step()
    assert server.ops().count("hello") == 1
    client.discover()
    assert server.ops().count("hello") == 2


def test_a_hello_that_fails_leaves_the_old_session_in_place(client: URLabClient, server: Any, refuse: Any):
    server.replies["hello"] = refuse("shutting_down")
    with pytest.raises(URLabRPCError, match="shutting_down"):
        client.discover()
    client.step()
    assert server.last("step")["session_id"] == "11111111-2222"


def test_an_entity_that_a_reply_leaves_out_stays_where_it_was(client: URLabClient, server: Any, state_reply: Any):
    client.step()
    del state_reply["entities"]["box"]
    state_reply["entities"]["shelf"]["xpos"] = [8.0, 8.0, 8.0]
    server.replies["step"] = state_reply
    client.step()
    assert client.entities["box"].root_pos_w.tolist() == [0.0, 3.0, 2.0]
    assert client.entities["shelf"].root_pos_w.tolist() == [8.0, 8.0, 8.0]


def test_an_observer_says_so_and_never_drives(make_client: Make, server: Any):
    client = make_client(step_mode="direct", observer=True)
    client.discover()
    client.step(5)
    assert server.received[0]["observer"] is True
    assert (server.last("step")["n_steps"], server.last("step")["per_articulation"]) == (0, {})
    client.close()
    assert "set_mode" not in server.ops()


def test_warnings_of_the_server_are_logged(
    client: URLabClient, server: Any, state_reply: dict[str, Any], caplog: pytest.LogCaptureFixture
):
    server.replies["step"] = {**state_reply, "warnings": ["bad qacc"]}
    client.step()
    assert "the server warns: bad qacc" in caplog.text


def test_absorbing_from_many_threads_leaves_the_state_whole(client: URLabClient, state_reply: dict[str, Any]):
    def absorb(value: float) -> None:
        reply = copy.deepcopy(state_reply)
        reply["per_articulation"]["arm"]["qpos"] = [value, value]
        for _ in range(50):
            client._absorb_step_reply(reply)

    threads = [threading.Thread(target=absorb, args=(value,)) for value in (0.1, 0.2, 0.3)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        with client._data_lock:
            assert client.data.qpos[0] == client.data.qpos[1] or client.data.qpos[0] == 0
    for thread in threads:
        thread.join()


def test_a_transport_that_speaks_maps_only_overrides_rpc():
    class Maps(Transport):
        def rpc(self, request: Any, *, rcv_timeout_ms: int = 0) -> dict[str, Any]:
            session = {"session_id": "s", "manager_present": False} if request["op"] == "hello" else {"state": "off"}
            return {"op": f"{request['op']}_ok", **session}

    with pytest.raises(NotImplementedError, match="neither request nor rpc"):
        URLabClient(transport=Transport()).discover()
    client = URLabClient(transport=Maps())
    client.discover()
    assert client.sim.status().state is PIEState.OFF
    assert client.step_mode is StepMode.AUTO


@pytest.mark.parametrize(("patience_ms", "expected_ms"), [(5000, 62_000), (90_000, 90_000), (300, 300)])
def test_a_step_with_pictures_is_waited_for_as_long_as_the_server_may_draw(
    server: Any, patience_ms: int, expected_ms: int
):
    class Timed(InProcessTransport):
        def rpc(self, request: Any, *, rcv_timeout_ms: int = 0) -> dict[str, Any]:
            waits_ms.append(rcv_timeout_ms)
            return super().rpc(request, rcv_timeout_ms=rcv_timeout_ms)

    waits_ms: list[int] = []
    client = URLabClient(transport=Timed(server.handle), rcv_timeout_ms=patience_ms, step_mode="direct")
    client.discover()
    client.step(include_cameras=True)
    assert waits_ms[-1] == expected_ms
    client.runtime.forward(include_cameras=True)
    assert waits_ms[-1] == expected_ms
    client.step()
    assert waits_ms[-1] == max(patience_ms, 7000 if patience_ms >= 5000 else 0)
