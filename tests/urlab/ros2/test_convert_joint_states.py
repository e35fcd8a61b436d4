"""Joint states: names, numbers and efforts as MuJoCo has them."""

from typing import Any

import msgspec
import mujoco
import numpy as np
import pytest

import urlab
from urlab.ros2.convert import JointStates, SceneChanged
from urlab_wire.stream_messages import StateFull


def state_of(reply: dict[str, Any]) -> StateFull:
    return msgspec.convert({key: reply[key] for key in StateFull.__struct_fields__} | {"op": "state_full"}, StateFull)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    with urlab.launch(project=tmp_path_factory.mktemp("project")) as client:
        yield client


def test_all_joints_of_a_robot_are_in_one_message_by_short_name(demo):
    message = JointStates(demo.model, demo.articulations["panda"]).convert(state_of(demo.step(3)))
    assert message.name == [*(f"joint{one}" for one in range(1, 8)), "finger_joint1", "finger_joint2"]
    for name, position, velocity in zip(message.name, message.position, message.velocity, strict=True):
        joint = demo.model.joint(f"panda_{name}")
        assert position == demo.data.qpos[joint.qposadr[0]]
        assert velocity == demo.data.qvel[joint.dofadr[0]] != 0.0


def test_a_free_root_is_not_among_the_joints(demo):
    message = JointStates(demo.model, demo.articulations["quadruped"]).convert(state_of(demo.step(3)))
    assert len(message.name) == len(message.position) == len(message.velocity) == 12
    assert "root" not in message.name
    np.testing.assert_array_equal(message.position, demo.articulations["quadruped"].dof_qpos)


def test_the_stamp_is_the_simulation_time(demo):
    message = JointStates(demo.model, demo.articulations["panda"]).convert(state_of(demo.step(11)))
    stamp = message.header.stamp
    assert stamp.sec + stamp.nanosec * 1e-9 == pytest.approx(demo.sim_time, abs=1e-9)
    assert message.header.frame_id == ""


def test_there_is_no_effort_without_actuator_forces(demo):
    message = JointStates(demo.model, demo.articulations["panda"]).convert(state_of(demo.step(1)))
    assert message.effort.shape == (0,)


@pytest.mark.parametrize("prefix", ["panda", "quadruped"])
def test_effort_is_what_the_actuators_do_to_each_joint(demo, prefix):
    robot, model, data = demo.articulations[prefix], demo.model, mujoco.MjData(demo.model)
    data.ctrl[:] = np.random.default_rng(1).uniform(-3, 3, model.nu)
    mujoco.mj_forward(model, data)
    state = state_of(demo.step(1, observations="full"))
    state.per_articulation[prefix].actuator_force = [data.actuator_force[one.id] for one in robot.actuators.values()]
    message = JointStates(model, robot).convert(state)
    dofs = [robot.joints[name].qvel_offset for name in message.name]
    np.testing.assert_allclose(message.effort, data.qfrc_actuator[dofs], atol=1e-12)
    assert np.abs(message.effort).max() > 1.0


def test_effort_stays_empty_where_it_depends_on_the_pose(tmp_path):
    (tmp_path / "m.xml").write_text("""<mujoco><worldbody><body name="b"><joint name="j"/><geom size=".1"/>
      <site name="s"/></body></worldbody><actuator><general name="thrust" site="s"/></actuator></mujoco>""")
    with urlab.launch(tmp_path / "m.xml", project=tmp_path / "project") as client:
        state = state_of(client.step(1, observations="full"))
        assert state.per_articulation["m"].actuator_force == [0.0]
        assert JointStates(client.model, client.articulations["m"]).convert(state).effort.size == 0


def test_a_state_of_another_scene_is_refused(demo):
    state = state_of(demo.step(1))
    del state.per_articulation["panda"]
    with pytest.raises(SceneChanged, match="no robot 'panda'; the state has quadruped"):
        JointStates(demo.model, demo.articulations["panda"]).convert(state)
