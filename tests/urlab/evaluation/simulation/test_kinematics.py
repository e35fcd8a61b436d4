"""Forward kinematics against MuJoCo's own, inverse against forward."""

from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.evaluation.embodiments import FRANKA_PANDA
from urlab.evaluation.simulation.kinematics import ACCEPTED_M, ACCEPTED_RAD, EePose, Kinematics
from urlab.robots import model_path


@pytest.fixture(scope="module")
def kinematics(embodiment):
    return Kinematics(embodiment)


@pytest.fixture
def panda():
    (arm,) = Kinematics(FRANKA_PANDA).arms
    return arm


@pytest.fixture
def poses_tried(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """How many poses were computed since the last time that one asked."""
    poses, compute = [], mujoco.mj_kinematics

    def count(model: Any, data: Any) -> None:
        poses.append(1)
        compute(model, data)

    monkeypatch.setattr(mujoco, "mj_kinematics", count)

    def ask() -> Iterator[int]:
        while True:
            yield len(poses)
            poses.clear()

    return ask()


def turned_by(a, b):
    """The angle between two orientations."""
    return 2 * np.arccos(min(1.0, abs(float(a @ b))))


def misses(arm, joints, wanted):
    found = arm.pose(joints)
    return np.linalg.norm(found.pos - wanted.pos), turned_by(found.quat_wxyz, wanted.quat_wxyz)


def samples(arm, count, *, away):
    rng = np.random.default_rng(11)
    for _ in range(count):
        joints = rng.uniform(arm.low, arm.high)
        yield arm.pose(joints), arm.clipped(joints + rng.uniform(0, away) * rng.uniform(-1, 1, len(joints)))


def test_a_hand_is_where_mujoco_says_in_the_frame_of_its_base(embodiment, kinematics):
    model = mujoco.MjModel.from_xml_path(str(model_path(embodiment.model)))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    joints = np.array(embodiment.home)
    for slot, arm in zip(embodiment.slots, kinematics.arms, strict=True):
        joints[slot.joints] = rng.uniform(arm.low, arm.high)
    for name, value in zip(embodiment.joints, joints, strict=True):
        data.joint(name).qpos = value
    mujoco.mj_kinematics(model, data)
    for arm, found in zip(embodiment.arms, kinematics.ee_poses(joints), strict=True):
        base, hand = data.body(arm.base_body), data.body(arm.ee_body)
        rotation = base.xmat.reshape(3, 3).T @ hand.xmat.reshape(3, 3)
        np.testing.assert_allclose(found.pos, base.xmat.reshape(3, 3).T @ (hand.xpos - base.xpos), atol=1e-12)
        matrix = np.empty(9)
        mujoco.mju_quat2Mat(matrix, found.quat_wxyz)
        np.testing.assert_allclose(matrix.reshape(3, 3), rotation, atol=1e-12)


def test_every_pose_that_joints_reach_is_found_from_nearby(kinematics):
    arm, missed = kinematics.arms[0], []
    for wanted, seed in samples(arm, 100, away=0.3):
        found = arm.solve(wanted, seed)
        assert found.is_reached
        assert np.array_equal(found.joints, arm.clipped(found.joints))
        missed.append(misses(arm, found.joints, wanted))
    assert (np.max(missed, axis=0) <= (ACCEPTED_M, ACCEPTED_RAD)).all()
    assert (np.quantile(missed, 0.95, axis=0) < (1e-4, 1e-3)).all()


def test_a_solution_stays_near_its_seed(panda):
    for wanted, seed in samples(panda, 50, away=0.02):
        assert np.abs(panda.solve(wanted, seed).joints - seed).max() < 0.05


def test_most_poses_are_found_from_anywhere(kinematics):
    arm = kinematics.arms[0]
    found = [arm.solve(wanted, (arm.low + arm.high) / 2).is_reached for wanted, _ in samples(arm, 60, away=0.0)]
    assert np.mean(found) > 0.9


def test_a_pose_out_of_reach_is_said_to_be_so(kinematics):
    arm = kinematics.arms[0]
    found = arm.solve(EePose(np.array([3.0, 0.0, 0.5]), np.array([0.0, 1.0, 0.0, 0.0])), (arm.low + arm.high) / 2)
    assert not found.is_reached
    assert (found.joints >= arm.low).all()
    assert (found.joints <= arm.high).all()


def test_what_is_too_far_away_for_any_joints_is_not_tried(kinematics, poses_tried):
    for arm in kinematics.arms:
        far = EePose(np.array([0.0, 0.0, 9.0]), np.array([1.0, 0.0, 0.0, 0.0]))
        assert not arm.solve(far, arm.low).is_reached
    assert next(poses_tried) == 0


def test_what_is_said_to_be_reached_is_within_what_is_accepted(panda):
    """Poses from well inside to outside the workspace: the flag never lies."""
    seed = np.array(FRANKA_PANDA.home[:7])
    start, outcomes = panda.pose(seed), []
    for distance in np.linspace(0.0, 0.8, 20):
        wanted = EePose(np.add(start.pos, [distance, 0.0, 0.0]), start.quat_wxyz)
        found = panda.solve(wanted, seed)
        away, turned = misses(panda, found.joints, wanted)
        assert found.is_reached == (away <= ACCEPTED_M and turned <= ACCEPTED_RAD)
        outcomes.append(found.is_reached)
    assert outcomes[0]
    assert not outcomes[-1]


def test_the_same_question_has_the_same_answer_bit_for_bit(panda):
    other = Kinematics(FRANKA_PANDA).arms[0]
    questions = list(samples(panda, 20, away=3.0))
    answers = [panda.solve(*question).joints for question in questions]
    for question, answer in reversed(list(zip(questions, answers, strict=True))):
        assert np.array_equal(panda.solve(*question).joints, answer)
        assert np.array_equal(other.solve(*question).joints, answer)


def test_a_seed_beyond_the_limits_does_no_harm(panda):
    wanted = panda.pose(np.array(FRANKA_PANDA.home[:7]))
    assert panda.solve(wanted, panda.high + 1.0).is_reached


def test_a_usual_question_is_answered_after_a_few_poses(panda, poses_tried):
    questions = list(samples(panda, 50, away=0.05))
    next(poses_tried)
    tried = []
    for question in questions:
        panda.solve(*question)
        tried.append(next(poses_tried))
    assert max(tried) <= 5
