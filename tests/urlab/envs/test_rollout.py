"""Rollouts in one process. tests/scale has the same on a cluster."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from urlab.envs import URLabEnv
from urlab.envs.rollout import POLICIES, RolloutJob, RolloutWorker, roll_out

JOB = RolloutJob("PandaReach-v0", POLICIES["baseline"], episodes=2, seed=3)


def test_an_episode_is_that_of_its_seed_whoever_ran_before_it() -> None:
    rows = list(roll_out(JOB))
    assert [row.episode for row in rows] == [0, 1]
    assert rows[0].digest != rows[1].digest
    alone = RolloutWorker(JOB)
    try:
        assert [alone.run(1), alone.run(0), alone.run(1)] == [rows[1], rows[0], rows[1]]
    finally:
        alone.close()


def test_it_is_what_a_loop_over_the_environment_gives() -> None:
    (row,) = roll_out(replace(JOB, make_policy=POLICIES["random"], episodes=1))
    env = URLabEnv(task="PandaReach-v0")
    try:
        env.reset(seed=row.seed)
        env.action_space.seed(row.seed)
        rewards, ended, info = [], False, {}
        while not ended:
            _, reward, terminated, truncated, info = env.step(env.action_space.sample())
            rewards.append(reward)
            ended = terminated or truncated
    finally:
        env.close()
    assert row.steps == len(rewards)
    assert row.reward_sum == pytest.approx(sum(rewards), abs=1e-12)
    assert row.success == info["is_success"]


def test_another_seed_is_another_rollout() -> None:
    seeds = {replace(JOB, seed=seed).episode_seed(episode) for seed in range(20) for episode in range(50)}
    assert len(seeds) == 1000


def test_what_a_policy_does_wrong_is_its_own_error() -> None:
    class Wrong:
        def __init__(self, env: Any) -> None: ...
        def reset(self, seed: int) -> None: ...
        def act(self, observation: Any) -> Any:
            return np.full(3, np.nan)

    with pytest.raises(ValueError, match="8"):
        list(roll_out(replace(JOB, make_policy=Wrong)))


def test_a_task_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="PandaReach-v0"):
        list(roll_out(replace(JOB, task="PandaFly-v0")))
