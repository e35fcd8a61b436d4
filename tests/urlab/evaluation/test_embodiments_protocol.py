"""The robots against the protocol's own tables: ids, grippers, order of joints, cameras."""

import math
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.evaluation.embodiments import ALOHA, EMBODIMENTS, FRANKA_PANDA, FRANKA_ROBOTIQ, CameraMount, Embodiment

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
