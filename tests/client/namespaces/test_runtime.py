from typing import Any

import mujoco
import numpy as np
import pytest

from urlab_client import CameraMode, CameraStreaming, KeyframeInfo, MocapPose, SimOptions, StepMode, URLabClient


def test_readers_and_switches_return_what_the_server_has_in_force(client: URLabClient, server: Any):
    server.replies |= {"set_paused": {"paused": False}, "set_sim_speed": {"percent": 5.0}}
    assert client.runtime.set_paused(True) is False
    assert client.runtime.set_sim_speed(1.0) == 5.0


def test_an_unknown_control_source_is_refused_here(client: URLabClient, server: Any):
    with pytest.raises(ValueError, match="zmq, ui"):
        client.runtime.set_control_source("telepathy")
    client.runtime.set_control_source("ui")
    assert "articulation" not in server.last("set_control_source")


def test_set_mode_changes_the_clients_mode(client: URLabClient):
    assert client.runtime.set_mode(StepMode.PUPPET) is StepMode.PUPPET
    assert client.step_mode is StepMode.PUPPET


def test_the_mode_is_the_one_that_the_server_answers(client: URLabClient, server: Any):
    server.replies["set_mode"] = {"current_mode": "live"}
    assert client.runtime.set_mode("auto") is StepMode.LIVE


@pytest.mark.parametrize(
    ("reply", "first"),
    [
        ({"target": "robot_0", "actor_id": "robot_0", "qpos": [0.5, 0.6]}, 0),
        ({"target": "arm", "actor_name": "arm", "qpos": [0.5, 0.6]}, 0),
        ({"target": "dog", "actor_name": "dog", "qpos": [1, 2, 3, 1, 0, 0, 0], "free_base_shortcut": True}, 2),
        ({"target": "box_0", "actor_name": "box", "qpos": [1, 2, 3, 1, 0, 0, 0]}, 10),
    ],
)
def test_set_qpos_is_mirrored_where_the_server_wrote(
    client: URLabClient, server: Any, reply: dict[str, Any], first: int
):
    server.replies["set_qpos"] = reply
    client.runtime.set_qpos("anything", [0.0])
    written = reply["qpos"]
    assert client.data.qpos[first : first + len(written)].tolist() == written
    fresh = mujoco.MjData(client.model)
    fresh.qpos[:] = client.data.qpos
    mujoco.mj_kinematics(client.model, fresh)
    assert np.array_equal(client.data.xpos, fresh.xpos)


def test_set_qpos_can_look_an_actor_up_by_name(client: URLabClient, server: Any):
    client.runtime.set_qpos(client.articulations["arm"], (1, 2))
    assert server.last("set_qpos")["target"] == "robot_0"
    client.runtime.set_qpos("arm", (1, 2), by_name=True)
    assert server.last("set_qpos")["target_by"] == "actor_name"


def test_a_mocap_pose_is_mirrored(client: URLabClient, server: Any):
    server.replies["set_mocap_pose"] = {"body": "target", "pos": [0, 0, 9], "quat": [0, 1, 0, 0]}
    pose = client.runtime.set_mocap_pose("target", pos=(0, 0, 9), quat=(0, 1, 0, 0))
    assert pose == MocapPose("target", (0.0, 0.0, 9.0), (0.0, 1.0, 0.0, 0.0))
    assert client.data.mocap_pos[0].tolist() == [0, 0, 9]
    assert client.entities["target"].root_pos_w.tolist() == [0, 0, 9]
    with pytest.raises(ValueError, match="needs pos or quat"):
        client.runtime.set_mocap_pose("target")
    with pytest.raises(ValueError, match="quat needs 4 numbers"):
        client.runtime.set_mocap_pose("target", quat=(1, 0, 0))


def test_contacts_send_only_the_filters_given(client: URLabClient, server: Any):
    client.runtime.get_contacts()
    assert "filter" not in server.last("get_contacts")
    client.runtime.get_contacts(body1="box", max_contacts=3)
    sent = server.last("get_contacts")
    assert (sent["filter"], sent["max_contacts"]) == ({"body1": "box"}, 3)


def test_keyframes_are_typed(client: URLabClient, server: Any):
    server.replies["list_keyframes"] = {"keyframes": [{"name": "home", "time": 0, "qpos": [1.0]}]}
    assert client.runtime.list_keyframes() == [KeyframeInfo("home", 0.0, [1.0], [], [], [], [])]


def test_sim_options_are_mirrored_into_the_local_model(client: URLabClient, server: Any):
    server.replies["set_sim_options"] = {
        "options": {
            "timestep": 0.004, "gravity": [0.0, 0.0, -1.62], "iterations": 7, "integrator": "implicitfast",
            "cone": "elliptic", "solver": "cg", "enable_multiccd": False, "enable_sleep": True,
            "disableflags": 0, "enableflags": 0, "num_worker_threads": 2,
        }
    }  # fmt: skip
    options = client.runtime.set_sim_options(timestep=0.004, wind=None)
    assert server.last("set_sim_options")["options"] == {"timestep": 0.004}
    assert isinstance(options, SimOptions)
    assert (options.gravity, options.iterations) == ((0.0, 0.0, -1.62), 7)
    opt = client.model.opt
    assert (opt.timestep, opt.iterations) == (0.004, 7)
    assert opt.gravity.tolist() == [0.0, 0.0, -1.62]
    assert opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    assert opt.solver == mujoco.mjtSolver.mjSOL_CG
    assert opt.disableflags == mujoco.mjtDisableBit.mjDSBL_MULTICCD
    assert opt.enableflags == mujoco.mjtEnableBit.mjENBL_SLEEP


def test_setting_no_option_is_refused(client: URLabClient):
    with pytest.raises(ValueError, match="at least one field"):
        client.runtime.set_sim_options()


def test_forward_mirrors_the_state(client: URLabClient):
    assert client.runtime.forward()["op"] == "forward_ok"
    assert client.data.qpos[0] == 0.7


def test_a_camera_is_switched_by_name_or_by_its_view(client: URLabClient, server: Any):
    server.replies["set_camera_mode"] = lambda request: {"camera": request["camera"], "mode": request["mode"]}
    assert client.runtime.set_camera_mode("wrist", CameraMode.SEMANTIC) is CameraMode.SEMANTIC
    assert client.articulations["arm"].cameras["wrist"].mode is CameraMode.SEMANTIC
    for view, name in (
        (client.articulations["arm"].cameras["eye"], "arm/eye"),
        (client.global_cameras["room"], "room"),
    ):
        client.runtime.set_camera_mode(view, "instance")
        assert server.last("set_camera_mode")["camera"] == name
        assert view.mode is CameraMode.INSTANCE
    client.runtime.set_camera_mode("somebody_elses", "real")
    with pytest.raises(ValueError, match="real, depth, semantic, instance"):
        client.runtime.set_camera_mode("wrist", "x-ray")


def test_streams_of_cameras_are_told_as_they_are_in_force(client: URLabClient, server: Any):
    block = {
        "streaming": True,
        "zmq": True,
        "shm": False,
        "rate_hz": 10.0,
        "zmq_endpoint": "tcp://*:1",
        "zmq_topic": "t",
    }
    server.replies["set_camera_streaming"] = {"cameras": {"wrist": block}}
    told = client.runtime.set_camera_streaming({"wrist": True})
    assert told == {"wrist": CameraStreaming(True, True, False, 10.0, "tcp://*:1", "t")}
    assert server.last("set_camera_streaming")["cameras"] == {"wrist": True}
    wrist = client.articulations["arm"].cameras["wrist"]
    assert (wrist.zmq_endpoint, wrist.zmq_topic, wrist.streams) == ("tcp://*:1", "t", True)
