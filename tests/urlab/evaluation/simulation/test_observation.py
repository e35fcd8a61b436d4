"""What a policy is told: the keys of both generations of the protocol."""

import json

import numpy as np
import pytest

from urlab.evaluation.embodiments import FRANKA_PANDA
from urlab.evaluation.simulation.observation import observe
from urlab.evaluation.simulation.simulation import Simulation

FIRST = {"camera_data", "instruction", "joint_position_state", "ee_pose_state", "timestep", "reset"}
LATER = {"state.joints", "state.gripper", "state.base", "state.ee_pose", "episode_id", "robot_id"}


def observe_now(simulation, **changed):
    asked = {"instruction": "Do it.", "timestep": 3, "episode_id": "urlab/run/task/000", "cameras": False}
    return observe(simulation, **(asked | changed))


@pytest.fixture(scope="module")
def seen(panda_task, layout):
    simulation = Simulation(panda_task, FRANKA_PANDA, cameras=True)
    simulation.reset(layout)
    yield simulation
    simulation.close()


def test_it_has_the_keys_of_both_generations(every_simulation, embodiment):
    observation = observe_now(every_simulation)
    assert observation.keys() == FIRST | LATER
    assert observation["robot_id"] == embodiment.robot_id
    assert (observation["instruction"], observation["episode_id"]) == ("Do it.", "urlab/run/task/000")


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


def test_the_base_stands_still(every_simulation):
    base = observe_now(every_simulation)["state.base"]
    assert list(base) == [0.0, 0.0, 0.0]


def test_pictures_come_with_their_calibration_and_once_more_as_video(seen):
    observation = observe_now(seen, cameras=True)
    names = [mount.name for mount in FRANKA_PANDA.cameras]
    assert list(observation["camera_data"]) == names
    for name, view in seen.render().items():
        data = observation["camera_data"][name]
        assert data.keys() == {"rgb", "depth", "intrinsics_matrix", "p", "q"}
        assert np.array_equal(data["rgb"], view.rgb)
        assert np.array_equal(data["depth"], view.depth)
        assert np.array_equal(data["intrinsics_matrix"], view.intrinsics)
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
