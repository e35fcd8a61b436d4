"""Joints in the order of actions, and motors that follow at a limited speed."""

import mujoco
import numpy as np
import pytest

from urlab.evaluation.embodiments import FRANKA_PANDA
from urlab.evaluation.robot_port import RobotPort
from urlab.evaluation.scene import ROBOT, build_scene
from urlab.evaluation.slots import slots_of

SUBSTEPS = 16


@pytest.fixture(scope="module")
def model(task, embodiment):
    return build_scene(task, embodiment, cameras=False).model


@pytest.fixture
def data(model):
    return mujoco.MjData(model)


@pytest.fixture
def port(model, embodiment):
    return RobotPort(model, ROBOT, embodiment)


def motor(model, data, name):
    return data.ctrl[model.actuator(f"{ROBOT}_{name}").id]


def test_joints_are_read_in_the_order_of_actions(data, port, embodiment):
    for number, joint in enumerate(embodiment.joints):
        data.joint(f"{ROBOT}_{joint}").qpos = number
    assert port.joints(data).tolist() == list(range(embodiment.action_length))


def test_joints_are_a_copy(data, port):
    port.joints(data)[:] = 99.0
    assert port.joints(data).max() < 99.0


def test_a_robot_that_is_put_somewhere_is_told_to_stay(model, data, port, embodiment):
    port.put(data, np.array(embodiment.home))
    np.testing.assert_array_equal(port.joints(data), embodiment.home)
    for slot in slots_of(embodiment):
        for name, value in zip(slot.arm.actuators, np.array(embodiment.home)[slot.joints], strict=True):
            assert motor(model, data, name) == value
        for name, value in zip(slot.arm.gripper.actuators, np.array(embodiment.home)[slot.gripper], strict=False):
            assert motor(model, data, name) == value


def test_an_arm_s_setpoints_move_at_the_greatest_joint_speed(model, data, port, embodiment):
    home = np.array(embodiment.home)
    port.put(data, home)
    target = home.copy()
    first = slots_of(embodiment)[0]
    target[first.joints.start] += 0.5
    index = model.actuator(f"{ROBOT}_{first.arm.actuators[0]}").id
    controls = port.ramp(data, target, SUBSTEPS)
    steps = np.diff(controls[:, index], prepend=home[first.joints.start])
    np.testing.assert_allclose(steps, embodiment.max_joint_speed_rad_s / 480)
    others = [number for number in range(model.nu) if number != index]
    np.testing.assert_array_equal(controls[:, others], np.tile(data.ctrl[others], (SUBSTEPS, 1)))


def test_a_setpoint_stops_at_its_target(model, data, port, embodiment):
    home = np.array(embodiment.home)
    port.put(data, home)
    start = slots_of(embodiment)[0].joints.start
    target = home.copy()
    target[start] += 0.01
    index = model.actuator(f"{ROBOT}_{embodiment.arms[0].actuators[0]}").id
    assert port.ramp(data, target, SUBSTEPS)[-1, index] == pytest.approx(target[start])


def test_a_gripper_s_setpoint_goes_there_at_once(model, data, port, embodiment):
    port.put(data, np.array(embodiment.home))
    target = np.array(embodiment.home)
    for slot in slots_of(embodiment):
        target[slot.gripper] = slot.arm.gripper.closed
    for slot in slots_of(embodiment):
        for name, closed in zip(slot.arm.gripper.actuators, slot.arm.gripper.closed, strict=False):
            index = model.actuator(f"{ROBOT}_{name}").id
            np.testing.assert_allclose(port.ramp(data, target, SUBSTEPS)[:, index], closed)


def test_targets_beyond_a_motor_s_range_end_at_it(panda_task):
    model = build_scene(panda_task, FRANKA_PANDA, cameras=False).model
    data, port = mujoco.MjData(model), RobotPort(model, ROBOT, FRANKA_PANDA)
    port.put(data, np.full(9, 99.0))
    np.testing.assert_allclose(data.ctrl[:8], model.actuator_ctrlrange[:8, 1])
