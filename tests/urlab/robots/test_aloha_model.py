"""The two-armed stand: kinematics against a DH table, its grippers, and how well it holds where it is told to be."""

import mujoco
import numpy as np
import pytest

from urlab.robots import model_path

SIDES = ("left", "right")
HOME = np.array([0.0, 1.76, -0.48, 0.0, 0.37806, 0.0])
LIMITS = [(-2.618, 2.618), (0.0, 3.14), (-2.967, 0.0), (-1.745, 1.745), (-1.22, 1.22), (-2.0944, 2.0944)]

# The Piper's published modified DH table (a, d, alpha, offset of theta), with the two long links of ours.
DH = [
    (0.0, 0.123, 0.0, 0.0),
    (0.0, 0.0, -np.pi / 2, -np.radians(172.22)),
    (0.36, 0.0, 0.0, -np.radians(102.78)),
    (-0.022, 0.31, np.pi / 2, 0.0),
    (0.0, 0.0, -np.pi / 2, 0.0),
    (0.0, 0.091, np.pi / 2, 0.0),
]


def link6_by_dh(angles):
    pose = np.eye(4)
    for (a, d, alpha, offset), angle in zip(DH, angles, strict=True):
        ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(angle + offset), np.sin(angle + offset)
        pose = pose @ np.array(
            [
                [ct, -st, 0.0, a],
                [st * ca, ct * ca, -sa, -d * sa],
                [st * sa, ct * sa, ca, d * ca],
                [0.0, 0.0, 0.0, 1.0],
            ]
        )
    return pose


@pytest.fixture
def aloha():
    model = mujoco.MjModel.from_xml_path(str(model_path("aloha")))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    mujoco.mj_forward(model, data)
    return model, data


def run(model, data, seconds):
    for _ in range(int(seconds / model.opt.timestep)):
        mujoco.mj_step(model, data)


def angles_of(data, side):
    return np.array([data.joint(f"{side}_joint{i}").qpos[0] for i in range(1, 7)])


def gap(model, data, side):
    """Distance between the inner faces of the pads."""
    between = data.geom(f"{side}_finger1_pad").xpos - data.geom(f"{side}_finger2_pad").xpos
    return float(np.linalg.norm(between)) - 2 * model.geom(f"{side}_finger1_pad").size[1]


@pytest.mark.parametrize("side", SIDES)
def test_link6_is_where_the_dh_table_puts_it(aloha, side):
    model, data = aloha
    rng = np.random.default_rng(11)
    low, high = np.array(LIMITS).T
    for angles in [np.zeros(6), HOME, *rng.uniform(low, high, size=(20, 6))]:
        for i, angle in enumerate(angles, 1):
            data.joint(f"{side}_joint{i}").qpos = angle
        mujoco.mj_kinematics(model, data)
        base, link = data.body(f"{side}_base"), data.body(f"{side}_link6")
        expected = link6_by_dh(angles)
        np.testing.assert_allclose(link.xpos - base.xpos, expected[:3, 3], atol=1e-6)
        np.testing.assert_allclose(link.xmat.reshape(3, 3), expected[:3, :3], atol=1e-6)


@pytest.mark.parametrize("side", SIDES)
def test_joint_limits_are_the_published_ones(aloha, side):
    model, _ = aloha
    for i, limits in enumerate(LIMITS, 1):
        np.testing.assert_allclose(model.joint(f"{side}_joint{i}").range, limits)
        np.testing.assert_allclose(model.actuator(f"{side}_joint{i}").ctrlrange, limits)
        assert model.actuator(f"{side}_joint{i}").forcelimited
    for i in (1, 2):
        np.testing.assert_allclose(model.joint(f"{side}_finger_joint{i}").range, [0.0, 0.05])
    np.testing.assert_allclose(model.actuator(f"{side}_gripper").ctrlrange, [0.0, 0.05])


def test_the_arms_are_mirror_images_of_each_other(aloha):
    _, data = aloha
    for body in ("base", "link3", "link6"):
        left, right = (data.body(f"{side}_{body}").xpos for side in SIDES)
        np.testing.assert_allclose(left * [1, -1, 1], right, atol=1e-9)


def test_the_pose_in_the_file_is_the_home_pose_with_the_tools_down(aloha):
    model, data = aloha
    np.testing.assert_allclose(model.qpos0, model.key("home").qpos)
    np.testing.assert_allclose(model.qpos0[:6], HOME)
    assert data.ncon == 0
    for side in SIDES:
        np.testing.assert_allclose(data.site(f"{side}_ee").xmat.reshape(3, 3)[:, 2], [0.0, 0.0, -1.0], atol=1e-4)


def test_the_folded_zero_pose_is_free_of_contacts(aloha):
    model, data = aloha
    data.qpos[:] = 0.0
    mujoco.mj_forward(model, data)
    assert data.ncon == 0


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("finger", "expected"), [(0.05, 0.1), (0.02, 0.04), (0.0, 0.0)])
def test_the_fingers_open_by_what_they_are_told(aloha, side, finger, expected):
    model, data = aloha
    data.actuator(f"{side}_gripper").ctrl = finger
    run(model, data, 1.0)
    for i in (1, 2):
        assert data.joint(f"{side}_finger_joint{i}").qpos[0] == pytest.approx(finger, abs=5e-4)
    assert gap(model, data, side) == pytest.approx(expected, abs=1e-3)


def test_home_is_held_under_gravity_to_a_milliradian(aloha):
    model, data = aloha
    run(model, data, 2.0)
    np.testing.assert_allclose(data.qpos, model.key("home").qpos, atol=1e-3)
    assert np.abs(data.qvel).max() < 1e-3
    assert not data.warning.number.any()


@pytest.mark.parametrize("goal", [[0.5, 2.4, -1.6, 0.3, 0.6, -0.8], [0.9, 1.2, -1.0, -0.5, -0.4, 1.0]])
def test_both_arms_reach_their_targets_to_a_milliradian(aloha, goal):
    model, data = aloha
    mirrored = np.array(goal) * [-1, 1, 1, -1, 1, -1]
    data.ctrl[:6], data.ctrl[7:13] = goal, mirrored
    run(model, data, 2.0)
    np.testing.assert_allclose(angles_of(data, "left"), goal, atol=1e-3)
    np.testing.assert_allclose(angles_of(data, "right"), mirrored, atol=1e-3)


def test_one_arm_moving_fast_leaves_the_other_where_it_is(aloha):
    model, data = aloha
    data.actuator("left_joint1").ctrl = 1.5
    run(model, data, 1.0)
    np.testing.assert_allclose(angles_of(data, "right"), HOME, atol=1e-3)
