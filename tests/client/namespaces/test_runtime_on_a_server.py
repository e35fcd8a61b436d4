"""Forces, states, constraints and setpoints of a user interface: what the client shows is what the server has."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import urlab
from urlab_client import URLabClient, URLabLocalEditWarning, URLabRPCError
from urlab_client.transports import InProcessTransport

RIG = """
<mujoco model="rig"><option timestep=".002"/><worldbody>
  <body name="a" pos="0 0 1"><joint name="a" axis="0 1 0" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
    <camera name="eye" pos="0 -1 0" xyaxes="1 0 0 0 0 1" resolution="32 24"/></body>
  <body name="b" pos="0 1 1"><joint name="b" axis="0 1 0" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/></body>
  <body name="ball" pos="3 0 1"><freejoint name="ball"/><geom size=".1" mass="1"/></body></worldbody>
  <equality><joint name="tie" joint1="a" joint2="b"/></equality>
  <actuator><motor name="drive" joint="a"/>
    <general name="slow" joint="b" dyntype="user" actdim="2" gainprm="2"/></actuator>
  <sensor><jointpos name="angle" joint="a"/></sensor>
  <keyframe><key name="tense" qpos="0 0 3 0 1 1 0 0 0" act=".3 .7"/></keyframe>
</mujoco>"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[URLabClient]:
    (tmp_path / "rig.xml").write_text(RIG)
    with urlab.launch(tmp_path / "rig.xml", project=tmp_path) as client:
        yield client


def height(client: URLabClient) -> float:
    return float(client.data.body("rig_ball").xpos[2])


def test_a_body_is_dragged_to_a_point_and_let_go(client: URLabClient):
    client.runtime.perturb("ball", target=(3, 0, 2), stiffness=1000)
    client.step(2000)
    assert height(client) == pytest.approx(2 - 9.81 / 1000, abs=1e-3)
    assert client.runtime.release() == ["rig_ball"]
    client.step(100)
    assert height(client) < 1.9


def test_a_puppet_feels_what_holds_its_bodies(client: URLabClient):
    client.runtime.set_mode("puppet")
    client.runtime.perturb("ball", force=(0, 0, 1 * 9.81))
    client.runtime.perturb("a", torque=(0, 0.5, 0))
    client.step(0)
    client.step(50)
    assert height(client) == pytest.approx(1)
    assert client.data.xfrc_applied[client.model.body("rig_a").id].tolist() == [0, 0, 0, 0, 0.5, 0]
    client.runtime.release()
    client.step(0)
    assert not client.data.xfrc_applied.any()


def test_closing_a_client_lets_go_of_what_it_holds(tmp_path: Path):
    (tmp_path / "rig.xml").write_text(RIG)
    with urlab.launch(tmp_path / "rig.xml", project=tmp_path) as driver:
        operator = URLabClient(transport=SharedTransport(driver), operator=True)
        operator.discover()
        operator.runtime.perturb("ball", force=(0, 0, 1))
        operator.close()
        assert driver.runtime.release("ball") == []


class SharedTransport(InProcessTransport):
    """A second client of the server in this process; closing it leaves the server alone."""

    def __init__(self, driver: URLabClient) -> None:
        transport = driver._channel.transport
        assert isinstance(transport, InProcessTransport)
        super().__init__(transport._handle)


def test_a_state_is_saved_and_restored_here_and_there(client: URLabClient):
    robot = client.articulations["rig"]
    client.reset("tense")
    client.runtime.set_equality("tie", False)
    robot.ctrl_array[:] = [0.4, 0]
    client.step(100)
    seen = client.data.qpos.copy(), client.data.qvel.copy(), client.data.act.copy(), client.data.time
    state = client.runtime.save_state("here")
    client.step(100)
    future = client.data.qpos.copy()
    client.reset()
    robot.ctrl_array[:] = 0
    client.runtime.restore_state("here")
    assert np.array_equal(client.data.qpos, seen[0])
    assert np.array_equal(client.data.qvel, seen[1])
    assert np.array_equal(client.data.act, seen[2])
    assert client.data.time == client.sim_time == seen[3]
    assert client.data.eq_active.tolist() == [0]
    assert robot.ctrl_array.tolist() == [0.4, 0]
    client.step(100)
    assert np.array_equal(client.data.qpos, future)
    client.runtime.restore_state(state)
    assert np.array_equal(client.data.qpos, seen[0])
    assert [one.name for one in client.runtime.list_states()] == ["here"]
    assert client.runtime.delete_state("here")
    with pytest.raises(URLabRPCError, match="none"):
        client.runtime.restore_state("here")


def test_a_constraint_is_switched_in_the_local_data_too(client: URLabClient):
    client.runtime.set_equality("tie", False)
    assert client.data.eq_active.tolist() == [0]
    client.reset()
    assert client.data.eq_active.tolist() == [1]


def test_a_changed_parameter_is_in_the_local_model_too(client: URLabClient):
    before = client.model.body_mass.copy(), client.model.dof_M0.copy()
    (changed,) = client.runtime.set_model_params(("body", "ball", "mass", 5), until="reset")
    assert changed == {"kind": "body", "name": changed["name"], "field": "mass", "value": [5.0]}
    assert client.model.body(changed["name"]).mass == 5
    assert not np.array_equal(client.model.dof_M0, before[1])
    client.reset()
    assert np.array_equal(client.model.body_mass, before[0])
    assert np.array_equal(client.model.dof_M0, before[1])


def test_what_a_reset_draws_is_in_the_local_model_and_data(client: URLabClient):
    table = {
        "mass": {"kind": "body", "name": "ball", "field": "mass", "distribution": "uniform", "low": 3, "high": 4},
        "fall": {"kind": "option", "field": "gravity", "distribution": "choice", "values": [[0, 0, -5]]},
    }
    reply = client.reset(seed=3, randomize=table)
    mass, _ = (one["value"][0] for one in reply["randomized"]["changes"])
    assert client.model.body(reply["randomized"]["changes"][0]["name"]).mass == mass
    assert client.model.opt.gravity.tolist() == [0, 0, -5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.step()
        client.reset()
    assert client.model.opt.gravity[2] != -5


def test_an_edit_of_the_local_model_that_cannot_reach_the_server_says_so(client: URLabClient):
    client.model.body_mass[1] = 9
    with pytest.warns(URLabLocalEditWarning, match=r"body_mass of client.model.*set_model_params"):
        client.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.step()
        assert client.model.nbody
        client.step()


def test_every_activation_of_an_actuator_is_shown(client: URLabClient):
    reply = client.reset("tense")
    assert reply["per_articulation"]["rig"]["act"] == [0, 0.3, 0.7]
    assert client.data.act.tolist() == [0.3, 0.7]
    assert client.articulations["rig"].act_array.tolist() == [0, 0.3]


def test_a_puppet_goes_on_as_the_server_would_with_two_activations(client: URLabClient):
    client.runtime.set_equality("tie", False)
    client.reset("tense")
    client.step(50)
    state = client.runtime.save_state()
    client.step(200)
    direct = client.data.qpos.copy()
    client.runtime.restore_state(state)
    client.runtime.set_mode("puppet")
    client.step(200)
    assert np.allclose(client.data.qpos, direct, rtol=0, atol=1e-9)


def test_a_step_of_no_steps_observes_and_sends_nothing(client: URLabClient):
    robot = client.articulations["rig"]
    client.step(10)
    before = client.data.qpos.copy()
    robot.ctrl_array[0] = 1
    client.entities["rig_ball"].apply_xfrc((0, 0, 500))
    reply = client.step(0, include_cameras={"eye": "sync"})
    assert np.array_equal(client.data.qpos, before)
    assert (reply["step"], reply["cameras"]["eye"]["sim_time"]) == (10, reply["time"])
    client.step(1)
    assert client.data.qvel[client.model.joint("rig_ball").dofadr[0] + 2] > 0.5, "the wrench was sent with this step"
    assert robot.last_applied_ctrl[0] == 1


def test_an_evaluation_brings_camera_frames(client: URLabClient):
    client.step(5)
    reply = client.runtime.forward(include_cameras={"eye": "sync"})
    assert reply["cameras"]["eye"]["sim_time"] == reply["time"] == pytest.approx(0.01)
    assert client.articulations["rig"].cameras["eye"].latest is not None
    assert "cameras" not in client.runtime.forward()


def test_setpoints_of_a_user_interface_count_when_it_is_in_force(client: URLabClient, caplog: pytest.LogCaptureFixture):
    assert client.runtime.set_ui_controls(client.articulations["rig"], ctrl_map={"drive": 0.3}) == [0.3, 0]
    client.runtime.set_control_source("ui")
    client.step()
    assert client.articulations["rig"].last_applied_ctrl.tolist() == [0.3, 0]
    assert "control source" in caplog.text
