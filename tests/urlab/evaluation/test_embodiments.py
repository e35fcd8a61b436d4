"""The robots that policies drive: the tables against the models, and whether the robots can do the work."""

import math
from itertools import product
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.evaluation.camera_config import CameraMount
from urlab.evaluation.embodiments import (
    ALOHA,
    EMBODIMENTS,
    FRANKA_PANDA,
    FRANKA_ROBOTIQ,
    TABLE_TOP_Z_M,
    Arm,
    Embodiment,
)
from urlab.robots import model_path

CASES = [(one, arm) for one in EMBODIMENTS.values() for arm in one.arms]
IDS = [f"{one.name}-{arm.name}" for one, arm in CASES]
LENGTHS = {"franka_panda": 9, "franka_robotiq": 13, "aloha": 16}
STROKES_M = {"franka_panda": 0.08, "franka_robotiq": 0.085, "aloha": 0.1}
PADS = {
    "franka_panda": ("finger1_pad", "finger2_pad"),
    "franka_robotiq": ("left_pad", "right_pad"),
    "aloha": ("{arm}_finger1_pad", "{arm}_finger2_pad"),
}


class Robot:
    """An embodiment's model where evaluation puts it, at home, its links weightless to the motors."""

    def __init__(self, embodiment: Embodiment, cube: bool = False) -> None:
        self.embodiment = embodiment
        spec = mujoco.MjSpec.from_file(str(model_path(embodiment.model)))
        for body in spec.bodies[1:]:
            body.gravcomp = 1.0
        spec.body(spec.bodies[1].name).pos = embodiment.base_pos_w
        spec.option.timestep = 1 / 480
        if cube:
            body = spec.worldbody.add_body(name="cube", pos=[0.0, 0.0, 3.0])
            body.add_freejoint(name="cube")
            body.add_geom(name="cube", type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.02] * 3, mass=0.05)
        self.model: Any = spec.compile()
        self.data: Any = mujoco.MjData(self.model)
        for joint, value in zip(embodiment.joints, embodiment.home, strict=True):
            self.data.joint(joint).qpos[0] = value
        for arm in embodiment.arms:
            self.command(arm, self.angles(arm), arm.gripper.open)
        mujoco.mj_forward(self.model, self.data)

    def angles(self, arm: Arm) -> Any:
        return np.array([self.data.joint(name).qpos[0] for name in arm.joints])

    def command(self, arm: Arm, angles: Any, gripper: Any) -> None:
        names = (*arm.actuators, *arm.gripper.actuators)
        for name, value in zip(names, (*angles, *gripper), strict=False):
            self.data.actuator(name).ctrl[0] = value

    def tool(self, arm: Arm) -> Any:
        """Where the fingers meet, in the world."""
        body = self.data.body(arm.ee_body)
        return body.xpos + body.xmat.reshape(3, 3)[:, 2] * arm.tcp_offset_m

    def step(self, seconds: float = 1 / 480) -> None:
        for _ in range(round(seconds * 480)):
            mujoco.mj_step(self.model, self.data)

    def pads(self, arm: Arm) -> Any:
        names = (name.format(arm=arm.name) for name in PADS[self.embodiment.name])
        return np.array([self.data.geom(name).xpos for name in names])


@pytest.mark.parametrize("one", EMBODIMENTS.values(), ids=EMBODIMENTS)
def test_every_name_and_number_fits_the_model(one: Embodiment) -> None:
    robot = Robot(one)
    assert one.action_length == len(one.home) == LENGTHS[one.name]
    for name, value in zip(one.joints, one.home, strict=True):
        low, high = robot.model.joint(name).range
        assert low <= value <= high
    for arm in one.arms:
        assert len(arm.gripper.open) == len(arm.gripper.closed) == len(arm.gripper.joints)
        for actuator, joint in zip(arm.actuators, arm.joints, strict=True):
            assert robot.model.actuator(actuator).trnid[0] == robot.model.joint(joint).id
        base = robot.data.body(arm.base_body)
        np.testing.assert_allclose(base.xmat, np.eye(3).ravel(), atol=1e-9)
    for camera in one.cameras:
        assert camera.body is None or robot.model.body(camera.body).id
        assert np.linalg.norm(camera.quat_wxyz) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("one", "arm"), CASES, ids=IDS)
def test_at_home_the_tool_is_over_the_table_and_nothing_touches(one: Embodiment, arm: Arm) -> None:
    robot = Robot(one)
    assert robot.data.ncon == 0
    x, y, z = robot.tool(arm)
    assert -0.35 < x < 0.3
    assert abs(y) < 0.35
    assert TABLE_TOP_Z_M + 0.1 < z < TABLE_TOP_Z_M + 0.6


@pytest.mark.parametrize(("one", "arm"), CASES, ids=IDS)
def test_the_gripper_opens_by_its_stroke_and_closes_about_the_tool(one: Embodiment, arm: Arm) -> None:
    robot = Robot(one)
    robot.step(0.5)
    wide = float(np.linalg.norm(np.subtract(*robot.pads(arm))))
    robot.command(arm, robot.angles(arm), arm.gripper.closed)
    robot.step(1.0)
    shut = float(np.linalg.norm(np.subtract(*robot.pads(arm))))
    assert wide - shut == pytest.approx(STROKES_M[one.name], abs=1e-3)
    told = [robot.data.joint(name).qpos[0] for name in arm.gripper.joints]
    np.testing.assert_allclose(told, arm.gripper.closed, atol=2e-3)
    np.testing.assert_allclose(robot.pads(arm).mean(axis=0), robot.tool(arm), atol=7e-3)


def in_camera(robot: Robot, camera: CameraMount, point_w: Any) -> Any:
    """Pixel of a world point and its depth (u, v, metres), from the mount's own numbers."""
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, np.array(camera.quat_wxyz))
    origin, axes = np.array(camera.pos_m), turn.reshape(3, 3)
    if camera.body is not None:
        body = robot.data.body(camera.body)
        frame = body.xmat.reshape(3, 3)
        origin, axes = body.xpos + frame @ origin, frame @ axes
    ahead, left, up = axes.T @ (point_w - origin)
    return np.array([camera.cx - camera.fx * left / ahead, camera.cy - camera.fy * up / ahead, ahead])


@pytest.mark.parametrize(("one", "arm"), CASES, ids=IDS)
def test_cameras_have_the_work_in_their_picture(one: Embodiment, arm: Arm) -> None:
    robot = Robot(one)
    watching = [camera for camera in one.cameras if camera.body is None or camera.body == "top_camera_link"]
    carried = [camera for camera in one.cameras if camera.body in (arm.ee_body, "link7")]
    assert len(watching) + len(carried) * len(one.arms) == len(one.cameras) == 3
    workspace = [np.array([x, y, TABLE_TOP_Z_M]) for x, y in product((-0.15, 0.15), (-0.2, 0.2))]
    spots = {camera.name: workspace for camera in watching} | {camera.name: [robot.tool(arm)] for camera in carried}
    for camera in (*watching, *carried):
        for spot in spots[camera.name]:
            u, v, depth = in_camera(robot, camera, spot)
            assert depth > 0.02
            assert 0 < u < camera.width, camera.name
            assert 0 < v < camera.height, camera.name


@pytest.mark.parametrize(("one", "arm"), CASES, ids=IDS)
def test_a_grasped_cube_is_held_while_the_arm_shakes(one: Embodiment, arm: Arm) -> None:
    robot = Robot(one, cube=True)
    grasp_cube(robot, arm)
    hand, cube = robot.data.body(arm.ee_body), robot.data.body("cube")
    held = hand.xmat.reshape(3, 3).T @ (cube.xpos - hand.xpos)
    home, slips = robot.angles(arm), []
    for tick in range(3 * 480):
        robot.command(arm, home + 0.02 * np.sin(2 * np.pi * 2 * tick / 480), arm.gripper.closed)
        robot.step()
        slips.append(np.linalg.norm(hand.xmat.reshape(3, 3).T @ (cube.xpos - hand.xpos) - held))
    assert max(slips) < 0.001
    assert not robot.data.warning.number.any()


def grasp_cube(robot: Robot, arm: Arm) -> None:
    """Hold the cube between the pads, along the line from one to the other, until they have it."""
    place, home = robot.tool(arm), robot.angles(arm)
    closing = np.subtract(*robot.pads(arm))
    yaw = np.arctan2(closing[1], closing[0])
    joint = robot.data.joint("cube")
    for _ in range(240):
        robot.command(arm, home, arm.gripper.closed)
        joint.qpos[:] = [*place, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
        joint.qvel[:] = 0.0
        robot.step()
    robot.step(0.25)


@pytest.mark.parametrize(("one", "arm"), CASES, ids=IDS)
def test_targets_are_met_within_two_millimetres_of_the_tool(one: Embodiment, arm: Arm) -> None:
    robot = Robot(one)
    turns = np.array([0.3, -0.3, -0.3, 0.3, 0.3, -0.3, 0.3])
    goal = robot.angles(arm) + turns[: len(arm.joints)]
    robot.command(arm, goal, arm.gripper.open)
    robot.step(2.0)
    np.testing.assert_allclose(robot.angles(arm), goal, atol=3e-3)
    reached = robot.tool(arm).copy()
    for name, angle in zip(arm.joints, goal, strict=True):
        robot.data.joint(name).qpos[0] = angle
    mujoco.mj_kinematics(robot.model, robot.data)
    assert np.linalg.norm(robot.tool(arm) - reached) < 0.002


def solve_down(robot: Robot, arm: Arm, spot: Any) -> bool:
    """Damped least squares from where the arm is to `spot` with the tool pointing down, joints kept in their limits."""
    model, data = robot.model, robot.data
    joints = [model.joint(name) for name in arm.joints]
    dofs, places = [int(one.dofadr[0]) for one in joints], [int(one.qposadr[0]) for one in joints]
    low, high = np.array([one.range for one in joints]).T
    body, jacp, jacr = model.body(arm.ee_body).id, np.zeros((3, model.nv)), np.zeros((3, model.nv))
    error = np.ones(5)
    for _ in range(200):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        down = data.xmat[body].reshape(3, 3)[:, 2]
        error = np.concatenate([spot - robot.tool(arm), np.cross(down, [0.0, 0.0, -1.0])])
        if np.linalg.norm(error) < 1e-4:
            return bool(down[2] < 0)
        mujoco.mj_jac(model, data, jacp, jacr, robot.tool(arm), body)
        jac = np.vstack([jacp[:, dofs], jacr[:, dofs]])
        step = jac.T @ np.linalg.solve(jac @ jac.T + 1e-3 * np.eye(6), error)
        data.qpos[places] = np.clip(data.qpos[places] + np.clip(step, -0.2, 0.2), low, high)
    return False


REACH = [
    ("franka_panda", "arm", (-0.2, 0.2), (-0.3, 0.3)),
    ("franka_robotiq", "arm", (-0.2, 0.2), (-0.3, 0.3)),
    ("aloha", "left", (-0.25, 0.15), (-0.08, 0.35)),
    ("aloha", "right", (-0.25, 0.15), (-0.35, 0.08)),
]


@pytest.mark.parametrize(("name", "side", "x_range", "y_range"), REACH)
def test_the_workspace_is_reached_with_the_tool_down(name: str, side: str, x_range: Any, y_range: Any) -> None:
    one = EMBODIMENTS[name]
    arm = next(arm for arm in one.arms if arm.name == side)
    robot = Robot(one)
    home = robot.model.key("home").qpos
    for x, y, height in product(np.linspace(*x_range, 5), np.linspace(*y_range, 5), (0.02, 0.15)):
        robot.data.qpos[:] = home
        spot = np.array([x, y, TABLE_TOP_Z_M + height])
        assert solve_down(robot, arm, spot), f"{name} {side} cannot reach {spot}"
        mujoco.mj_collision(robot.model, robot.data)
        assert robot.data.ncon == 0, f"{name} {side} collides with itself at {spot}"


WATCHING = {
    "obs_camera": ((0.65, 0.0, 1.85), (0.0, -0.42261829, 0.0, 0.90630777), 4.5 / 6.4 * 640),
    "obs_camera_2": ((-0.60, -0.75, 1.85), (0.83057843, -0.1464534, 0.34536953, 0.41159539), 4.5 / 6.4 * 640),
}
"""World position, orientation (+X forward, +Z up), and the focal length in pixels: mm of lens and film, pixels."""
USD_TO_WORLD_AXES = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]])
"""Its columns are forward, left and up of a camera that looks along -Z with +Y up."""


def matrix(quat_wxyz: Any) -> Any:
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, np.array(quat_wxyz) / np.linalg.norm(quat_wxyz))
    return turn.reshape(3, 3)


def camera(one: Embodiment, name: str) -> CameraMount:
    return next(mount for mount in one.cameras if mount.name == name)


@pytest.mark.parametrize(
    ("one", "robot_id", "wide", "shut"),
    [
        (FRANKA_PANDA, "manip/franka/panda_hand", [0.04] * 2, [0.0] * 2),
        (FRANKA_ROBOTIQ, "manip/franka/robotiq", [0.0] * 6, [0.7853] * 2 + [-0.7853] * 4),
        (ALOHA, "manip/mobile_aloha/piper", [0.05] * 2, [0.0] * 2),
    ],
    ids=EMBODIMENTS,
)
def test_ids_and_grippers_are_the_protocols(one: Embodiment, robot_id: str, wide: Any, shut: Any) -> None:
    assert one.robot_id == robot_id
    for arm in one.arms:
        assert (list(arm.gripper.open), list(arm.gripper.closed)) == (wide, shut)
    assert one.max_joint_speed_rad_s == 2.0


def test_joints_come_in_the_protocols_order() -> None:
    robotiq = [name.removesuffix("_joint") for name in FRANKA_ROBOTIQ.arms[0].gripper.joints]
    followers = ["left_inner_knuckle", "right_inner_knuckle", "right_inner_finger", "left_inner_finger"]
    assert robotiq == ["finger", "right_outer_knuckle", *followers]
    sides = [name.partition("_")[0] for name in ALOHA.joints]
    assert sides == ["left"] * 8 + ["right"] * 8
    assert ALOHA.base_pos_w == (-0.65, 0.0, 0.3)


@pytest.mark.parametrize("one", [FRANKA_PANDA, FRANKA_ROBOTIQ], ids=lambda one: one.name)
@pytest.mark.parametrize("name", WATCHING)
def test_the_watching_cameras_are_the_protocols(one: Embodiment, name: str) -> None:
    mount, (pos, quat_wxyz, focal_px) = camera(one, name), WATCHING[name]
    assert mount.body is None
    assert (mount.pos_m, mount.quat_wxyz) == (pos, quat_wxyz)
    assert (mount.fx, mount.fy) == pytest.approx((focal_px, focal_px))


def test_the_pandas_wrist_camera_is_the_protocols() -> None:
    mount = camera(FRANKA_PANDA, "realsense")
    assert (mount.body, mount.pos_m) == ("hand", (0.03, 0.0, 0.025))
    assert mount.quat_wxyz == (0.0, 0.70710678, 0.0, 0.70710678)
    assert mount.fx == pytest.approx(4.5 / 10 * 640)


def test_the_robotiqs_wrist_camera_is_where_the_protocol_has_it_from_the_flange() -> None:
    """The flange (link 8) is 107 mm from link 7 along its z."""
    mount = camera(FRANKA_ROBOTIQ, "realsense")
    assert mount.body == "link7"
    assert mount.pos_m == pytest.approx((0.07405, -0.032, 0.107 + 0.02149))
    assert mount.quat_wxyz == (0.0, 0.572857, 0.0, 0.819655)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_alohas_wrist_cameras_are_the_protocols_turned_a_quarter_about_the_tool(side: str) -> None:
    mount = camera(ALOHA, f"{side}_camera")
    quarter = matrix((math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)))
    protocol = matrix((0.0, 0.0, -0.9763, -0.21644)) @ USD_TO_WORLD_AXES
    np.testing.assert_allclose(matrix(mount.quat_wxyz), quarter @ protocol, atol=1e-4)
    assert mount.body == f"{side}_link6"
    assert mount.fx == pytest.approx(3.0 / 6.4 * 640)


def test_the_alohas_top_camera_has_the_protocols_lens() -> None:
    mount = camera(ALOHA, "top_camera")
    assert mount.body == "top_camera_link"
    assert mount.fx == pytest.approx(3.0 / 8.4 * 640, abs=1e-4)


@pytest.mark.parametrize("one", EMBODIMENTS.values(), ids=EMBODIMENTS)
def test_all_pictures_are_640_by_480_with_square_pixels_about_the_middle(one: Embodiment) -> None:
    for mount in one.cameras:
        assert (mount.width, mount.height, mount.cx, mount.cy) == (640, 480, 320.0, 240.0)
        assert mount.fx == mount.fy


def test_the_slots_cover_an_action_in_order_without_gaps(embodiment):
    entries = np.arange(embodiment.action_length)
    covered = [part for slot in embodiment.slots for part in (*entries[slot.joints], *entries[slot.gripper])]
    assert covered == list(entries)


def test_a_slot_holds_the_joints_of_its_own_arm(embodiment):
    for slot in embodiment.slots:
        assert embodiment.joints[slot.joints] == slot.arm.joints
        assert embodiment.joints[slot.gripper] == slot.arm.gripper.joints
