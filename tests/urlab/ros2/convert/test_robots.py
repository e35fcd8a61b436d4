"""Joint states and odometry are what the server computed, under the names and in the frames that ROS wants."""

from typing import Any

import msgspec
import mujoco
import numpy as np
import pytest

import urlab
from urlab.ros2.convert.robots import JointStates, Odometry, SceneChanged
from urlab.ros2.frames import SceneFrames
from urlab.ros2.geometry import clock_message, time_of_s
from urlab_wire.ops.stepping import ClockBlock
from urlab_wire.stream_messages import StateFull


def state_of(reply: dict[str, Any]) -> StateFull:
    return msgspec.convert({key: reply[key] for key in StateFull.__struct_fields__} | {"op": "state_full"}, StateFull)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    with urlab.launch(project=tmp_path_factory.mktemp("project")) as client:
        yield client


def test_all_joints_of_a_robot_are_in_one_message_by_short_name(demo):
    message = JointStates(demo.articulations["panda"]).convert(state_of(demo.step(3)))
    assert message.name == [*(f"joint{one}" for one in range(1, 8)), "finger_joint1", "finger_joint2"]
    for name, position, velocity in zip(message.name, message.position, message.velocity, strict=True):
        joint = demo.model.joint(f"panda_{name}")
        assert position == demo.data.qpos[joint.qposadr[0]]
        assert velocity == demo.data.qvel[joint.dofadr[0]] != 0.0


def test_a_free_root_is_not_among_the_joints(demo):
    message = JointStates(demo.articulations["quadruped"]).convert(state_of(demo.step(3)))
    assert len(message.name) == len(message.position) == len(message.velocity) == 12
    assert "root" not in message.name
    np.testing.assert_array_equal(message.position, demo.articulations["quadruped"].dof_qpos)


def test_the_stamp_is_the_simulation_time(demo):
    message = JointStates(demo.articulations["panda"]).convert(state_of(demo.step(11)))
    stamp = message.header.stamp
    assert stamp.sec + stamp.nanosec * 1e-9 == pytest.approx(demo.sim_time, abs=1e-9)
    assert message.header.frame_id == ""


def test_there_is_no_effort_as_the_stream_carries_no_forces(demo):
    message = JointStates(demo.articulations["panda"]).convert(state_of(demo.step(1)))
    assert message.effort.shape == (0,)


def test_a_state_of_another_scene_is_refused(demo):
    state = state_of(demo.step(1))
    del state.per_articulation["panda"]
    with pytest.raises(SceneChanged, match="no robot 'panda'; the state has quadruped"):
        JointStates(demo.articulations["panda"]).convert(state)


EPS_S = 1e-6


def xyz(vector: Any) -> np.ndarray:
    return np.array([vector.x, vector.y, vector.z])


def moved(client: Any, qpos: np.ndarray, qvel: np.ndarray, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Where the trunk is, position and rotation matrix, so many seconds later at that velocity."""
    data, body = mujoco.MjData(client.model), client.articulations["quadruped"].body_id
    data.qpos[:] = qpos
    mujoco.mj_integratePos(client.model, data.qpos, qvel, seconds)
    mujoco.mj_kinematics(client.model, data)
    return data.xpos[body].copy(), data.xmat[body].reshape(3, 3).copy()


@pytest.mark.parametrize("seed", range(3))
def test_the_twist_is_the_motion_of_the_base_in_its_own_frame(demo, seed):
    rng, robot = np.random.default_rng(seed), demo.articulations["quadruped"]
    quat = rng.normal(size=4)
    demo.reset(per_articulation_qpos={"quadruped": {"root": [*rng.uniform(1, 2, 3), *(quat / np.linalg.norm(quat))]}})
    state = state_of(demo.step(1))
    qvel = demo.data.qvel.copy()
    qvel[robot.qvel_offset : robot.qvel_offset + 6] = rng.uniform(-2, 2, 6)
    state.per_articulation["quadruped"].qvel = qvel[robot._qvel_index].tolist()
    message = Odometry(SceneFrames(demo).robots["quadruped"], robot).convert(state)

    before, after = (moved(demo, demo.data.qpos, qvel, seconds) for seconds in (0.0, EPS_S))
    linear_b = before[1].T @ (after[0] - before[0]) / EPS_S
    spin = before[1].T @ (after[1] - before[1]) / EPS_S
    np.testing.assert_allclose(xyz(message.twist.twist.linear), linear_b, atol=1e-5)
    np.testing.assert_allclose(xyz(message.twist.twist.angular), [spin[2, 1], spin[0, 2], spin[1, 0]], atol=1e-5)
    np.testing.assert_allclose(xyz(message.pose.pose.position), before[0])
    turn, matrix = message.pose.pose.orientation, np.empty(9)
    mujoco.mju_quat2Mat(matrix, [turn.w, turn.x, turn.y, turn.z])
    np.testing.assert_allclose(matrix.reshape(3, 3), before[1], atol=1e-12)
    assert (message.header.frame_id, message.child_frame_id) == ("quadruped/odom", "quadruped/base_link")


def test_a_robot_without_a_free_base_has_no_odometry(demo):
    with pytest.raises(ValueError, match="'panda' has no free base"):
        Odometry(SceneFrames(demo).robots["panda"], demo.articulations["panda"])


def test_the_clock_is_the_simulation_time(demo):
    state = state_of(demo.step(5))
    now = clock_message(state.sim_time).clock
    assert (now.sec, now.nanosec) == (state.sim_time.sec, state.sim_time.nsec)
    assert now.sec + now.nanosec * 1e-9 == pytest.approx(demo.data.time)
    assert time_of_s(demo.data.time) == now, "pictures are stamped as states are"


def test_a_time_beyond_what_ros_can_count_stands_still(demo):
    state = state_of(demo.step(1))
    state.sim_time = ClockBlock(sec=2**40, nsec=5)
    assert clock_message(state.sim_time).clock.sec == 2**31 - 1
