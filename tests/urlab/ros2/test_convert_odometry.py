"""Odometry: pose in odom, velocities in the base's own frame."""

from typing import Any

import msgspec
import mujoco
import numpy as np
import pytest

import urlab
from urlab.ros2.convert import Odometry, clock, time_of_s
from urlab.ros2.frames import SceneFrames
from urlab_wire.ops.stepping import ClockBlock
from urlab_wire.stream_messages import StateFull

EPS_S = 1e-6


def state_of(reply: dict[str, Any]) -> StateFull:
    return msgspec.convert({key: reply[key] for key in StateFull.__struct_fields__} | {"op": "state_full"}, StateFull)


def xyz(vector: Any) -> np.ndarray:
    return np.array([vector.x, vector.y, vector.z])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    with urlab.launch(project=tmp_path_factory.mktemp("project")) as client:
        yield client


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
    now = clock(state.sim_time).clock
    assert (now.sec, now.nanosec) == (state.sim_time.sec, state.sim_time.nsec)
    assert now.sec + now.nanosec * 1e-9 == pytest.approx(demo.data.time)
    assert time_of_s(demo.data.time) == now, "pictures are stamped as states are"


def test_a_time_beyond_what_ros_can_count_stands_still(demo):
    state = state_of(demo.step(1))
    state.sim_time = ClockBlock(sec=2**40, nsec=5)
    assert clock(state.sim_time).clock.sec == 2**31 - 1
