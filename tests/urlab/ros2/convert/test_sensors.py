"""Sensors: what goes into which message, and in which frame."""

import math
from typing import Any

import msgspec
import mujoco
import numpy as np
import pytest

import urlab
from urlab.ros2.convert.robots import SceneChanged
from urlab.ros2.convert.sensors import RobotSensors
from urlab.ros2.frames import SceneFrames
from urlab_wire.stream_messages import StateFull

RIG = """<mujoco model="rig"><option gravity="0 0 0"/><worldbody>
  <geom name="wall" type="box" size=".1 9 9" pos="2.1 0 0"/>
  <body name="base"><joint name="yaw"/><geom size=".05"/>
    <site name="ahead" euler="0 90 0"/><site name="up" pos=".5 0 0"/><site name="tilted" pos="0 0 .1" euler="40 0 90"/>
    <body name="arm" pos="0 0 .2"><joint name="pitch" axis="0 1 0"/><geom size=".05"/><site name="wrist"/></body>
  </body></worldbody>
  <sensor>
    <rangefinder name="hit" site="ahead"/><rangefinder name="miss" site="up"/>
    <rangefinder name="short" site="ahead" cutoff="1.5"/><rangefinder name="short_miss" site="up" cutoff="1.5"/>
    <rangefinder name="rich" site="ahead" data="dist point"/>
    <gyro name="g" site="tilted"/><framequat name="q" objtype="xbody" objname="base"/>
    <gyro name="g2" site="tilted"/>
    <framequat name="q_rel" objtype="site" objname="wrist" reftype="site" refname="up"/>
    <accelerometer name="a" site="wrist"/><force name="f" site="wrist"/><torque name="t" site="tilted"/>
    <jointpos name="p" joint="yaw"/>
  </sensor></mujoco>"""


def state_of(reply: dict[str, Any]) -> StateFull:
    return msgspec.convert({key: reply[key] for key in StateFull.__struct_fields__} | {"op": "state_full"}, StateFull)


def xyz(vector: Any) -> list[float]:
    return [vector.x, vector.y, vector.z]


def sensors_of(client: Any, prefix: str) -> RobotSensors:
    return RobotSensors(client.model, client.articulations[prefix], SceneFrames(client).robots[prefix])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    with urlab.launch(project=tmp_path_factory.mktemp("project")) as client:
        yield client


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("rig")
    (folder / "rig.xml").write_text(RIG)
    with urlab.launch(folder / "rig.xml", project=folder / "project") as client:
        yield client


@pytest.fixture(scope="module")
def beams(rig):
    """The ranges of the rig's first state, by name."""
    rig.reset()
    state = state_of(rig.runtime.forward())
    return {one.name: one.convert(state) for one in sensors_of(rig, "rig").ranges}


def test_gyro_accelerometer_and_orientation_of_one_site_are_an_imu(demo):
    state = state_of(demo.step(30))
    (imu,) = sensors_of(demo, "quadruped").imus
    message, told = imu.convert(state), state.per_articulation["quadruped"].sensors
    assert (imu.name, message.header.frame_id) == ("imu", "quadruped/imu")
    assert xyz(message.angular_velocity) == told["imu_gyro"]
    assert xyz(message.linear_acceleration) == told["imu_acc"]
    turn = message.orientation
    np.testing.assert_allclose([turn.w, turn.x, turn.y, turn.z], told["imu_quat"], atol=1e-15)
    assert not np.any([message.orientation_covariance, message.angular_velocity_covariance])
    stamp = message.header.stamp
    assert (stamp.sec, stamp.nanosec) == (state.sim_time.sec, state.sim_time.nsec)


def test_an_imu_says_what_it_does_not_measure(rig):
    imus = {one.name: one.convert(state_of(rig.step(1))) for one in sensors_of(rig, "rig").imus}
    assert set(imus) == {"tilted", "wrist"}
    assert imus["tilted"].linear_acceleration_covariance[0] == -1
    assert imus["tilted"].angular_velocity_covariance[0] == imus["tilted"].orientation_covariance[0] == 0
    assert imus["wrist"].orientation_covariance[0] == imus["wrist"].angular_velocity_covariance[0] == -1
    assert imus["wrist"].linear_acceleration_covariance[0] == 0


def test_the_orientation_of_a_body_is_turned_into_that_of_the_site(rig):
    rig.reset(per_articulation_qpos={"rig": {"yaw": 0.7, "pitch": -0.2}})
    state = state_of(rig.runtime.forward())
    tilted = next(one for one in sensors_of(rig, "rig").imus if one.name == "tilted")
    turn, matrix, data = tilted.convert(state).orientation, np.empty(9), mujoco.MjData(rig.model)
    mujoco.mju_quat2Mat(matrix, [turn.w, turn.x, turn.y, turn.z])
    data.qpos[:] = rig.data.qpos
    mujoco.mj_forward(rig.model, data)
    np.testing.assert_allclose(matrix, data.site("rig_tilted").xmat, atol=1e-12)


def test_force_and_torque_of_one_site_are_a_wrench(demo, rig):
    state = state_of(demo.step(30))
    (wrench,) = sensors_of(demo, "panda").wrenches
    message, told = wrench.convert(state), state.per_articulation["panda"].sensors
    assert (wrench.name, message.header.frame_id) == ("wrist_ft", "panda/wrist_ft")
    assert xyz(message.wrench.force) == told["wrist_force"] != [0, 0, 0]
    assert xyz(message.wrench.torque) == told["wrist_torque"]
    assert sensors_of(rig, "rig").wrenches == [], "a force here and a torque there are no wrench"


def test_a_range_is_metres_to_what_the_beam_hits(beams):
    message = beams["hit"]
    assert message.range == pytest.approx(2.0)
    assert (message.header.frame_id, message.radiation_type) == ("rig/ahead_range_frame", 1)
    assert (message.min_range, message.max_range, message.field_of_view) == (0.0, math.inf, 0.0)


def test_no_hit_is_plus_infinity(beams):
    assert beams["miss"].range == math.inf
    assert beams["short_miss"].range == beams["short"].range == math.inf, "beyond the cutoff is beyond reach"
    assert beams["short"].max_range == 1.5


def test_what_is_not_measured_is_nan(rig):
    hit = next(one for one in sensors_of(rig, "rig").ranges if one.name == "hit")
    state = state_of(rig.step(1))
    state.per_articulation["rig"].sensors["hit"] = [math.nan]
    assert math.isnan(hit.convert(state).range)


def test_the_frame_of_a_range_points_along_the_beam(rig):
    frames = SceneFrames(rig)
    edge = next(one for one in frames.static if one.child == "rig/ahead_range_frame")
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, edge.pose.quat_wxyz)
    np.testing.assert_allclose(turn.reshape(3, 3)[:, 0], [1, 0, 0], atol=1e-12)  # the site's z is the body's x


def test_every_sensor_is_in_exactly_one_source(demo, rig):
    sensors = sensors_of(rig, "rig")
    assert [one.name for one in sensors.arrays] == ["rich", "g2", "q_rel", "f", "t", "p"]
    assert [one.name for one in sensors.ranges] == ["hit", "miss", "short", "short_miss"]
    quadruped = sensors_of(demo, "quadruped")
    assert len(quadruped.arrays) == len(demo.articulations["quadruped"].sensors) - 3
    assert len(quadruped.sources) == len(quadruped.arrays) + 1


def test_any_other_sensor_is_an_array_with_its_name(demo):
    state = state_of(demo.step(2))
    source = next(one for one in sensors_of(demo, "panda").arrays if one.name == "ee_pos")
    message = source.convert(state)
    (dimension,) = message.layout.dim
    assert (dimension.label, dimension.size, dimension.stride, message.layout.data_offset) == ("ee_pos", 3, 3, 0)
    assert message.data.tolist() == state.per_articulation["panda"].sensors["ee_pos"]


def test_all_values_of_a_robot_are_one_array_in_the_models_order(demo):
    state = state_of(demo.step(2))
    message = sensors_of(demo, "panda").data.convert(state)
    robot = demo.articulations["panda"]
    assert message.data.tolist() == [value for name in robot.sensors for value in robot.sensors[name].latest]
    assert message.layout.dim[0].label.startswith("joint1_pos:1 joint2_pos:1")
    assert message.layout.dim[0].label.endswith("wrist_force:3 wrist_torque:3")


def test_a_state_without_the_sensor_is_refused(demo):
    state, imu = state_of(demo.step(1)), sensors_of(demo, "quadruped").imus[0]
    state.per_articulation["quadruped"].sensors["imu_gyro"] = [1.0]
    with pytest.raises(SceneChanged, match="sensor 'imu_gyro' of 'quadruped' has 1 values, not 3"):
        imu.convert(state)
    state.per_articulation["quadruped"].sensors = None
    with pytest.raises(SceneChanged, match="has no values, not 4"):
        imu.convert(state)
