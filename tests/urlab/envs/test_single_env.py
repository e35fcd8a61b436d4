"""One simulation behind a client as a Gymnasium environment."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import urlab
from urlab.envs import TASKS, EnvCamera, URLabEnv, make_baseline
from urlab.envs.task import find_task

SENSORS = 4


def test_without_a_task_it_is_a_plain_mujoco_loop(cart: Path, tmp_path: Path) -> None:
    model = mujoco.MjModel.from_xml_path(str(cart))
    data = mujoco.MjData(model)
    with closing(URLabEnv(cart, n_steps=3, project=tmp_path)) as env:
        env.reset(seed=1)
        for push in (0.5, -1.0, 0.25):
            data.ctrl[:] = push
            mujoco.mj_step(model, data, nstep=3)
            observation, reward, terminated, truncated, info = env.step(np.array([push]))
            assert observation.tolist() == [*data.qpos, *data.qvel, *data.sensordata]
            assert (reward, terminated, truncated) == (0.0, False, False)
        assert info == {"step_count": 3, "sim_time": data.time}


def test_bodies_that_sleep_do_so_as_in_a_plain_mujoco_loop(cart: Path, tmp_path: Path) -> None:
    crate = '<geom type="plane" size="9 9 1"/><body pos="0 4 .11"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    text = cart.read_text().replace("<worldbody>", f'<option><flag sleep="enable"/></option><worldbody>{crate}')
    cart.write_text(text.replace('type="slide" axis="1 0 0"/>', 'type="slide" axis="1 0 0" damping="1"/>'))
    model = mujoco.MjModel.from_xml_path(str(cart))
    data = mujoco.MjData(model)
    with closing(URLabEnv(cart, n_steps=5, project=tmp_path)) as env:
        for _ in range(2):
            env.reset()
            mujoco.mj_resetData(model, data)
            for index in range(100):
                data.ctrl[:] = push = 0.1 * (index % 3)
                mujoco.mj_step(model, data, nstep=5)
                observation = env.step(np.array([push]))[0]
                assert observation.tolist() == [*data.qpos, *data.qvel, *data.sensordata]
            assert (data.tree_asleep >= 0).any()


def test_spaces_are_those_of_the_actuators_and_of_what_is_observed(cart: Path, tmp_path: Path) -> None:
    with closing(URLabEnv(cart, project=tmp_path)) as env:
        assert env.action_space == gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
        assert env.observation_space.shape == (4 + SENSORS,)
        assert env.metadata["render_fps"] == 100
    with closing(URLabEnv(cart, space_mode="dict", project=tmp_path)) as env:
        assert list(env.action_space) == list(env.observation_space) == ["cart"]
        observation, _ = env.reset(seed=1)
        assert observation in env.observation_space
        assert env.step({"cart": np.array([0.5])})[0]["cart"].shape == (4 + SENSORS,)
    with closing(URLabEnv(cart, observations="minimal", project=tmp_path)) as env:
        assert env.observation_space.shape == env.reset()[0].shape == (4,)


def test_a_controlled_joint_has_the_range_of_its_angle() -> None:
    with closing(URLabEnv(["quadruped", "floor"])) as env:
        assert env.action_space.low[:3].tolist() == [-0.8, -1.0, -2.7]


@pytest.mark.parametrize("space_mode", ["flat", "dict"])
@pytest.mark.parametrize("task", TASKS)
def test_gymnasiums_checker_finds_nothing_in_any_task(task: str, space_mode: str) -> None:
    with closing(gymnasium.make(f"urlab/{task}", space_mode=space_mode)) as env:
        check_env(env.unwrapped, skip_render_check=True)


def test_gymnasiums_checker_finds_nothing_in_a_plain_scene(cart: Path, tmp_path: Path) -> None:
    with closing(gymnasium.make("urlab/PandaReach-v0", scene=cart, task=None, project=tmp_path)) as env:
        check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("task", TASKS)
def test_the_baseline_solves_the_task_and_doing_nothing_does_not(task: str) -> None:
    with closing(gymnasium.make(f"urlab/{task}")) as env:
        baseline = make_baseline(task, env.unwrapped.interface)
        observation, _ = env.reset(seed=3)
        ended = False
        while not ended:
            observation, _, terminated, truncated, info = env.step(baseline.act(observation))
            ended = terminated or truncated or info["is_success"]
        assert info["is_success"]
        assert not env.reset(seed=3)[1].get("is_success", False)
        idle = np.zeros(env.action_space.shape)
        assert not any(env.step(idle)[4]["is_success"] for _ in range(20))


def test_rewards_and_ends_may_be_the_callers(cart: Path, tmp_path: Path) -> None:
    def reward(observation, action, info):
        return info["client"].sim_time + action[0]

    with urlab.launch(cart, project=tmp_path) as client:
        env = URLabEnv(client, reward_fn=reward, termination_fn=lambda _o, _a, info: info["step_count"] == 2)
        env.reset()
        assert env.step(np.array([0.5]))[1:3] == (0.51, False)
        _, rewarded, terminated, _, info = env.step(np.array([0.5]))
        assert (rewarded, terminated) == (0.52, True)
        assert info["client"] is client
        env.close()
        client.step()


def test_an_episode_is_truncated_after_its_steps(cart: Path, tmp_path: Path) -> None:
    with closing(URLabEnv(cart, max_episode_steps=2, project=tmp_path)) as env:
        env.reset()
        assert [env.step(np.zeros(1))[3] for _ in range(2)] == [False, True]


def test_reset_takes_a_keyframe_and_joint_values(cart: Path, tmp_path: Path) -> None:
    with closing(URLabEnv(cart, project=tmp_path)) as env:
        assert env.reset(options={"keyframe_name": "tilted"})[0][:2].tolist() == [0.0, 0.2]
        options = {"per_articulation_qpos": {"cart": {"slide": 0.7}}}
        assert env.reset(options=options)[0][:2].tolist() == [0.7, 0.0]
        with pytest.raises(ValueError, match="reset has no option 'keyframe'; there are: keyframe_name"):
            env.reset(options={"keyframe": "tilted"})


@pytest.mark.parametrize("task", TASKS)
def test_a_scene_of_its_own_goes_as_one_behind_a_client_also_when_that_takes_over(task: str) -> None:
    with closing(URLabEnv(task=task)) as own, urlab.launch(find_task(task).scene) as client:
        behind = URLabEnv(client, task=task)
        rng = np.random.Generator(np.random.PCG64(5))
        for number in range(30):
            if number % 12 == 0:
                found, expected = own.reset(seed=number), behind.reset(seed=number)
            else:
                action = rng.uniform(-1, 1, own.action_space.shape)
                found, expected = own.step(action), behind.step(action)
            assert found[0].tolist() == expected[0].tolist()
            assert found[1:-1] == expected[1:-1]
            assert found[-1] == {name: value for name, value in expected[-1].items() if name != "client"}
            if number == 20:
                assert own.client.sim_time == client.sim_time
                assert own.client.data.qpos.tolist() == client.data.qpos.tolist()
                for prefix, robot in client.articulations.items():
                    assert own.client.articulations[prefix].ctrl_array.tolist() == robot.ctrl_array.tolist()


def test_before_the_first_reset_the_client_stands_at_the_scenes_start() -> None:
    with closing(URLabEnv(["panda", "floor"])) as env, urlab.launch(["panda", "floor"]) as client:
        assert env.client.data.qpos.tolist() == client.data.qpos.tolist()
        assert env.client.data.ctrl.tolist() == client.data.ctrl.tolist() != [0.0] * client.model.nu


def test_what_is_done_by_the_client_happens_in_the_environment(cart: Path, tmp_path: Path) -> None:
    with closing(URLabEnv(cart, project=tmp_path)) as env:
        env.reset()
        env.step(np.ones(1))
        env.client.runtime.set_qpos("cart", [0.7, 0.0], by_name=True)
        assert env.step(np.zeros(1))[0][0] == pytest.approx(0.7, abs=0.01)


def test_pictures_show_the_state_of_a_scene_of_its_own(cart: Path, tmp_path: Path) -> None:
    with (
        closing(URLabEnv(cart, render_mode="rgb_array", project=tmp_path / "own")) as own,
        urlab.launch(cart, project=tmp_path / "behind") as client,
    ):
        behind = URLabEnv(client, render_mode="rgb_array")
        pictures = []
        for _ in range(2):
            for env in (own, behind):
                env.reset()
                for _ in range(40):
                    env.step(np.ones(1))
            pictures += [own.render(), behind.render()]
            own.step(np.ones(1))
        assert all((picture == pictures[0]).all() for picture in pictures)
        own.reset()
        assert (own.render() != pictures[0]).any()


def test_a_seed_decides_everything() -> None:
    with closing(URLabEnv(task="PandaReach-v0")) as env:
        first, again = env.reset(seed=7)[0], env.reset()[0]
        assert env.reset(seed=7)[0].tolist() == first.tolist() != again.tolist()
        assert env.reset()[0].tolist() == again.tolist()


def test_bad_actions_and_options_are_refused(cart: Path, tmp_path: Path) -> None:
    with closing(URLabEnv(cart, project=tmp_path)) as env:
        env.reset()
        with pytest.raises(ValueError, match=r"an action has 1 numbers, and this one has the shape \(2,\)"):
            env.step(np.zeros(2))
        with pytest.raises(ValueError, match="not finite"):
            env.step(np.array([np.nan]))
        assert env.client.sim_time == 0.0
    with pytest.raises(ValueError, match="space_mode is 'flat' or 'dict'"):
        URLabEnv(cart, space_mode="list", project=tmp_path)
    with pytest.raises(ValueError, match="there is no task 'Nothing'; there are: PandaPickCube-v0"):
        URLabEnv(task="Nothing")
    with pytest.raises(ValueError, match="there is no camera 'front'; there are: side"):
        URLabEnv(cart, include_cameras="front", project=tmp_path)
    with pytest.raises(RuntimeError, match="an environment needs a robot"):
        URLabEnv("floor", project=tmp_path)


def test_pictures_are_observed_and_rendered_without_a_step(cart: Path, tmp_path: Path) -> None:
    cameras = {"side": EnvCamera(width=16, height=12)}
    with closing(URLabEnv(cart, include_cameras=cameras, render_mode="rgb_array", project=tmp_path)) as env:
        observation, _ = env.reset(seed=1)
        assert observation["side"].shape == (12, 16, 3)
        assert env.step(np.ones(1))[0] in env.observation_space
        before = env.client.sim_time, env.client.step_count
        assert env.render().shape == (480, 640, 3)
        assert (env.client.sim_time, env.client.step_count) == before
    depth = {"side": EnvCamera(depth=True)}
    with closing(URLabEnv(cart, include_cameras=depth, space_mode="dict", project=tmp_path)) as env:
        observation, _ = env.reset(seed=1)
        assert observation in env.observation_space
        assert observation["side"].shape == (24, 32)
        assert 2.5 < observation["side"].min() < 3.5


def test_a_user_without_the_extra_reads_what_to_install() -> None:
    program = (
        "import sys, importlib.util; sys.modules['gymnasium'] = None\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'gymnasium' else find(name, *more)\n"
        "try: import urlab.envs\nexcept ImportError as missing: print(missing)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout == "urlab.envs needs Gymnasium: pip install 'urlab-headless[gym]'\n"
