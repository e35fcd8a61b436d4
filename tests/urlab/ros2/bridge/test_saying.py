"""What the bridge says of states and pictures is what the server computed, at that stamp."""

import logging
import math
import threading
import time
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.ros2.bridge import BridgeSettings
from urlab.ros2.convert.robots import JointStates
from urlab_client import URLabClient
from urlab_wire.ops.stepping import split_s

PATIENCE_S = 30.0


def stamped(message: Any, seconds: float) -> bool:
    return (message.header.stamp.sec, message.header.stamp.nanosec) == split_s(seconds)


def drawn(counters: Any) -> int:
    """How many pictures the server has sent, of all its cameras."""
    return sum(one["sent"] for one in counters["cameras"].values())


def test_what_is_said_is_what_the_server_computed_at_that_stamp(
    server: Any, driver: URLabClient, bridged: Any, graph: Any
):
    joints = graph.ear("/rover/joint_states", "sensor_msgs/msg/JointState")
    odometry = graph.ear("/rover/odom", "nav_msgs/msg/Odometry")
    imu = graph.ear("/rover/imu", "sensor_msgs/msg/Imu")
    sensors = graph.ear("/rover/sensor_data", "std_msgs/msg/Float64MultiArray")
    tf = graph.ear("/tf", "tf2_msgs/msg/TFMessage")
    bridged(server)
    driver.articulations["rover"].ctrl_array[:] = 0.7
    driver.step(n_steps=60)
    _, data = server.truth()

    joint = joints.first(lambda one: stamped(one, data.time))
    assert joint.name == ["turn"]
    assert joint.position == pytest.approx(data.qpos[7:])
    assert joint.velocity == pytest.approx(data.qvel[6:])
    odom = odometry.first(lambda one: stamped(one, data.time))
    at = odom.pose.pose.position
    assert (at.x, at.y, at.z) == pytest.approx(tuple(data.qpos[:3]))
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, data.qpos[3:7])
    speed = odom.twist.twist.linear
    assert (speed.x, speed.y, speed.z) == pytest.approx(tuple(rotation.reshape(3, 3).T @ data.qvel[:3]))
    felt = imu.first(lambda one: stamped(one, data.time))
    acceleration, rate = felt.linear_acceleration, felt.angular_velocity
    assert (acceleration.x, acceleration.y, acceleration.z) == pytest.approx(tuple(data.sensordata[:3]))
    assert (rate.x, rate.y, rate.z) == pytest.approx(tuple(data.sensordata[3:6]))
    assert sensors.first(lambda one: one.data[6] == data.sensordata[6]).data == pytest.approx(data.sensordata)
    moved = tf.first(lambda one: any(stamped(each, data.time) for each in one.transforms)).transforms
    base = next(one for one in moved if one.child_frame_id == "rover/base_link").transform
    assert (base.translation.x, base.translation.z) == pytest.approx((data.qpos[0], data.qpos[2]))
    assert (base.rotation.w, base.rotation.z) == pytest.approx((data.qpos[3], data.qpos[6]))


def test_the_clock_is_simulation_time(server: Any, driver: URLabClient, bridged: Any, graph: Any):
    clock = graph.ear("/clock", "rosgraph_msgs/msg/Clock")
    bridged(server)
    driver.step(n_steps=33)
    _, data = server.truth()
    clock.first(lambda one: (one.clock.sec, one.clock.nanosec) == split_s(data.time))


def test_a_slow_converter_and_pictures_delay_the_clock_by_nothing(
    server: Any, bridged: Any, graph: Any, monkeypatch: pytest.MonkeyPatch
):
    held, go_on = threading.Event(), threading.Event()
    go_on.set()
    quick = JointStates.convert

    def slow(self: Any, state: Any) -> Any:
        if not go_on.is_set():
            held.set()
            go_on.wait()
        return quick(self, state)

    monkeypatch.setattr(JointStates, "convert", slow)
    joints = graph.ear("/rover/joint_states", "sensor_msgs/msg/JointState")
    pictures = graph.ear("/rover/camera/eye/image_raw", "sensor_msgs/msg/Image")
    bridged(server)
    pictures.after()
    clock = graph.ear("/clock", "rosgraph_msgs/msg/Clock")
    try:
        go_on.clear()
        assert held.wait(PATIENCE_S)
        joints_before = len(joints.messages)
        clock.after(len(clock.messages) + 100)
        pictures.after()
        assert len(joints.messages) == joints_before
    finally:
        go_on.set()
    times = [one.clock.sec * 10**9 + one.clock.nanosec for one in clock.messages]
    assert times == sorted(times)


def test_a_converter_that_fails_is_logged_once_and_silences_nothing_else(
    server: Any, bridged: Any, graph: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fail(self: Any, state: Any) -> Any:
        raise ZeroDivisionError("of the test")

    monkeypatch.setattr(JointStates, "convert", fail)
    graph.ear("/rover/joint_states", "sensor_msgs/msg/JointState")
    odometry = graph.ear("/rover/odom", "nav_msgs/msg/Odometry")
    bridge = bridged(server)
    odometry.after(20)
    told = [one for one in caplog.records if "/rover/joint_states" in one.getMessage()]
    assert len(told) == 1
    assert told[0].levelno == logging.ERROR
    assert bridge.is_ready


def test_states_are_limited_to_the_rate_and_the_clock_is_not(server: Any, run: Any, graph: Any):
    clock = graph.ear("/clock", "rosgraph_msgs/msg/Clock")
    joints = graph.ear("/rover/joint_states", "sensor_msgs/msg/JointState")
    run(graph, BridgeSettings(step_port=server.port, rate_hz=10.0))
    joints.after(0)
    begin, clock_before, joints_before = time.monotonic(), len(clock.messages), len(joints.messages)
    clock.after(clock_before + 200)
    told = len(joints.messages) - joints_before
    assert told <= 10 * (time.monotonic() - begin) + 2
    assert len(clock.messages) - clock_before >= 200


def test_a_picture_and_its_lens_share_stamp_and_frame(server: Any, bridged: Any, graph: Any):
    infos = graph.ear("/rover/camera/eye/camera_info", "sensor_msgs/msg/CameraInfo")
    pictures = graph.ear("/camera/image_raw", "sensor_msgs/msg/Image")
    bridged(server)
    picture = pictures.after(2)
    info = infos.first(lambda one: one.header.stamp == picture.header.stamp)
    assert info.header.frame_id == picture.header.frame_id == "rover/eye_optical_frame"
    assert (info.width, info.height) == (picture.width, picture.height) == (32, 24)
    focal = 12 / math.tan(math.radians(30))
    assert info.k == pytest.approx([focal, 0, 15.5, 0, focal, 11.5, 0, 0, 1])
    assert len(picture.data) == 32 * 24 * 3


def test_a_camera_is_drawn_only_while_it_has_subscribers(server: Any, bridged: Any, graph: Any, wait_until: Any):
    clock = graph.ear("/clock", "rosgraph_msgs/msg/Clock")
    bridged(server)
    clock.after(200)
    assert drawn(server.counters()) == 0
    pictures = graph.ear("/rover/camera/eye/image_raw/compressed", "sensor_msgs/msg/CompressedImage")
    assert bytes(pictures.after(3).data[:2]) == b"\xff\xd8"
    pictures.close()
    wait_until(lambda: "urlab-ros2-eye" not in {one.name for one in threading.enumerate()})

    def rests() -> bool:
        before = drawn(server.counters())
        clock.after(len(clock.messages) + 200)
        return drawn(server.counters()) == before

    wait_until(rests)


def test_depth_is_compressed_as_depth(serve: Any, bridged: Any, graph: Any):
    server = serve("yard")
    pictures = graph.ear("/post/camera/deep/image_raw/compressedDepth", "sensor_msgs/msg/CompressedImage")
    bridged(server)
    picture = pictures.after(0)
    assert picture.format == "16UC1; compressedDepth png"
    assert bytes(picture.data[12:16]) == b"\x89PNG"
    assert "/post/camera/deep/image_raw/compressed" not in graph.topics
