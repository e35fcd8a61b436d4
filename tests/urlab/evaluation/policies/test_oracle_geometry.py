"""What skills are made of: hands measured on models, ways, surfaces, and motions."""

import itertools
import math

import mujoco
import numpy as np
import pytest

from urlab.evaluation.embodiments import EMBODIMENTS, FRANKA_PANDA, Embodiment
from urlab.evaluation.policies.oracle.hand import FASTEST_M_S, Hand, Motion, measure_tools, move, together, travel, wait
from urlab.evaluation.policies.oracle.world import bottom_z, from_above, grasps, surface_z, top_z, yaw_of
from urlab.evaluation.simulation.kinematics import Kinematics
from urlab.evaluation.tasks.task import find_task
from urlab.geometry import Pose, rotate, wxyz_from_axis_angle
from urlab.robots import model_path


def panda_hand() -> Hand:
    hand = Hand(FRANKA_PANDA.arms[0], measure_tools(FRANKA_PANDA)[0], Kinematics(FRANKA_PANDA).arms[0])
    home = np.array(FRANKA_PANDA.home[:7])
    pose = Kinematics(FRANKA_PANDA).arms[0].pose(home)
    hand.begin([pose.pos, pose.quat_wxyz], home)
    return hand


def follow(hand: Hand, motion: Motion) -> list[Pose]:
    """The commands of a motion whose hand is always where it was told to be."""
    path = [hand.command]
    for _ in motion:
        hand.measured = hand.command
        path.append(hand.command)
    return path


@pytest.mark.parametrize("embodiment", EMBODIMENTS.values(), ids=EMBODIMENTS.keys())
def test_the_fingers_of_every_robot_close_along_y_of_its_tool(embodiment: Embodiment) -> None:
    model = mujoco.MjModel.from_xml_path(str(model_path(embodiment.model)))
    for arm, tool in zip(embodiment.arms, measure_tools(embodiment), strict=True):
        pads = [name for name in _geoms(model) if name.endswith("pad") and _is_of(model, name, arm.ee_body)]
        tips = []
        for opening in (arm.gripper.open, arm.gripper.closed):
            data = mujoco.MjData(model)
            for joint, value in zip(arm.gripper.joints, opening, strict=True):
                data.joint(joint).qpos[0] = value
            mujoco.mj_kinematics(model, data)
            ee = data.body(arm.ee_body)
            in_tool = Pose.of(ee.xpos, ee.xquat).apply(tool.in_ee).inverse()
            tips.append([in_tool.apply(Pose(tuple(data.geom(pad).xpos))).pos for pad in pads])
        (a, b), (shut_a, shut_b) = tips
        assert max(abs(a[0]), abs(b[0])) < 1e-3, "seen along y, the pads are in the middle"
        assert a[1] * b[1] < 0
        assert min(abs(a[1]), abs(b[1])) > 0.03
        assert max(abs(shut_a[1]), abs(shut_b[1])) < 0.015
        assert tool.longest_m == pytest.approx(max(tool.reaches_m))
        assert 0.005 < tool.longest_m < 0.03


def test_the_action_of_a_hand_is_the_pose_that_the_arm_has_there() -> None:
    hand = panda_hand()
    pos, quat, gripper = hand.action()
    expected = Kinematics(FRANKA_PANDA).arms[0].pose(np.array(FRANKA_PANDA.home[:7]))
    assert pos == pytest.approx(expected.pos, abs=1e-9)
    assert abs(np.dot(quat, expected.quat_wxyz)) == pytest.approx(1.0)
    assert gripper == (0.04, 0.04)
    hand.opening = 0.0
    assert hand.action()[2] == (0.0, 0.0)


def test_a_grasp_from_above_points_down_and_closes_along_its_yaw() -> None:
    pose = from_above((0.1, 0.2, 1.1), math.radians(30))
    assert rotate(pose.quat_wxyz, (0, 0, 1)) == pytest.approx((0, 0, -1))
    x, y, _ = rotate(pose.quat_wxyz, (0, 1, 0))
    assert math.degrees(math.atan2(y, x)) % 180 == pytest.approx(30)
    yaws = sorted(math.degrees(yaw_of(way)) % 360 for way in grasps((0, 0, 1), 0.2, any_quarter=True))
    assert np.diff(yaws) == pytest.approx([90, 90, 90])


def test_effort_is_infinite_where_the_arm_does_not_reach() -> None:
    hand = panda_hand()
    near, far = from_above((0.0, 0.1, 1.1), 0.0), from_above((0.6, 0.0, 1.1), 0.0)
    assert 0 < hand.effort([near]) < math.pi
    assert hand.effort([far]) == math.inf
    assert hand.effort([near, far]) == math.inf


def test_a_move_is_straight_smooth_and_no_faster_than_allowed() -> None:
    hand = panda_hand()
    start, end = hand.command, hand.command.raised(-0.2)
    path = follow(hand, move(hand, end))
    strides = [a.distance_m(b) for a, b in itertools.pairwise(path)]
    assert max(strides) <= FASTEST_M_S / 30 + 1e-9
    assert strides[0] < 0.2 * max(strides)
    assert strides[-1] < 0.2 * max(strides)
    assert path[-1].distance_m(end) < 1e-12
    assert all(start.distance_m(one) + one.distance_m(end) == pytest.approx(0.2) for one in path)


def test_travelling_goes_over_what_is_in_the_way() -> None:
    hand = panda_hand()
    hand.command = hand.measured = from_above((-0.1, -0.1, 1.05), 0.0)
    end = from_above((0.1, 0.1, 1.05), 1.0)
    path = follow(hand, travel(hand, end, 1.3))
    middle = min(path, key=lambda pose: abs(pose.pos[0]))
    assert middle.pos[2] == pytest.approx(1.3)
    assert path[-1].distance_m(end) < 1e-9
    assert path[-1].angle_rad(end) < 1e-6


def test_motions_together_last_as_long_as_the_longest() -> None:
    assert len(list(together(wait(3), wait(8), wait(0)))) == 8


def test_surfaces_are_the_floors_of_containers_and_the_tops_of_solids() -> None:
    bin_spec = find_task("robotiq_collect_blocks").objects["crate"]
    pose = Pose((0.1, 0.2, 1.03), wxyz_from_axis_angle((0, 0, 1), 0.5))
    assert surface_z(bin_spec.links[0], pose, 0.1, 0.2) == pytest.approx(1.0 + 0.006)
    assert top_z(bin_spec, pose) == pytest.approx(1.06)
    assert bottom_z(bin_spec, pose) == pytest.approx(1.0)
    cube = find_task("panda_stack_cubes").objects["large"]
    assert surface_z(cube.links[0], Pose((0, 0, 1.025)), 0.01, 0.0) == pytest.approx(1.05)


def _geoms(model: mujoco.MjModel) -> list[str]:
    return [model.geom(number).name for number in range(model.ngeom)]


def _is_of(model: mujoco.MjModel, geom: str, ancestor: str) -> bool:
    body = int(model.geom(geom).bodyid[0])
    while body:
        if model.body(body).name == ancestor:
            return True
        body = int(model.body_parentid[body])
    return False
