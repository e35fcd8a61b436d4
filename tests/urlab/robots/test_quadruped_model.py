"""The shipped walking robot: its parts, and whether it stands under its own controller."""

import tomllib

import mujoco
import numpy as np
import pytest

from urlab.robots import model_path

FEET = ("FL", "FR", "RL", "RR")
PARTS = ("hip", "thigh", "calf")


@pytest.fixture
def standing(compose, drive_legs):
    model = compose(
        [
            {"blueprint": "floor", "name": "floor", "location": [0.0, 0.0, 0.0]},
            {"blueprint": "quadruped", "name": "dog", "location": [0.0, 0.0, 0.0]},
        ]
    )
    return model, mujoco.MjData(model), drive_legs(model, "dog_")


@pytest.fixture
def alone():
    return mujoco.MjModel.from_xml_path(str(model_path("quadruped")))


def tilt(quat):
    upward = np.zeros(3)
    mujoco.mju_rotVecQuat(upward, np.array([0.0, 0.0, 1.0]), quat)
    return float(np.arccos(np.clip(upward[2], -1.0, 1.0)))


def test_it_weighs_about_twelve_kilograms_and_has_twelve_motors_named_after_their_joints(alone):
    assert alone.body_mass.sum() == pytest.approx(12.0, abs=0.5)
    joints = [alone.joint(i).name for i in range(alone.njnt)]
    assert joints == ["root", *(f"{leg}_{part}" for leg in FEET for part in PARTS)]
    assert [alone.actuator(i).name for i in range(alone.nu)] == joints[1:]
    np.testing.assert_allclose(alone.actuator_gear[:, 0], 1.0)
    np.testing.assert_allclose(alone.actuator_ctrlrange, np.tile([-45.0, 45.0], (12, 1)))
    assert alone.joint("root").type[0] == mujoco.mjtJoint.mjJNT_FREE


def test_left_and_right_are_mirror_images(alone):
    data = mujoco.MjData(alone)
    mujoco.mj_forward(alone, data)
    for left, right in (("FL", "FR"), ("RL", "RR")):
        for part in ("hip", "thigh", "calf"):
            a, b = f"{left}_{part}_link", f"{right}_{part}_link"
            np.testing.assert_allclose(data.body(a).xipos * [1, -1, 1], data.body(b).xipos, atol=1e-9)
            assert alone.body(a).mass == alone.body(b).mass


def test_the_feet_just_touch_the_ground_in_the_home_pose(alone):
    data = mujoco.MjData(alone)
    mujoco.mj_resetDataKeyframe(alone, data, alone.key("home").id)
    np.testing.assert_allclose(data.qpos, alone.qpos0)
    np.testing.assert_allclose(data.ctrl, data.qpos[7:])
    mujoco.mj_forward(alone, data)
    assert data.ncon == 0
    for foot in FEET:
        geom = data.geom(f"{foot}_foot")
        assert geom.xpos[2] - alone.geom(f"{foot}_foot").size[0] == pytest.approx(0.0, abs=1e-3)


def test_the_sidecar_asks_for_a_joint_controller_and_takes_twists():
    sidecar = tomllib.loads(model_path("quadruped").with_name("quadruped.urlab.toml").read_text())
    assert sidecar["twist"] is True
    assert sidecar["controller"]["kind"] == "pd"
    assert set(sidecar["controller"]["params"]) == {"default_kp", "default_kv", "default_torque_limit"}


def test_it_stands_upright_for_two_seconds(standing):
    model, data, legs = standing
    mujoco.mj_forward(model, data)
    start = data.body("dog_trunk").xpos.copy()
    for _ in range(1000):
        legs.apply(data)
        mujoco.mj_step(model, data)
        moved = data.body("dog_trunk").xpos - start
        assert abs(moved[2]) < 0.02
        assert tilt(data.body("dog_trunk").xquat) < 0.05
    assert np.linalg.norm(moved[:2]) < 0.02
    assert np.abs(data.qvel).max() < 0.01


def test_it_comes_to_rest_after_a_push(standing):
    model, data, legs = standing
    for step in range(1500):
        data.body("dog_trunk").xfrc_applied[:] = [0, 40, 0, 0, 0, 0] if 250 <= step < 300 else 0
        legs.apply(data)
        mujoco.mj_step(model, data)
    assert tilt(data.body("dog_trunk").xquat) < 0.1
    assert data.body("dog_trunk").xpos[2] > 0.28
    assert np.abs(data.qvel).max() < 0.02


def test_the_touch_sensors_carry_its_weight_and_the_imu_feels_gravity(standing):
    model, data, legs = standing
    for _ in range(1000):
        legs.apply(data)
        mujoco.mj_step(model, data)
    carried = sum(data.sensor(f"dog_{foot}_foot_touch").data[0] for foot in FEET)
    assert carried == pytest.approx(12.0 * 9.81, rel=0.02)
    np.testing.assert_allclose(data.sensor("dog_imu_acc").data, [0, 0, 9.81], atol=0.2)
    np.testing.assert_allclose(data.sensor("dog_imu_gyro").data, 0.0, atol=0.01)
    assert tilt(data.sensor("dog_imu_quat").data) < 0.05


def test_without_torque_it_falls(standing):
    model, data, _ = standing
    for _ in range(500):
        mujoco.mj_step(model, data)
    assert data.body("dog_trunk").xpos[2] < 0.2


def test_the_front_camera_looks_ahead(alone):
    data = mujoco.MjData(alone)
    mujoco.mj_forward(alone, data)
    forward = -data.camera("front").xmat.reshape(3, 3)[:, 2]
    assert forward[0] > 0.95
    assert forward[1] == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_array_equal(alone.cam_resolution[0], [640, 480])


@pytest.mark.parametrize("spot", [(0.0, 0.0), (-0.5, 0.2), (0.6, -0.4), (0.2, 0.8)])
def test_it_stands_anywhere_on_the_hills(compose, drive_legs, spot):
    model = compose(
        [
            {"blueprint": "terrain", "name": "terrain", "location": [0.0, 0.0, 0.0]},
            {"blueprint": "quadruped", "name": "dog", "location": [*spot, 0.12]},
        ]
    )
    data, legs = mujoco.MjData(model), drive_legs(model, "dog_")
    for _ in range(1000):
        legs.apply(data)
        mujoco.mj_step(model, data)
    assert tilt(data.body("dog_trunk").xquat) < 0.35
    assert data.body("dog_trunk").xpos[2] > 0.27
    assert np.abs(data.qvel).max() < 0.05
