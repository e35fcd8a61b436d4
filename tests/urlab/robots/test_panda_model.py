"""The shipped arm against the manufacturer's published numbers, and its behaviour under gravity."""

import mujoco
import numpy as np
import pytest

from urlab.robots import model_path

ARM = [f"joint{i}" for i in range(1, 8)]
HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])

# The published modified DH table: a, d, alpha of joints 1..7, then the flange offset.
DH = [
    (0.0, 0.333, 0.0),
    (0.0, 0.0, -np.pi / 2),
    (0.0, 0.316, np.pi / 2),
    (0.0825, 0.0, np.pi / 2),
    (-0.0825, 0.384, -np.pi / 2),
    (0.0, 0.0, np.pi / 2),
    (0.088, 0.0, np.pi / 2),
]
FLANGE = 0.107


def flange_by_dh(angles):
    pose = np.eye(4)
    for (a, d, alpha), theta in zip(DH, angles, strict=True):
        ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
        pose = pose @ np.array(
            [
                [ct, -st, 0.0, a],
                [st * ca, ct * ca, -sa, -d * sa],
                [st * sa, ct * sa, ca, d * ca],
                [0.0, 0.0, 0.0, 1.0],
            ]
        )
    offset = np.eye(4)
    offset[2, 3] = FLANGE
    return pose @ offset


@pytest.fixture
def panda():
    model = mujoco.MjModel.from_xml_path(str(model_path("panda")))
    return model, mujoco.MjData(model)


def at_home(model, data):
    mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
    mujoco.mj_forward(model, data)


def test_the_flange_is_where_the_published_dh_table_puts_it(panda):
    model, data = panda
    rng = np.random.default_rng(7)
    low, high = model.jnt_range[:7].T
    for angles in [HOME, *rng.uniform(low, high, size=(20, 7))]:
        data.qpos[:7] = angles
        mujoco.mj_kinematics(model, data)
        expected = flange_by_dh(angles)
        np.testing.assert_allclose(data.site("flange").xpos, expected[:3, 3], atol=1e-6)
        np.testing.assert_allclose(data.site("flange").xmat.reshape(3, 3), expected[:3, :3], atol=1e-6)


def test_the_grasp_centre_sits_straight_below_the_flange_between_the_pads(panda):
    model, data = panda
    at_home(model, data)
    np.testing.assert_allclose(data.site("ee").xpos - data.site("flange").xpos, [0.0, 0.0, -0.1034], atol=1e-3)
    pads = (data.geom("finger1_pad").xpos + data.geom("finger2_pad").xpos) / 2
    np.testing.assert_allclose(pads, data.site("ee").xpos, atol=0.006)


def test_joint_and_effort_limits_are_the_published_ones(panda):
    model, _ = panda
    published = [
        (-2.8973, 2.8973),
        (-1.7628, 1.7628),
        (-2.8973, 2.8973),
        (-3.0718, -0.0698),
        (-2.8973, 2.8973),
        (-0.0175, 3.7525),
        (-2.8973, 2.8973),
    ]
    for name, limits, effort in zip(ARM, published, [87.0] * 4 + [12.0] * 3, strict=True):
        np.testing.assert_allclose(model.joint(name).range, limits)
        np.testing.assert_allclose(model.actuator(name).ctrlrange, limits)
        np.testing.assert_allclose(model.actuator(name).forcerange, [-effort, effort])
        assert model.joint(name).limited
        assert model.actuator(name).ctrllimited
    np.testing.assert_allclose(model.actuator("gripper").ctrlrange, [0.0, 0.04])
    np.testing.assert_allclose(model.numeric("joint_velocity_limit").data, [2.175] * 4 + [2.61] * 3)


def test_the_arm_with_its_hand_weighs_what_is_published(panda):
    model, _ = panda
    assert model.body_mass.sum() == pytest.approx(18.0, abs=1.0)
    assert sum(model.body(n).mass[0] for n in ("hand", "finger1", "finger2")) == pytest.approx(0.73, abs=0.05)


def test_the_pose_in_the_file_is_the_home_pose(panda):
    model, _ = panda
    np.testing.assert_allclose(model.qpos0, model.key("home").qpos)
    np.testing.assert_allclose(model.qpos0[:7], HOME)
    np.testing.assert_allclose(model.key("home").ctrl, [*HOME, 0.04])


def test_nothing_touches_in_the_home_pose(panda):
    model, data = panda
    at_home(model, data)
    assert data.ncon == 0


@pytest.mark.parametrize("reach", [HOME, [0.4, 0.9, 0.0, -1.0, 0.0, 1.9, 0.785]], ids=["home", "stretched"])
def test_the_arm_holds_its_pose_within_a_tenth_of_a_millimetre_under_gravity(panda, reach):
    model, data = panda
    at_home(model, data)
    data.qpos[:7] = data.ctrl[:7] = reach
    mujoco.mj_forward(model, data)
    start = data.site("ee").xpos.copy()
    worst = 0.0
    for _ in range(1000):
        mujoco.mj_step(model, data)
        worst = max(worst, float(np.linalg.norm(data.site("ee").xpos - start)))
    assert worst < 1e-4
    assert np.abs(data.qvel).max() < 1e-3
    assert np.all(np.abs(data.actuator_force[:7]) < [87.0] * 4 + [12.0] * 3)


def test_the_arm_reaches_a_new_pose_it_is_sent_to(panda):
    model, data = panda
    at_home(model, data)
    goal = np.array([0.6, -0.3, 0.4, -1.8, -0.5, 1.9, 0.1])
    data.ctrl[:7] = goal
    for _ in range(1500):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(data.qpos[:7], goal, atol=0.02)


def test_the_fingers_move_together_and_close(panda):
    model, data = panda
    at_home(model, data)
    data.ctrl[model.actuator("gripper").id] = 0.0
    apart = 0.0
    for _ in range(500):
        mujoco.mj_step(model, data)
        apart = max(apart, abs(data.joint("finger_joint1").qpos[0] - data.joint("finger_joint2").qpos[0]))
    assert apart < 5e-4
    assert data.joint("finger_joint1").qpos[0] == pytest.approx(0.0, abs=1e-3)


def test_the_wrist_sensor_feels_the_weight_of_the_hand(panda):
    model, data = panda
    at_home(model, data)
    for _ in range(500):
        mujoco.mj_step(model, data)
    carried = sum(model.body(n).mass[0] for n in ("hand", "finger1", "finger2"))
    force = np.linalg.norm(data.sensor("wrist_force").data)
    assert force == pytest.approx(carried * 9.81, rel=0.02)


def test_the_cameras_see_the_gripper_side_and_the_work_area(panda):
    model, data = panda
    at_home(model, data)
    for name in ("wrist", "overhead"):
        np.testing.assert_array_equal(model.cam_resolution[model.camera(name).id], [640, 480])
    for name, spot in (("wrist", data.site("ee").xpos), ("overhead", np.array([0.5, 0.0, 0.4]))):
        camera = data.camera(name)
        in_view = camera.xmat.reshape(3, 3).T @ (spot - camera.xpos)
        half_height = np.tan(np.radians(model.cam_fovy[model.camera(name).id]) / 2)
        assert in_view[2] < 0.0
        assert abs(in_view[1] / in_view[2]) < half_height


def solve_pose(model, data, prefix, spot, start):
    """Return arm angles that put the grasp centre at `spot`, pointing straight down."""
    scratch = mujoco.MjData(model)
    scratch.qpos[:] = data.qpos
    site = model.site(prefix + "ee").id
    qpos = [model.joint(prefix + name).qposadr[0] for name in ARM]
    dofs = [model.joint(prefix + name).dofadr[0] for name in ARM]
    wanted = np.diag([1.0, -1.0, -1.0])
    scratch.qpos[qpos] = start
    jacp, jacr = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    for _ in range(100):
        mujoco.mj_kinematics(model, scratch)
        mujoco.mj_comPos(model, scratch)
        now = scratch.site_xmat[site].reshape(3, 3)
        turn = sum(np.cross(now[:, i], wanted[:, i]) for i in range(3)) / 2
        error = np.concatenate([spot - scratch.site_xpos[site], turn])
        mujoco.mj_jacSite(model, scratch, jacp, jacr, site)
        jac = np.vstack([jacp[:, dofs], jacr[:, dofs]])
        scratch.qpos[qpos] += jac.T @ np.linalg.solve(jac @ jac.T + 1e-4 * np.eye(6), error)
    assert np.linalg.norm(error) < 1e-3
    return scratch.qpos[qpos].copy()


def test_the_gripper_picks_up_a_box_and_holds_it(compose):
    model = compose(
        [
            {"blueprint": "floor", "name": "floor", "location": [0.0, 0.0, 0.0]},
            {"blueprint": "table", "name": "table", "location": [0.62, 0.0, 0.0]},
            {"blueprint": "panda", "name": "panda", "location": [0.0, 0.0, 0.0]},
            {"blueprint": "box", "name": "box", "location": [0.45, 0.05, 0.425]},
        ]
    )
    data = mujoco.MjData(model)
    arm = [model.actuator("panda_" + name).id for name in ARM]
    gripper = model.actuator("panda_gripper").id
    above = solve_pose(model, data, "panda_", np.array([0.45, 0.05, 0.55]), HOME)
    around = solve_pose(model, data, "panda_", np.array([0.45, 0.05, 0.43]), above)
    box = data.body("box_box")

    def move(start, goal, opening, seconds):
        steps = int(seconds / model.opt.timestep)
        for step in range(steps):
            data.ctrl[arm] = start + (goal - start) * min(1.0, 1.5 * step / steps)
            data.ctrl[gripper] = opening
            mujoco.mj_step(model, data)

    move(HOME, above, 0.04, 1.0)
    move(above, around, 0.04, 1.0)
    assert np.linalg.norm(box.xpos - [0.45, 0.05, 0.425]) < 0.005
    move(around, around, 0.0, 0.5)
    move(around, above, 0.0, 1.0)
    lifted = box.xpos.copy()
    assert lifted[2] > 0.525
    move(above, above, 0.0, 2.0)
    assert np.linalg.norm(box.xpos - lifted) < 0.005
    move(above, above, 0.04, 1.0)
    assert box.xpos[2] == pytest.approx(0.425, abs=0.002)
