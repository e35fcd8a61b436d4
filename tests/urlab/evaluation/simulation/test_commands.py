"""The memory rules, one by one: what relative actions add to."""

import math

import mujoco
import numpy as np
import pytest

from urlab.evaluation.embodiments import EMBODIMENTS, FRANKA_PANDA
from urlab.evaluation.simulation.kinematics import Kinematics
from urlab.evaluation.simulation.simulation import CommandMemory

ALOHA = EMBODIMENTS["aloha"]
READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785, 0.04, 0.04])
ELSEWHERE = READY + 0.1
STILL = [1.0, 0.0, 0.0, 0.0]
OPEN, SHUT = [0.04, 0.04], [0.0, 0.0]


@pytest.fixture
def kinematics():
    return Kinematics(FRANKA_PANDA)


@pytest.fixture
def memory(kinematics):
    memory = CommandMemory(FRANKA_PANDA, kinematics)
    memory.reset(READY)
    return memory


@pytest.fixture
def joints(memory, act):
    """``joints(numbers, is_rel, measured)``: apply it, with the arm measured somewhere else than commanded."""

    def apply(numbers, is_rel=True, measured=ELSEWHERE):
        return memory.apply(act(FRANKA_PANDA, "joint_position", numbers, is_rel), measured)

    return apply


@pytest.fixture
def ee(memory, act):
    """The same for poses of the hand."""

    def apply(pos, quat=STILL, grip=OPEN, is_rel=True, measured=READY):
        return memory.apply(act(FRANKA_PANDA, "ee_pose", (pos, quat, grip), is_rel), measured)

    return apply


@pytest.fixture
def hand(kinematics):
    """Where the hand is for a vector of joints."""
    return lambda joints: kinematics.ee_poses(joints)[0]


def matrix(quat):
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, np.asarray(quat))
    return rotation.reshape(3, 3)


def same_turn(a, b):
    return abs(float(np.dot(a, b))) == pytest.approx(1.0, abs=1e-6)


def test_a_relative_joint_action_adds_to_the_last_command_not_to_what_is_measured(joints):
    delta = np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.0, 0.0])
    np.testing.assert_allclose(joints(delta)[:7], (READY + delta)[:7])
    np.testing.assert_allclose(joints(delta, measured=READY * 0)[:7], (READY + 2 * delta)[:7])


def test_the_first_relative_action_adds_to_the_joints_measured_at_reset(memory, joints):
    memory.reset(ELSEWHERE)
    np.testing.assert_array_equal(joints([0.0] * 7 + OPEN, measured=READY)[:7], ELSEWHERE[:7])


@pytest.mark.parametrize("is_rel", [True, False])
def test_a_gripper_s_numbers_replace_the_ones_before(joints, is_rel):
    for grip in ([0.01, 0.02], [0.01, 0.02], [0.03, 0.0]):
        np.testing.assert_array_equal(joints([0.0] * 7 + grip, is_rel)[7:], grip)


def test_an_absolute_joint_action_is_the_command(joints):
    np.testing.assert_array_equal(joints(ELSEWHERE, is_rel=False, measured=READY), ELSEWHERE)
    np.testing.assert_allclose(joints([0.1] * 7 + SHUT, measured=READY)[:7], ELSEWHERE[:7] + 0.1)


def test_a_sum_beyond_the_limits_is_remembered(joints):
    far = joints([3.0] * 7 + OPEN)
    np.testing.assert_allclose(far[:7], READY[:7] + 3.0)
    np.testing.assert_allclose(joints([-3.0] * 7 + OPEN)[:7], READY[:7])


def test_the_command_cannot_be_changed_from_outside(memory, joints):
    joints([0.1] * 7 + OPEN)[:] = 99.0
    memory.joints[:] = 99.0
    np.testing.assert_allclose(memory.joints[:7], READY[:7] + 0.1)


def test_a_relative_pose_without_rotation_moves_along_the_axes_of_the_base(ee, hand):
    before, after = hand(READY), hand(ee([0.02, -0.03, 0.01]))
    np.testing.assert_allclose(after.pos, np.add(before.pos, [0.02, -0.03, 0.01]), atol=1e-4)
    assert same_turn(after.quat_wxyz, before.quat_wxyz)


def test_a_relative_rotation_also_turns_the_position_about_the_base(ee, hand):
    angle = 0.3
    turn = [math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)]
    before, after = hand(READY), hand(ee([0.0, 0.0, 0.05], turn))
    np.testing.assert_allclose(after.pos, matrix(turn) @ np.add(before.pos, [0.0, 0.0, 0.05]), atol=1e-4)
    np.testing.assert_allclose(matrix(after.quat_wxyz), matrix(turn) @ matrix(before.quat_wxyz), atol=1e-3)
    assert np.linalg.norm(after.pos - before.pos) > 0.1


def test_relative_poses_add_to_the_last_command_wherever_the_arm_is(ee, hand):
    start = hand(READY).pos
    for count in range(1, 6):
        after = hand(ee([0.01, 0.0, 0.0], measured=READY + 0.02 * count))
        np.testing.assert_allclose(after.pos, np.add(start, [0.01 * count, 0.0, 0.0]), atol=1e-4)


def test_an_absolute_pose_is_the_command_and_deltas_add_to_it(ee, hand):
    pos, quat = [0.45, 0.1, 0.4], [0.0, 1.0, 0.0, 0.0]
    after = hand(ee(pos, quat, is_rel=False))
    np.testing.assert_allclose(after.pos, pos, atol=1e-4)
    assert same_turn(after.quat_wxyz, quat)
    np.testing.assert_allclose(hand(ee([0.0, 0.05, 0.0])).pos, [0.45, 0.15, 0.4], atol=1e-4)


def test_out_of_reach_the_arm_holds_its_measured_joints_and_the_gripper_still_obeys(memory, ee):
    targets = ee([5.0, 0.0, 0.0], grip=[0.01, 0.01], measured=ELSEWHERE)
    np.testing.assert_array_equal(targets[:7], ELSEWHERE[:7])
    np.testing.assert_array_equal(targets[7:], [0.01, 0.01])
    assert memory.is_held == (True,)


def test_a_pose_out_of_reach_is_remembered(memory, ee, hand):
    start = hand(READY).pos
    ee([5.0, 0.0, 0.0])
    ee([-4.0, 0.0, 0.0])
    assert memory.is_held == (True,)
    after = hand(ee([-0.95, 0.0, 0.0]))
    assert memory.is_held == (False,)
    np.testing.assert_allclose(after.pos, np.add(start, [0.05, 0.0, 0.0]), atol=1e-4)


def test_joints_after_a_pose_add_to_the_joints_that_were_sent(joints, ee):
    sent = ee([0.03, 0.0, 0.0])
    np.testing.assert_allclose(joints([0.1] * 7 + OPEN)[:7], sent[:7] + 0.1)


def test_joints_after_a_pose_out_of_reach_add_to_the_joints_held(joints, ee):
    ee([5.0, 0.0, 0.0], measured=ELSEWHERE)
    np.testing.assert_allclose(joints([0.1] * 7 + OPEN, measured=READY)[:7], ELSEWHERE[:7] + 0.1)


def test_a_pose_after_joints_adds_to_the_pose_of_the_commanded_joints(joints, ee, hand):
    ee([5.0, 0.0, 0.0])
    commanded = joints([0.0, 0.1, 0.0, 0.1, 0.0, 0.0, 0.0, *OPEN])
    after = hand(ee([0.0, 0.0, 0.02]))
    np.testing.assert_allclose(after.pos, np.add(hand(commanded).pos, [0.0, 0.0, 0.02]), atol=1e-4)


def test_a_pose_after_joints_beyond_their_limits_adds_to_the_pose_at_the_limits(kinematics, joints, ee, hand):
    commanded = joints([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0, *OPEN])
    (arm,) = kinematics.arms
    at_limit = arm.pose(arm.clipped(commanded[:7]))
    after = hand(ee([0.0, 0.0, -0.02]))
    np.testing.assert_allclose(after.pos, np.add(at_limit.pos, [0.0, 0.0, -0.02]), atol=1e-4)
    assert same_turn(after.quat_wxyz, at_limit.quat_wxyz)


def test_a_reset_forgets_everything(memory, ee, hand):
    ee([5.0, 0.0, 0.0])
    memory.reset(READY)
    assert memory.is_held == (False,)
    np.testing.assert_allclose(hand(ee([0.0, 0.0, 0.01])).pos, np.add(hand(READY).pos, [0.0, 0.0, 0.01]), atol=1e-4)


def test_two_arms_are_commanded_each_by_itself(act):
    kinematics = Kinematics(ALOHA)
    memory, home = CommandMemory(ALOHA, kinematics), np.array(ALOHA.home)
    memory.reset(home)
    grips = [list(arm.gripper.closed) for arm in ALOHA.arms]
    moved = ([0.0, 0.0, 0.03], STILL, grips[0]), ([5.0, 0.0, 0.0], STILL, grips[1])
    targets = memory.apply(act(ALOHA, "ee_pose", moved), home)
    before, after = kinematics.ee_poses(home), kinematics.ee_poses(targets)
    assert memory.is_held == (False, True)
    np.testing.assert_allclose(after[0].pos, np.add(before[0].pos, [0.0, 0.0, 0.03]), atol=1e-4)
    np.testing.assert_array_equal(targets[8:14], home[8:14])
    np.testing.assert_array_equal(targets[[6, 7, 14, 15]], [*grips[0], *grips[1]])


def test_a_relative_joint_action_moves_every_arm_of_every_robot(embodiment, act):
    memory, home = CommandMemory(embodiment, Kinematics(embodiment)), np.array(embodiment.home)
    memory.reset(home)
    delta, expected, start = [], [], 0
    for arm in embodiment.arms:
        middle = start + len(arm.joints)
        delta += [0.01] * len(arm.joints) + list(arm.gripper.closed)
        expected += [*(home[start:middle] + 0.02), *arm.gripper.closed]
        start = middle + len(arm.gripper.joints)
    action = act(embodiment, "joint_position", delta)
    memory.apply(action, home)
    np.testing.assert_allclose(memory.apply(action, home), expected)
