"""Every task over twenty seeds: the oracle does it, chance does not. pytest -m soak."""

import pytest

from urlab.evaluation.actions import parse_action
from urlab.evaluation.embodiments import EMBODIMENTS
from urlab.evaluation.episode import Episode
from urlab.evaluation.goals.scoring import HOLD_STEPS_P2
from urlab.evaluation.policies import find_policy
from urlab.evaluation.simulation import Simulation
from urlab.evaluation.tasks.task import find_task, task_names

SEEDS = range(20)


def successes(name: str, policy_name: str) -> float:
    """The share of the seeds on which the policy does the task."""
    task, policy = find_task(name), find_policy(policy_name).make()
    simulation = Simulation(task, EMBODIMENTS[task.embodiment], cameras=False)
    done = 0
    for seed in SEEDS:
        episode = Episode(
            task,
            seed,
            simulation,
            hold_steps=HOLD_STEPS_P2,
            num_steps=task.num_steps,
            episode_id=f"soak/{policy_name}/{name}/{seed:03d}",
            privileged=True,
        )
        observation = episode.reset()
        policy.reset(observation)
        while not episode.done:
            action = parse_action(policy.act(observation), simulation.embodiment, default_is_rel=True)
            observation = episode.step(action)
        assert episode.result is not None
        done += episode.result.success
    simulation.close()
    return done / len(SEEDS)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", task_names())
def test_the_oracle_does_the_task_in_nine_of_ten_episodes_and_more(name):
    assert successes(name, "oracle") >= 0.9


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", task_names())
def test_chance_does_the_task_in_one_of_twenty_episodes_at_most(name):
    assert successes(name, "random") <= 0.05
