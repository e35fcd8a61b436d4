from typing import Any

import numpy as np
import pytest

from urlab_client import ControlMode, URLabArticulation, URLabClient


@pytest.fixture
def arm(client: URLabClient) -> URLabArticulation:
    return client.articulations["arm"]


def test_setpoints_begin_at_zero_and_change_by_name(arm: URLabArticulation):
    assert arm.get_ctrl() == {"waist": 0.0, "elbow": 0.0}
    arm.set_ctrl({"elbow": 0.5})
    arm.actuators["waist"].set_control(-1)
    assert arm.ctrl_array[arm._actuator_local["elbow"]] == 0.5
    assert arm.actuators["waist"].value == -1.0
    arm.ctrl_array = [3, 4]
    assert arm.get_ctrl() == {"waist": 3.0, "elbow": 4.0}


def test_an_unknown_actuator_changes_nothing(arm: URLabArticulation):
    with pytest.raises(KeyError, match="no actuator 'nose'; it has waist, elbow"):
        arm.set_ctrl({"waist": 1.0, "nose": 1.0})
    assert arm.get_ctrl() == {"waist": 0.0, "elbow": 0.0}


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, "fast"])
def test_setpoints_that_are_not_finite_are_refused_by_name(arm: URLabArticulation, bad: Any):
    with pytest.raises(ValueError, match="arm: elbow must be a finite number"):
        arm.set_ctrl({"waist": 1.0, "elbow": bad})
    with pytest.raises(ValueError, match="arm: waist must be a finite number"):
        arm.actuators["waist"].set_control(bad)
    with pytest.raises(ValueError, match=r"arm\.ctrl_array: elbow must be a finite number"):
        arm.ctrl_array = [1.0, bad]
    assert arm.get_ctrl() == {"waist": 0.0, "elbow": 0.0}
    with pytest.raises(ValueError, match=r"force on 'hand'\[1\] must be a finite number"):
        arm.apply_xfrc("hand", force=(0, bad, 0))


def test_a_setpoint_array_of_another_length_is_refused(arm: URLabArticulation):
    with pytest.raises(ValueError, match=r"takes 2 numbers \(waist, elbow\)"):
        arm.ctrl_array = [1.0]


def test_the_control_mode_is_that_of_the_handshake_until_set(arm: URLabArticulation):
    assert arm.control_mode is ControlMode.UE_CONTROLLER
    arm.control_mode = "raw"
    assert arm.control_mode is ControlMode.RAW
    with pytest.raises(ValueError, match="ue_controller, raw"):
        arm.control_mode = "telepathy"


def test_state_is_that_of_the_last_reply(client: URLabClient, arm: URLabArticulation):
    client.step()
    dog = client.articulations["dog"]
    assert arm.qpos_array.tolist() == [0.7, -0.3]
    assert arm.get_qpos() == {"waist": 0.7, "elbow_joint": -0.3}
    assert arm.last_applied_ctrl.tolist() == [0.4, 0.6]
    assert arm.twist.tolist() == [0.5, -0.25, 0.0, 0.0, 0.0, 0.7]
    assert (arm.actions, dog.actions) == (5, 0)
    assert dog.act_array.tolist() == [0.25]
    assert dog.dof_qpos.tolist() == [0.2]
    assert dog.dof_qvel.tolist() == [0.0]
    assert arm.ctrl_array.tolist() == [0.0, 0.0]


def test_the_applied_ctrl_cannot_be_written(client: URLabClient, arm: URLabArticulation):
    client.step()
    with pytest.raises(ValueError, match="read-only"):
        arm.last_applied_ctrl[0] = 1.0


def test_sensors_are_none_or_zero_until_there_is_data(client: URLabClient, arm: URLabArticulation):
    assert arm.sensors["tip"].latest is None
    assert arm.get_sensors()["tip"].tolist() == [0.0, 0.0, 0.0]
    client.step()
    assert arm.sensors["tip"].latest is not None
    assert arm.get_sensors()["tip"].tolist() == [1.0, 2.0, 3.0]


def test_bodies_and_forces_come_from_full_replies_and_bodies_else_from_the_mirror(
    client: URLabClient, arm: URLabArticulation, server: Any, state_reply: dict[str, Any]
):
    client.step()
    hand = arm.bodies["hand"]
    assert hand.xpos is not None
    assert np.allclose(hand.xpos, [0, 0, 0.5])
    assert arm.actuators["waist"].force is None
    block = state_reply["per_articulation"]["arm"]
    block["bodies"] = {"hand": {"xpos": [9.0, 9.0, 9.0], "xquat": [0.0, 1.0, 0.0, 0.0]}}
    block["actuator_force"] = [1.5, 2.5]
    server.replies["step"] = state_reply
    client.step(observations="full")
    assert hand.xpos.tolist() == [9.0, 9.0, 9.0]
    assert hand.xquat is not None
    assert hand.xquat.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert [actuator.force for actuator in arm.actuators.values()] == [1.5, 2.5]


@pytest.mark.parametrize(
    ("name", "live"),
    [
        ("waist", "waist"), ("arm_waist", "waist"), ("base_rotation", "waist"), ("waist_joint", "waist"),
        ("elbow_joint", "elbow_joint"), ("nose", None),
    ],
)  # fmt: skip
def test_joint_names_of_the_source_resolve_to_live_ones(arm: URLabArticulation, name: str, live: str | None):
    assert arm.resolve_joint(name) == live


def test_actuator_names_resolve_without_the_joint_suffix(arm: URLabArticulation):
    assert arm.resolve_actuator("elbow_joint") == "elbow"
    assert arm.resolve_actuator("nose") is None


def test_a_wrench_waits_for_the_next_step_and_can_be_taken_back(arm: URLabArticulation):
    arm.apply_xfrc("hand", force=[0, 5, 0])
    assert arm._pending_xfrc == {"hand": [0.0, 5.0, 0.0, 0.0, 0.0, 0.0]}
    arm.clear_xfrc()
    assert not arm._pending_xfrc
    with pytest.raises(KeyError, match="no body 'tail'; it has base, hand"):
        arm.apply_xfrc("tail", force=[1, 0, 0])
    with pytest.raises(ValueError, match="force on 'hand' needs 3 numbers"):
        arm.apply_xfrc(body="hand", force=[1, 0])


def test_gains_are_pushed_for_the_joints_that_resolve(client: URLabClient, arm: URLabArticulation, server: Any):
    server.replies["configure_controller"] = lambda request: {"params": request["params"]}
    assert arm.push_gains(["base_rotation", "nose"], [1, 2], damping=[3, 4]) == 1
    assert server.last("configure_controller")["params"] == {"kp": {"waist": 1.0}, "kv": {"waist": 3.0}}
    with pytest.raises(RuntimeError, match="no PD controller"):
        client.articulations["dog"].push_gains(["hip"], [1])


def test_an_articulation_works_without_a_client():
    alone = URLabArticulation("robot")
    assert alone.qpos_array.shape == (0,)
    assert alone.root_quat_w.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert alone.controller is None
