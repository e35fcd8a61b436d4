"""The physics behind an episode: it repeats itself, obeys actions, and holds what it grasps."""

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from urlab.evaluation.embodiments import FRANKA_PANDA
from urlab.evaluation.goals import sample_layout
from urlab.evaluation.simulation.scene import ROBOT, build_scene
from urlab.evaluation.simulation.simulation import ObjectPort, RobotPort, Simulation
from urlab.evaluation.tasks.task import TaskError, load_task
from urlab.geometry import Pose
from urlab.scene.randomisation import parse_randomisation

DOWN = [0.0, 1.0, 0.0, 0.0]
OPEN, SHUT = [0.04, 0.04], [0.0, 0.0]


@pytest.fixture
def wave(act):
    """Actions of both kinds that keep every joint moving, and close the grippers on the way."""

    def actions(embodiment, count):
        rng = np.random.default_rng(5)
        for number in range(count):
            grips = [arm.gripper.closed if number % 10 > 5 else arm.gripper.open for arm in embodiment.arms]
            joints = [(*rng.normal(0.0, 0.02, len(arm.joints)), *grips[i]) for i, arm in enumerate(embodiment.arms)]
            poses = [(rng.normal(0.0, 0.003, 3), [1.0, *rng.normal(0.0, 0.003, 3)], grip) for grip in grips]
            if number % 2:
                yield act(embodiment, "joint_position", [value for part in joints for value in part])
            else:
                yield act(embodiment, "ee_pose", poses if len(poses) > 1 else poses[0])

    return actions


def trace(simulation, layout, actions):
    """Everything that can be seen of an episode, as it goes on."""
    simulation.reset(layout)
    for action in actions:
        yield simulation.joints.tobytes(), simulation.objects, simulation.object_joints, simulation.is_held
        simulation.step(action)
    yield simulation.joints.tobytes(), simulation.objects, simulation.object_joints, simulation.is_held


def test_two_simulations_and_two_episodes_are_the_same_bit_for_bit(every_simulation, task, embodiment, layout, wave):
    actions = list(wave(embodiment, 30))
    first = list(trace(every_simulation, layout, actions))
    other = Simulation(task, embodiment, cameras=True)
    assert list(trace(other, layout, actions)) == first
    assert list(trace(every_simulation, layout, actions)) == first
    other.close()


def test_what_a_task_draws_depends_on_the_seed():
    cube_on_plate = load_task(Path(__file__).parents[1] / "cube_on_plate.toml")
    table = {"kind": "body", "name": "cube", "field": "density_scale", "distribution": "uniform", "low": 2, "high": 3}
    task = replace(cube_on_plate, randomize=parse_randomisation({"heavy": table}))
    assert task.digest != cube_on_plate.digest
    simulation = Simulation(task, FRANKA_PANDA, cameras=False)
    plain = Simulation(cube_on_plate, FRANKA_PANDA, cameras=False)
    mass = plain._engine.model.body("cube").mass
    seen = []
    for seed in (4, 5, 4):
        simulation.reset(sample_layout(cube_on_plate, seed=seed))
        (drawn,) = simulation._draws.changes
        assert simulation._engine.model.body("cube").mass == mass * drawn.value[0]
        seen.append(drawn.value)
    assert seen[0] == seen[2] != seen[1]
    broken = replace(task, randomize=parse_randomisation({"heavy": {**table, "name": "sphere"}}))
    with pytest.raises(TaskError, match="there is no body 'sphere'"):
        Simulation(broken, FRANKA_PANDA, cameras=False)
    for one in (simulation, plain):
        one.close()


def test_after_a_reset_everything_lies_where_the_layout_says(every_simulation, layout):
    for name, pose in every_simulation.objects.items():
        np.testing.assert_allclose(pose.pos, layout.poses[name].pos, atol=1e-4)
        np.testing.assert_allclose(pose.quat_wxyz, layout.poses[name].quat_wxyz, atol=1e-4)
    assert every_simulation.object_joints["cabinet"]["drawer"] == pytest.approx(0.06, abs=1e-4)
    assert every_simulation.is_stable


def test_what_hangs_in_the_air_has_fallen_when_the_episode_begins(panda_simulation, layout):
    panda_simulation.reset(replace(layout, poses={**layout.poses, "block": Pose((-0.05, 0.05, 1.1))}))
    assert panda_simulation.objects["block"].pos[2] == pytest.approx(1.025, abs=1e-3)


def test_the_command_after_a_reset_is_what_is_measured(every_simulation):
    np.testing.assert_array_equal(every_simulation.commanded_joints, every_simulation.joints)


def test_every_arm_and_gripper_follows_an_absolute_joint_action(every_simulation, embodiment, act):
    target = np.array(embodiment.home)
    for slot in embodiment.slots:
        target[slot.joints] += 0.05
        target[slot.gripper] = slot.arm.gripper.closed
    action = act(embodiment, "joint_position", target, is_rel=False)
    for _ in range(40):
        every_simulation.step(action)
    np.testing.assert_allclose(every_simulation.joints, target, atol=0.02)
    for slot in embodiment.slots:
        np.testing.assert_allclose(every_simulation.joints[slot.joints], target[slot.joints], atol=2e-3)


def test_every_hand_follows_relative_poses(every_simulation, embodiment, act):
    before = every_simulation.ee_poses
    still = [1.0, 0.0, 0.0, 0.0]
    parts = [([0.0, 0.0, 0.004], still, arm.gripper.open) for arm in embodiment.arms]
    rest = [([0.0, 0.0, 0.0], still, arm.gripper.open) for arm in embodiment.arms]
    for part in [parts] * 10 + [rest] * 20:
        every_simulation.step(act(embodiment, "ee_pose", part if len(part) > 1 else part[0]))
        assert not any(every_simulation.is_held)
    for old, new in zip(before, every_simulation.ee_poses, strict=True):
        np.testing.assert_allclose(new.pos - old.pos, [0.0, 0.0, 0.04], atol=2e-3)
        assert abs(new.quat_wxyz @ old.quat_wxyz) == pytest.approx(1.0, abs=1e-4)


def test_no_joint_goes_faster_than_it_may(panda_simulation, act):
    target = np.array(FRANKA_PANDA.home)
    target[0] += 2.0
    action, before = act(FRANKA_PANDA, "joint_position", target, is_rel=False), panda_simulation.joints
    for _ in range(30):
        panda_simulation.step(action)
        joints = panda_simulation.joints
        assert np.abs(joints - before)[:7].max() < 1.02 * FRANKA_PANDA.max_joint_speed_rad_s / 30
        before = joints


def test_an_arm_that_is_told_to_go_too_far_stays_and_says_so(panda_simulation, act):
    before = panda_simulation.joints
    for _ in range(5):
        panda_simulation.step(act(FRANKA_PANDA, "ee_pose", ([3.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], SHUT)))
        assert panda_simulation.is_held == (True,)
    np.testing.assert_allclose(panda_simulation.joints[:7], before[:7], atol=1e-3)
    assert panda_simulation.joints[7:].max() < 0.03


def hand_over(pos_w):
    """The Panda's hand, in the frame of its base, such that the fingers meet at a place in the world."""
    up = np.array([0.0, 0.0, FRANKA_PANDA.arms[0].tcp_offset_m])
    return (np.array(pos_w) - FRANKA_PANDA.base_pos_w + up).tolist()


def test_a_grasped_block_is_lifted_and_hardly_creeps(panda_simulation, layout, act):
    x, y, z = layout.poses["block"].pos

    def go(height, grip, steps):
        action = act(FRANKA_PANDA, "ee_pose", (hand_over((x, y, height)), DOWN, grip), is_rel=False)
        for _ in range(steps):
            panda_simulation.step(action)

    go(1.2, OPEN, 60)
    go(z, OPEN, 40)
    go(z, SHUT, 20)
    go(1.2, SHUT, 60)

    def in_hand():
        return np.array(panda_simulation.objects["block"].pos) - panda_simulation.ee_poses[0].pos

    before = in_hand()
    assert panda_simulation.objects["block"].pos[2] == pytest.approx(1.2, abs=5e-3)
    go(1.2, SHUT, 90)
    np.testing.assert_allclose(in_hand(), before, atol=2e-4)
    assert panda_simulation.is_stable


def test_what_is_done_to_an_object_is_seen(panda_simulation, layout, act):
    x, y, z = layout.poses["block"].pos

    def go(height, grip, steps):
        action = act(FRANKA_PANDA, "ee_pose", (hand_over((x, y, height)), DOWN, grip), is_rel=False)
        for _ in range(steps):
            panda_simulation.step(action)

    go(1.2, OPEN, 60)
    go(z, OPEN, 40)
    handling = panda_simulation.handling
    assert (handling.touched_by, handling.is_moving) == ({}, frozenset())
    assert handling.moved_m["block"] < 1e-3
    go(z, SHUT, 20)
    assert panda_simulation.handling.touched_by == {"block": {"arm"}}
    go(1.2, SHUT, 15)
    assert panda_simulation.handling.is_moving == {"block"}
    go(1.2, SHUT, 60)
    handling = panda_simulation.handling
    assert (handling.touched_by, handling.is_moving) == ({"block": {"arm"}}, frozenset())
    assert handling.moved_m["block"] == pytest.approx(1.2 - z, abs=5e-3)
    assert handling.moved_m["tin"] < 1e-3
    go(1.2, OPEN, 5)
    handling = panda_simulation.handling
    assert (handling.touched_by, handling.is_moving) == ({}, {"block"})


def test_a_drawer_can_be_pushed_shut(panda_simulation, layout, act):
    """The cabinet stands across the robot's way: the closed hand comes down before it and moves along its axis."""
    cabinet = layout.poses["cabinet"]
    handle = cabinet.apply(Pose((-0.1 - 0.05 - 0.06 - 0.03, 0.0, 0.05))).pos
    shut = cabinet.apply(Pose((-0.1 - 0.05 - 0.02, 0.0, 0.05))).pos
    for where, steps in (((handle[0], handle[1], 1.3), 60), (handle, 40), (shut, 40)):
        action = act(FRANKA_PANDA, "ee_pose", (hand_over(where), DOWN, SHUT), is_rel=False)
        for _ in range(steps):
            panda_simulation.step(action)
    assert panda_simulation.object_joints["cabinet"]["drawer"] < 0.04
    np.testing.assert_allclose(panda_simulation.objects["cabinet"].pos, cabinet.pos)


def test_a_simulation_that_comes_apart_says_so_until_the_next_reset(panda_simulation, layout, act):
    panda_simulation._engine.data.qvel[:] = 1e12
    panda_simulation.step(act(FRANKA_PANDA, "joint_position", [0.0] * 7 + OPEN))
    assert not panda_simulation.is_stable
    panda_simulation.reset(layout)
    assert panda_simulation.is_stable


def test_without_cameras_there_is_nothing_to_see(panda_simulation):
    assert panda_simulation.render() == {}


def test_it_may_be_closed_twice(panda_task):
    simulation = Simulation(panda_task, FRANKA_PANDA, cameras=True)
    simulation.close()
    simulation.close()


SUBSTEPS = 16


@pytest.fixture(scope="module")
def model(task, embodiment):
    return build_scene(task, embodiment, cameras=False).model


@pytest.fixture
def data(model):
    return mujoco.MjData(model)


@pytest.fixture
def port(model, embodiment):
    return RobotPort(model, ROBOT, embodiment)


def motor(model, data, name):
    return data.ctrl[model.actuator(f"{ROBOT}_{name}").id]


def test_joints_are_read_in_the_order_of_actions(data, port, embodiment):
    for number, joint in enumerate(embodiment.joints):
        data.joint(f"{ROBOT}_{joint}").qpos = number
    assert port.joints(data).tolist() == list(range(embodiment.action_length))


def test_joints_are_a_copy(data, port):
    port.joints(data)[:] = 99.0
    assert port.joints(data).max() < 99.0


def test_a_robot_that_is_put_somewhere_is_told_to_stay(model, data, port, embodiment):
    port.put(data, np.array(embodiment.home))
    np.testing.assert_array_equal(port.joints(data), embodiment.home)
    for slot in embodiment.slots:
        for name, value in zip(slot.arm.actuators, np.array(embodiment.home)[slot.joints], strict=True):
            assert motor(model, data, name) == value
        for name, value in zip(slot.arm.gripper.actuators, np.array(embodiment.home)[slot.gripper], strict=False):
            assert motor(model, data, name) == value


def test_an_arm_s_setpoints_move_at_the_greatest_joint_speed(model, data, port, embodiment):
    home = np.array(embodiment.home)
    port.put(data, home)
    target = home.copy()
    first = embodiment.slots[0]
    target[first.joints.start] += 0.5
    index = model.actuator(f"{ROBOT}_{first.arm.actuators[0]}").id
    controls = port.ramp(data, target, SUBSTEPS)
    steps = np.diff(controls[:, index], prepend=home[first.joints.start])
    np.testing.assert_allclose(steps, embodiment.max_joint_speed_rad_s / 480)
    others = [number for number in range(model.nu) if number != index]
    np.testing.assert_array_equal(controls[:, others], np.tile(data.ctrl[others], (SUBSTEPS, 1)))


def test_a_setpoint_stops_at_its_target(model, data, port, embodiment):
    home = np.array(embodiment.home)
    port.put(data, home)
    start = embodiment.slots[0].joints.start
    target = home.copy()
    target[start] += 0.01
    index = model.actuator(f"{ROBOT}_{embodiment.arms[0].actuators[0]}").id
    assert port.ramp(data, target, SUBSTEPS)[-1, index] == pytest.approx(target[start])


def test_a_gripper_s_setpoint_goes_there_at_once(model, data, port, embodiment):
    port.put(data, np.array(embodiment.home))
    target = np.array(embodiment.home)
    for slot in embodiment.slots:
        target[slot.gripper] = slot.arm.gripper.closed
    for slot in embodiment.slots:
        for name, closed in zip(slot.arm.gripper.actuators, slot.arm.gripper.closed, strict=False):
            index = model.actuator(f"{ROBOT}_{name}").id
            np.testing.assert_allclose(port.ramp(data, target, SUBSTEPS)[:, index], closed)


def test_targets_beyond_a_motor_s_range_end_at_it(panda_task):
    model = build_scene(panda_task, FRANKA_PANDA, cameras=False).model
    data, port = mujoco.MjData(model), RobotPort(model, ROBOT, FRANKA_PANDA)
    port.put(data, np.full(9, 99.0))
    np.testing.assert_allclose(data.ctrl[:8], model.actuator_ctrlrange[:8, 1])


@pytest.fixture(scope="module")
def scene(panda_task):
    return build_scene(panda_task, FRANKA_PANDA, cameras=False)


@pytest.fixture
def scene_data(scene):
    return mujoco.MjData(scene.model)


@pytest.fixture
def objects(scene, panda_task):
    return ObjectPort(scene, panda_task.objects)


def test_what_is_put_somewhere_is_there(objects, scene_data, layout):
    objects.put(scene_data, layout)
    for name, pose in objects.poses(scene_data).items():
        np.testing.assert_allclose(pose.pos, layout.poses[name].pos)
        np.testing.assert_allclose(pose.quat_wxyz, layout.poses[name].quat_wxyz, atol=1e-7)
    assert objects.joints(scene_data) == {"cabinet": {"drawer": 0.06}}


def test_mujoco_sees_the_objects_where_they_are_said_to_be(scene, objects, scene_data, layout):
    objects.put(scene_data, layout)
    mujoco.mj_kinematics(scene.model, scene_data)
    for body, name in (("block", "block"), ("tin", "tin"), ("cabinet_cabinet", "cabinet")):
        np.testing.assert_allclose(scene_data.body(body).xpos, layout.poses[name].pos, atol=1e-9)
        np.testing.assert_allclose(scene_data.body(body).xquat, layout.poses[name].quat_wxyz, atol=1e-7)
    drawer, cabinet = scene_data.body("cabinet_drawer"), scene_data.body("cabinet_cabinet")
    np.testing.assert_allclose(drawer.xpos - cabinet.xpos, -0.06 * cabinet.xmat.reshape(3, 3)[:, 0], atol=1e-9)


def test_a_fixed_object_can_be_put_elsewhere_in_the_next_episode(objects, scene_data, layout):
    objects.put(scene_data, layout)
    moved = Pose((0.2, 0.2, 1.07))
    objects.put(scene_data, replace(layout, poses={**layout.poses, "cabinet": moved}))
    assert objects.poses(scene_data)["cabinet"] == moved


def test_a_layout_of_other_objects_is_refused(objects, scene_data, layout):
    with pytest.raises(ValueError, match="the layout has block; the scene has block, cabinet, tin"):
        objects.put(scene_data, replace(layout, poses={"block": Pose()}))
