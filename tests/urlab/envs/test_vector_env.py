"""Many simulations in one process: the same numbers as one environment for each, to the last bit."""

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from urlab.envs import TASKS, URLabEnv, URLabVectorEnv
from urlab.errors import BadValue

COUNT = 3


def entry(kind: str, name: str, field: str, low: Any, high: Any, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "name": name, "field": field, "distribution": "uniform", "low": low, "high": high, **more}


def compare(steps: int, **options: Any) -> int:
    """Step both with the same actions; how many episodes ended. AssertionError where a bit differs."""
    ends = 0
    with ExitStack() as opened:
        many = opened.enter_context(closing(URLabVectorEnv(num_envs=COUNT, **options)))
        ones = [opened.enter_context(closing(URLabEnv(**options))) for _ in range(COUNT)]
        for one in ones[1:]:
            assert one.client.step_mode == "direct"  # asked for, it is what they step through: not a batch as well
        observed, _ = many.reset(seed=5)
        alone = [one.reset(seed=5 + i)[0] for i, one in enumerate(ones)]
        assert observed.tolist() == [each.tolist() for each in alone]
        many.action_space.seed(1)
        for _ in range(steps):
            actions = many.action_space.sample()
            observed, rewards, terminated, truncated, infos = many.step(actions)
            for i, one in enumerate(ones):
                own, reward, end, cut, info = one.step(actions[i])
                assert (reward, end, cut) == (rewards[i], terminated[i], truncated[i])
                if end or cut:
                    ends += 1
                    assert infos["final_obs"][i].tolist() == own.tolist()
                    assert infos["final_info"]["sim_time"][i] == info["sim_time"]
                    own, info = one.reset()
                assert observed[i].tolist() == own.tolist()
                assert infos["sim_time"][i] == info["sim_time"]
    return ends


@pytest.mark.parametrize("task", TASKS)
def test_every_task_goes_bit_for_bit_as_in_single_environments(task: str) -> None:
    assert compare(16, task=task, max_episode_steps=6) >= 2 * COUNT


def test_a_plain_scene_goes_bit_for_bit_as_in_single_environments(cart: Path, tmp_path: Path) -> None:
    assert compare(12, scene=cart, n_steps=5, max_episode_steps=5, project=tmp_path) == 2 * COUNT


RANDOMIZED: dict[str, dict[str, Any]] = {
    "weight": {"kind": "body", "name": "*cube*", "field": "mass", "distribution": "uniform", "low": 0.1, "high": 0.3},
    "slip": {"kind": "geom", "name": "*", "field": "friction", "distribution": "log_uniform", "low": 0.3, "high": 1},
    "servo": {
        "kind": "joint", "name": "panda_joint*", "field": "damping", "apply": "scale",
        "distribution": "uniform", "low": 0.5, "high": 2,
    },
    "down": {"kind": "option", "field": "gravity", "distribution": "normal", "mean": [0, 0, -9.8], "std": [0, 0, 0.3]},
    "elbow": {
        "kind": "joint", "name": "panda_joint4", "field": "qpos", "apply": "add",
        "distribution": "uniform", "low": -0.1, "high": 0.1,
    },
}  # fmt: skip


def test_randomised_episodes_go_bit_for_bit_as_in_single_environments() -> None:
    assert compare(16, task="PandaPickCube-v0", max_episode_steps=6, randomize=RANDOMIZED) >= 2 * COUNT


def test_what_was_drawn_is_told_and_each_environment_has_its_own() -> None:
    options: dict[str, Any] = {"task": "PandaPickCube-v0", "randomize": RANDOMIZED}
    with closing(URLabVectorEnv(num_envs=2, **options)) as many, closing(URLabEnv(**options)) as one:
        _, infos = many.reset(seed=[3, 4])
        assert infos["randomized"][1] == one.reset(seed=4)[1]["randomized"]
        assert infos["randomized"][0] != infos["randomized"][1]
        fields = {change["field"] for change in infos["randomized"][0]}
    assert fields == {"mass", "friction", "damping", "gravity", "qpos"}


DISTURBED = {
    "shove": entry("push", "cart_pole", "force", [-9, 0, 0], [9, 0, 0], count=4, within_s=[0, 0.4], duration_s=0.1),
    "blur": entry("sensor", "cart_angle", "noise_std", 0.01, 0.2),
    "tilt": entry("sensor", "cart_shake", "bias", [-1, -1, -1], [1, 1, 1]),
    "late": entry("sensor", "*", "latency_s", 0, 0.05),
    "slow": entry("actuator", "cart_push", "latency_s", 0, 0.06),
    "weight": entry("body", "cart_pole", "mass", 0.05, 0.2),
}


@pytest.mark.parametrize("kept", [[key] for key in DISTURBED if key != "weight"] + [list(DISTURBED)])
def test_disturbed_episodes_go_bit_for_bit_as_in_single_environments(
    cart: Path, tmp_path: Path, kept: list[str]
) -> None:
    table = {key: DISTURBED[key] for key in kept}
    options: dict[str, Any] = {"scene": cart, "n_steps": 3, "max_episode_steps": 9, "project": tmp_path}
    assert compare(24, randomize=table, **options) == 2 * COUNT


def test_drawn_gains_go_bit_for_bit_as_in_single_environments() -> None:
    table = {
        "stiff": entry("controller", "*", "kp", 0.5, 2, apply="scale"),
        "damped": entry("controller", "*", "kv", 0.5, 2, apply="scale"),
        "weak": entry("controller", "quadruped_*", "torque_limit", 5, 20),
    }
    assert compare(14, task="QuadrupedWalk-v0", max_episode_steps=6, randomize=table) >= 2 * COUNT


def test_a_disturbance_is_drawn_for_each_environment_and_told_in_the_order_of_the_entries(
    cart: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"scene": cart, "project": tmp_path, "randomize": DISTURBED}
    with closing(URLabVectorEnv(num_envs=2, **options)) as many, closing(URLabEnv(**options)) as one:
        _, infos = many.reset(seed=[3, 4])
        assert infos["randomized"][1] == one.reset(seed=4)[1]["randomized"]
        kinds = [(change["kind"], change["field"]) for change in infos["randomized"][0]]
    assert kinds[0] == ("push", "force")
    assert kinds[-1] == ("body", "mass")


def test_what_a_batch_cannot_draw_is_refused(cart: Path, tmp_path: Path) -> None:
    blur = entry("camera", "*", "noise_std", 0, 1)
    with pytest.raises(BadValue, match="latency of actuators and pushes, not blur: leave these out, or use"):
        URLabVectorEnv(num_envs=2, scene=cart, randomize={"blur": blur}, project=tmp_path)
    with pytest.raises(BadValue, match="no controller whose kp can change fits"):
        URLabVectorEnv(num_envs=2, scene=cart, randomize={"x": entry("controller", "*", "kp", 1, 2)}, project=tmp_path)
    with pytest.raises(BadValue, match="there is no sensor 'nose'"):
        URLabVectorEnv(num_envs=2, scene=cart, randomize={"x": entry("sensor", "nose", "bias", 0, 1)}, project=tmp_path)


def test_pictures_are_those_of_single_environments(cart: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"n_steps": 30, "include_cameras": "side", "max_episode_steps": 2, "project": tmp_path}
    with ExitStack() as opened:
        many = opened.enter_context(closing(URLabVectorEnv(cart, 2, **options)))
        one = opened.enter_context(closing(URLabEnv(cart, **options)))
        assert many.reset(seed=1)[0] in many.observation_space
        first = one.reset(seed=2)[0]["side"]
        observed = many.step(np.array([[-1.0], [1.0]]))[0]
        moved = one.step(np.ones(1))[0]["side"]
        assert np.array_equal(observed["side"][1], moved)
        assert not np.array_equal(observed["side"][0], moved)
        observed, *_, infos = many.step(np.array([[-1.0], [1.0]]))
        assert np.array_equal(infos["final_obs"][1]["side"], one.step(np.ones(1))[0]["side"])
        assert np.array_equal(observed["side"][1], first)


def test_pictures_show_what_was_drawn_as_those_of_single_environments_do(cart: Path, tmp_path: Path) -> None:
    textures = "".join(
        f'<texture name="{name}" type="2d" builtin="flat" rgb1="{rgb}" width="8" height="8"/>'
        for name, rgb in (("red", "1 0 0"), ("blue", "0 0 1"), ("green", "0 1 0"))
    )
    assets = f'<asset>{textures}<material name="paint" texture="red"/></asset>'
    text = cart.read_text().replace("<worldbody>", f"{assets}<worldbody>")
    cart.write_text(text.replace('size=".2 .1 .1" mass="1"', 'size=".2 .1 .1" mass="1" material="paint"'))
    names = {"distribution": "choice", "values": ["red", "blue", "green"]}
    look = {"kind": "material", "name": "paint", "field": "texture", **names}
    table = {"look": look, "pole": entry("geom", "cart_geom*", "rgba", [0, 0, 0, 1], [1, 1, 1, 1])}
    options: dict[str, Any] = {"scene": cart, "include_cameras": "side", "max_episode_steps": 2, "project": tmp_path}
    with ExitStack() as opened:
        many = opened.enter_context(closing(URLabVectorEnv(num_envs=4, randomize=table, **options)))
        ones = [opened.enter_context(closing(URLabEnv(randomize=table, **options))) for _ in range(4)]
        observed, infos = many.reset(seed=1)
        alone = [one.reset(seed=1 + i)[0] for i, one in enumerate(ones)]
        assert len({changes[0]["value"] for changes in infos["randomized"]}) > 1
        for _ in range(3):
            assert [one.tobytes() for one in observed["side"]] == [one["side"].tobytes() for one in alone]
            observed = many.step(np.ones((4, 1)))[0]
            for i, one in enumerate(ones):
                alone[i], _, _, ended, _ = one.step(np.ones(1))
                alone[i] = one.reset()[0] if ended else alone[i]


def test_an_episode_that_ends_begins_anew_in_the_same_step(cart: Path, tmp_path: Path) -> None:
    def ends(_observation, actions, _infos):
        return actions[:, 0] > 0

    with closing(URLabVectorEnv(cart, 2, termination_fn=ends, project=tmp_path)) as env:
        assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        env.reset(seed=1)
        env.step(np.array([[-1.0], [-1.0]]))
        observation, _, terminated, truncated, infos = env.step(np.array([[1.0], [-1.0]]))
        assert (terminated.tolist(), truncated.tolist()) == ([True, False], [False, False])
        assert infos["step_count"].tolist() == [0, 2]
        assert infos["_final_obs"].tolist() == [True, False]
        assert infos["final_info"]["step_count"].tolist() == [2, 0]
        assert observation[0, :4].tolist() == [0.0] * 4 != infos["final_obs"][0][:4].tolist()


def test_each_environment_has_its_seed_and_some_may_be_reset() -> None:
    with closing(gymnasium.make_vec("urlab/PandaReach-v0", 3, vectorization_mode="vector_entry_point")) as env:
        by_number, _ = env.reset(seed=4)
        by_list, _ = env.reset(seed=[6, 5, 4])
        assert by_list.tolist() == by_number[::-1].tolist()
        moved = env.step(np.zeros((3, 8)))[0]
        mask = np.array([False, True, False])
        some, infos = env.reset(seed=[None, 5, None], options={"reset_mask": mask})
        assert some[1].tolist() == by_number[1].tolist()
        assert some[[0, 2]].tolist() == moved[[0, 2]].tolist()
        assert infos["step_count"].tolist() == [1, 0, 1]
        with pytest.raises(ValueError, match="there are 3 environments and 2 seeds"):
            env.reset(seed=[1, 2])


def test_dict_spaces_have_a_row_per_environment(cart: Path, tmp_path: Path) -> None:
    with closing(URLabVectorEnv(cart, 2, space_mode="dict", project=tmp_path)) as env:
        observation, _ = env.reset(seed=1)
        assert observation in env.observation_space
        observation = env.step(env.action_space.sample())[0]
        assert observation["cart"].shape == (2, 8)


def test_every_environment_is_rendered_and_stays_where_it_is(cart: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"render_mode": "rgb_array", "render_camera": "side", "project": tmp_path}
    with closing(URLabVectorEnv(cart, 2, n_steps=60, **options)) as env:
        env.reset(seed=1)
        env.step(np.array([[0.0], [1.0]]))
        before = env._simulations.rows.copy()
        still, moved = env.render()
        assert still.shape == moved.shape == (24, 32, 3)
        assert not np.array_equal(still, moved)
        assert np.array_equal(before, env._simulations.rows)
