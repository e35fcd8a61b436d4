"""Tasks are declared once."""

import pytest

from urlab.envs import TASKS, EnvTask
from urlab.envs.baselines import Baseline, ReachBaseline


def test_a_second_task_of_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match="the task 'PandaReach-v0' is already PandaReach"):
        type("Again", (EnvTask,), {}, name="PandaReach-v0")


def test_a_second_baseline_of_a_task_is_refused() -> None:
    with pytest.raises(TypeError, match="'PandaReach-v0' has the baseline ReachBaseline already"):
        type("Again", (Baseline,), {}, task=ReachBaseline.task)


def test_every_task_says_what_it_is_about() -> None:
    assert all(task.__doc__ and task.max_episode_steps for task in TASKS.values())
