"""An episode: what the policy sees, and the states that end it."""

import json

import mujoco
import numpy as np
import pytest

from urlab.evaluation.embodiments import FRANKA_PANDA
from urlab.evaluation.goals import sample_layout
from urlab.evaluation.simulation.episode import Episode, StateGuard
from urlab.evaluation.simulation.scene import ROBOT
from urlab.evaluation.simulation.simulation import Simulation

FIRST = {"camera_data", "instruction", "joint_position_state", "ee_pose_state", "timestep", "reset"}
LATER = {"state.joints", "state.gripper", "state.base", "state.ee_pose", "episode_id", "robot_id"}
FRAMES = {"state.base_pose", "state.ee_tcp_offset"}


def observe_now(simulation, timestep=3, *, cameras=False, privileged=False):
    episode = Episode(
        simulation.task, 0, simulation, hold_steps=100, num_steps=600, episode_id="urlab/run/task/000",
        cameras=cameras, privileged=privileged,
    )  # fmt: skip
    episode.timestep = timestep
    return episode.observe()


@pytest.fixture(scope="module")
def seen(panda_task, layout):
    simulation = Simulation(panda_task, FRANKA_PANDA, cameras=True)
    simulation.reset(layout)
    yield simulation
    simulation.close()


def test_it_has_the_keys_of_both_generations(every_simulation, embodiment):
    observation = observe_now(every_simulation)
    assert observation.keys() == FIRST | LATER | FRAMES
    assert observation["robot_id"] == embodiment.robot_id
    instruction = sample_layout(every_simulation.task, 0).instruction
    assert (observation["instruction"], observation["episode_id"]) == (instruction, "urlab/run/task/000")


@pytest.mark.parametrize(("timestep", "reset"), [(0, True), (1, False), (599, False)])
def test_only_the_first_of_an_episode_is_a_reset(panda_simulation, timestep, reset):
    observation = observe_now(panda_simulation, timestep=timestep)
    assert (observation["timestep"], observation["reset"]) == (timestep, reset)


def test_joints_are_told_whole_and_in_parts(every_simulation, embodiment):
    observation, joints = observe_now(every_simulation), every_simulation.joints.astype(np.float32)
    assert np.array_equal(observation["joint_position_state"], joints)
    arm, grip, start = [], [], 0
    for one in embodiment.arms:
        middle = start + len(one.joints)
        end = middle + len(one.gripper.joints)
        arm, grip, start = [*arm, *joints[start:middle]], [*grip, *joints[middle:end]], end
    assert observation["state.joints"].tolist() == arm
    assert observation["state.gripper"].tolist() == grip
    for key in ("joint_position_state", "state.joints", "state.gripper"):
        assert observation[key].dtype == np.float32


def test_a_single_arm_s_hand_is_a_pair_and_two_arms_hands_are_a_pair_of_pairs(every_simulation, embodiment):
    observation = observe_now(every_simulation)
    told = observation["ee_pose_state"] if len(embodiment.arms) > 1 else [observation["ee_pose_state"]]
    assert len(told) == len(embodiment.arms)
    for (pos, quat), expected in zip(told, every_simulation.ee_poses, strict=True):
        assert (pos.dtype, quat.dtype) == (np.float32, np.float32)
        np.testing.assert_allclose(pos, expected.pos, rtol=1e-6)
        np.testing.assert_allclose(quat, expected.quat_wxyz, rtol=1e-6)
    assert observation["state.ee_pose"] is observation["ee_pose_state"]


def test_the_base_stands_where_the_robot_was_put(every_simulation, embodiment):
    x, y, _ = embodiment.base_pos_w
    assert observe_now(every_simulation)["state.base"] == [x, y, 0.0]


def test_base_and_hand_together_are_where_the_hand_is_in_the_world(every_simulation, embodiment):
    observation = observe_now(every_simulation)
    is_single = len(embodiment.arms) == 1
    bases, hands, offsets = (
        [observation[key]] if is_single else observation[key]
        for key in ("state.base_pose", "state.ee_pose", "state.ee_tcp_offset")
    )
    engine = every_simulation._engine
    data = mujoco.MjData(engine.model)
    data.qpos[:] = engine.data.qpos
    mujoco.mj_kinematics(engine.model, data)
    for arm, (base_pos, base_quat), (pos, _), offset_m in zip(embodiment.arms, bases, hands, offsets, strict=True):
        body = data.body(f"{ROBOT}_{arm.ee_body}")
        turned = np.empty(3)
        mujoco.mju_rotVecQuat(turned, np.float64(pos), np.float64(base_quat))
        np.testing.assert_allclose(base_pos + turned, body.xpos, atol=1e-5)
        assert offset_m == arm.tcp_offset_m


def test_pictures_come_with_their_calibration_and_once_more_as_video(seen):
    observation = observe_now(seen, cameras=True)
    names = [mount.name for mount in FRANKA_PANDA.cameras]
    assert list(observation["camera_data"]) == names
    for name, view in seen.render().items():
        data = observation["camera_data"][name]
        assert data.keys() == {"rgb", "depth", "intrinsics_matrix", "p", "q"}
        assert np.array_equal(data["rgb"], view["rgb"])
        assert np.array_equal(data["depth"], view["depth"])
        assert np.array_equal(data["intrinsics_matrix"], view["intrinsics_matrix"])
        assert (data["p"].shape, data["q"].shape) == ((3,), (4,))
        assert observation[f"video.{name}_view"] is data["rgb"]


def test_nothing_is_drawn_unless_asked_for(seen):
    observation = observe_now(seen, cameras=False)
    assert observation["camera_data"] == {}
    assert not [key for key in observation if key.startswith("video.")]


def test_what_no_robot_could_know_is_told_only_when_asked_for(panda_simulation):
    assert "privileged" not in observe_now(panda_simulation)


def test_privileged_knowledge_is_plain_data_about_the_task_and_its_objects(panda_simulation):
    told = observe_now(panda_simulation, privileged=True)["privileged"]
    assert json.loads(json.dumps(told)) == told
    assert (told["task"], told["robot_base_pos"]) == ("block_and_drawer", [-0.5, 0.0, 1.0])
    assert told["object_joints"] == panda_simulation.object_joints
    block = told["objects"]["block"]
    assert block["shape"] == "box"
    assert block["size"] == pytest.approx([0.05, 0.05, 0.05])
    assert (tuple(block["pos"]), tuple(block["quat_wxyz"])) == (
        panda_simulation.objects["block"].pos,
        panda_simulation.objects["block"].quat_wxyz,
    )
    assert told["objects"].keys() == panda_simulation.task.objects.keys()


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
        (7, -0.041, "gripper_out_of_range"),
        (7, -0.009, None),
        (8, 0.081, "gripper_out_of_range"),
        (8, 0.049, None),
    ],
)
def test_a_state_that_no_panda_can_be_in_ends_the_episode(guard, index, value, reason):
    assert guard.check(changed(index, value)) == reason


@pytest.mark.parametrize(("index", "value"), [(7, -0.0095), (8, 0.06)])
def test_a_finger_may_be_pressed_out_of_its_range_however_long(guard, index, value):
    for _ in range(600):
        assert guard.check(changed(index, value)) is None


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
