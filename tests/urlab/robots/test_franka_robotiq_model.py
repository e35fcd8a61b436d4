"""The arm with the 2F-85 gripper: the Panda's arm to the last number, and a gripper that moves as the real one does."""

import mujoco
import numpy as np
import pytest

from urlab.robots import model_path

ARM = [f"joint{i}" for i in range(1, 8)]
FINGERS = [
    "finger_joint", "right_outer_knuckle_joint", "left_inner_knuckle_joint",
    "right_inner_knuckle_joint", "right_inner_finger_joint", "left_inner_finger_joint",
]  # fmt: skip
SIGNS = np.array([1.0, 1.0, -1.0, -1.0, -1.0, -1.0])
CLOSED = 0.7853


def load(name):
    model = mujoco.MjModel.from_xml_path(str(model_path(name)))
    return model, mujoco.MjData(model)


@pytest.fixture
def robotiq():
    model, data = load("franka_robotiq")
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    mujoco.mj_forward(model, data)
    return model, data


def drive(model, data, angle, seconds=1.0):
    data.actuator("gripper").ctrl = angle
    for _ in range(int(seconds / model.opt.timestep)):
        mujoco.mj_step(model, data)
    return np.array([data.joint(name).qpos[0] for name in FINGERS])


def pads(model, data):
    """Inner faces of the pads (left, right) in the gripper's frame, and the pads' inward normals there."""
    frame = data.body("gripper").xmat.reshape(3, 3)
    faces, normals = [], []
    for side in ("left", "right"):
        pad = data.geom(f"{side}_pad")
        inward = -pad.xmat.reshape(3, 3)[:, 1]
        face = pad.xpos + inward * model.geom(f"{side}_pad").size[1]
        faces.append(frame.T @ (face - data.body("gripper").xpos))
        normals.append(frame.T @ inward)
    return np.array(faces), np.array(normals)


def test_the_arm_moves_as_the_panda_does(robotiq):
    model, data = robotiq
    panda, panda_data = load("panda")
    rng = np.random.default_rng(3)
    low, high = panda.jnt_range[:7].T
    for angles in rng.uniform(low, high, size=(20, 7)):
        for one, state in ((model, data), (panda, panda_data)):
            for name, angle in zip(ARM, angles, strict=True):
                state.joint(name).qpos = angle
            mujoco.mj_kinematics(one, state)
        for body in (*(f"link{i}" for i in range(8)), "hand"):
            np.testing.assert_allclose(data.body(body).xpos, panda_data.body(body).xpos, atol=1e-9)
            np.testing.assert_allclose(data.body(body).xmat, panda_data.body(body).xmat, atol=1e-9)


def test_the_arm_has_the_pandas_limits_gains_and_inertias(robotiq):
    model, _ = robotiq
    panda, _ = load("panda")
    for name in ARM:
        joint, same = model.joint(name), panda.joint(name)
        for field in ("range", "armature", "damping", "axis"):
            np.testing.assert_array_equal(getattr(joint, field), getattr(same, field))
        actuator, twin = model.actuator(name), panda.actuator(name)
        for field in ("ctrlrange", "forcerange", "gainprm", "biasprm"):
            np.testing.assert_array_equal(getattr(actuator, field), getattr(twin, field))
    for body in (f"link{i}" for i in range(8)):
        for field in ("mass", "ipos", "inertia"):
            np.testing.assert_array_equal(getattr(model.body(body), field), getattr(panda.body(body), field))


def test_the_gripper_weighs_what_is_published(robotiq):
    model, _ = robotiq
    assert model.body("hand").subtreemass[0] == pytest.approx(0.925, abs=0.03)


def test_the_pose_in_the_file_is_the_home_pose_and_nothing_touches(robotiq):
    model, data = robotiq
    np.testing.assert_allclose(model.qpos0, model.key("home").qpos)
    assert data.ncon == 0


@pytest.mark.parametrize(("angle", "gap"), [(0.0, 0.085), (CLOSED, 0.0)])
def test_the_pads_are_85_mm_apart_when_open_and_meet_when_closed(robotiq, angle, gap):
    model, data = robotiq
    drive(model, data, angle)
    (left, right), _ = pads(model, data)
    assert left[1] - right[1] == pytest.approx(gap, abs=5e-4)
    np.testing.assert_allclose(left[[0, 2]], right[[0, 2]], atol=2e-4)


@pytest.mark.parametrize("angle", [0.0, 0.2, 0.5, CLOSED])
def test_six_joints_move_as_one_and_the_pads_stay_parallel(robotiq, angle):
    model, data = robotiq
    np.testing.assert_allclose(drive(model, data, angle), SIGNS * angle, atol=2e-3)
    _, normals = pads(model, data)
    np.testing.assert_allclose(normals, [[0.0, -1.0, 0.0], [0.0, 1.0, 0.0]], atol=2e-3)


def test_the_joints_stay_coupled_while_the_fingers_move(robotiq):
    model, data = robotiq
    worst = 0.0
    for _ in range(50):
        worst = max(worst, float(np.ptp(drive(model, data, CLOSED, 0.01) * SIGNS)))
    assert worst < 5e-3


def test_the_fingertips_travel_forward_when_they_close(robotiq):
    model, data = robotiq
    (before, _), _ = pads(model, data)
    drive(model, data, CLOSED)
    (after, _), _ = pads(model, data)
    assert after[2] - before[2] == pytest.approx(0.0138, abs=5e-4)


def test_the_inner_knuckles_end_at_the_inner_fingers_as_in_a_parallelogram(robotiq):
    model, data = robotiq
    offsets = []
    for angle in (0.0, 0.4, CLOSED):
        drive(model, data, angle)
        knuckle = data.body("left_inner_knuckle")
        end = knuckle.xpos + knuckle.xmat.reshape(3, 3) @ [0.0, 0.0376, 0.04454]
        offsets.append(end - data.body("left_inner_finger").xpos)
    np.testing.assert_allclose(offsets, [offsets[0]] * 3, atol=2e-4)


@pytest.mark.parametrize("width", [0.02, 0.04, 0.07])
def test_the_squeeze_is_within_what_the_gripper_can_do(robotiq, width):
    model, data = robotiq
    spec = mujoco.MjSpec.from_file(str(model_path("franka_robotiq")))
    block = spec.body("gripper").add_body(name="block", pos=[0.0, 0.0, 0.14])
    block.add_geom(name="block", type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.02, width / 2, 0.02])
    model = spec.compile()
    data = mujoco.MjData(model)
    drive(model, data, CLOSED)
    force, total = np.zeros(6), 0.0
    for index in range(data.ncon):
        mujoco.mj_contactForce(model, data, index, force)
        total += force[0]
    assert 2 * 20.0 < total < 2 * 235.0


def test_home_is_held_under_gravity_to_a_milliradian(robotiq):
    model, data = robotiq
    for _ in range(1000):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(data.qpos, model.key("home").qpos, atol=1e-3)
    assert not data.warning.number.any()


@pytest.mark.parametrize("goal", [[0.6, -0.3, 0.4, -1.8, -0.5, 1.9, 0.1], [0.0, 1.0, 0.0, -0.9, 0.0, 1.9, 0.785]])
def test_the_arm_reaches_its_targets_to_a_few_milliradians(robotiq, goal):
    model, data = robotiq
    data.ctrl[:7] = goal
    for _ in range(1500):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(data.qpos[:7], goal, atol=3e-3)


def test_the_wrist_sensor_feels_the_weight_of_the_gripper(robotiq):
    model, data = robotiq
    for _ in range(500):
        mujoco.mj_step(model, data)
    weight = model.body("hand").subtreemass[0] * 9.81
    assert np.linalg.norm(data.sensor("wrist_force").data) == pytest.approx(weight, rel=0.02)
