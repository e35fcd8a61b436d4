"""When an episode ends because the robot is in no state for it."""

import numpy as np
import pytest

from urlab.evaluation.embodiments import FRANKA_PANDA
from urlab.evaluation.simulation.episode import StateGuard

HOME = np.array(FRANKA_PANDA.home)


def ends(embodiment, end):
    """Home, with all grippers open or closed."""
    joints = np.array(embodiment.home)
    for slot in embodiment.slots:
        joints[slot.gripper] = getattr(slot.arm.gripper, end)
    return joints


@pytest.fixture
def guard():
    guard = StateGuard(FRANKA_PANDA)
    guard.reset(HOME)
    return guard


def changed(index, value):
    joints = HOME.copy()
    joints[index] = value
    return joints


def test_every_gripper_may_open_and_close_at_once(embodiment):
    guard = StateGuard(embodiment)
    guard.reset(ends(embodiment, "open"))
    for end in ("closed", "open", "closed", "open"):
        assert guard.check(ends(embodiment, end)) is None


@pytest.mark.parametrize(
    ("index", "value", "reason"),
    [
        (0, np.nan, "non_finite_arm_state"),
        (6, np.inf, "non_finite_arm_state"),
        (7, np.nan, "non_finite_gripper_state"),
        (8, -np.inf, "non_finite_gripper_state"),
        (0, 10.1, "arm_out_of_range"),
        (0, -10.1, "arm_out_of_range"),
        (0, HOME[0] + 1.01, "arm_jump"),
        (0, HOME[0] + 0.99, None),
        (7, -0.011, "gripper_out_of_range"),
        (7, -0.009, None),
        (8, 0.051, "gripper_out_of_range"),
        (8, 0.049, None),
    ],
)
def test_the_limits_of_the_panda_are_the_protocol_s(guard, index, value, reason):
    assert guard.check(changed(index, value)) == reason


def test_a_finger_that_jumps_farther_than_it_can_travel_ends_the_episode(guard):
    assert guard.check(changed(7, -0.009)) is None
    assert guard.check(changed(7, 0.045)) == "gripper_jump"


def test_jumps_are_counted_from_the_step_before(guard):
    for angle in (0.9, 1.8, 2.7):
        assert guard.check(changed(0, angle)) is None
    assert guard.check(changed(0, 0.0)) == "arm_jump"


def test_a_reset_is_no_jump(guard):
    guard.reset(changed(0, 2.5))
    assert guard.check(changed(0, 2.6)) is None


def test_a_simulation_that_came_apart_ends_the_episode(guard):
    assert guard.check(HOME, is_stable=False) == "unstable_physics"
    assert guard.check(HOME) is None
