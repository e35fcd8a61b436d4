"""Every task over twenty seeds: the oracle does it, chance does not, and both do it again. pytest -m soak."""

import json
import threading
from pathlib import Path

import pytest

from urlab.evaluation.embodiments import EMBODIMENTS
from urlab.evaluation.policies import find_policy
from urlab.evaluation.runs.plan import RunPlan
from urlab.evaluation.runs.runner import run_plan
from urlab.evaluation.settings import HOLD_STEPS_P2, VideoChoice
from urlab.evaluation.simulation.actions import parse_action
from urlab.evaluation.simulation.episode import Episode
from urlab.evaluation.simulation.simulation import Simulation
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


FOUR = ("aloha_hand_over", "panda_open_drawer", "panda_stack_cubes", "robotiq_can_left_of_box")


class _Silent:
    def begin(self, run_id, total, completed): ...

    def episode(self, done): ...


def evidence(results: Path, run_id: str, policy: str, workers: int) -> dict[str, object]:
    """Run four tasks over HTTP; what each episode's files say, but for the time of day."""
    plan = RunPlan(
        policy=find_policy(policy),
        tasks=FOUR,
        episodes=2,
        seed=0,
        workers=workers,
        cameras=False,
        videos=VideoChoice.NONE,
        results=results,
        run_id=run_id,
    )
    outcome = run_plan(plan, _Silent(), threading.Event())
    assert outcome.is_complete
    found = {}
    for path in outcome.folder.rglob("result_info.json"):
        result = json.loads(path.read_text())
        log = {key: value for key, value in result.pop("log_info").items() if not key.endswith("_time")}
        steps = (path.parent / "trace.jsonl").read_bytes()
        found[str(path.parent.relative_to(outcome.folder))] = (result, log, steps)
    return found


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("policy", ["oracle", "random"])
def test_one_or_two_workers_twice_give_the_same_scores_and_steps_to_the_bit(tmp_path, policy):
    runs = [evidence(tmp_path, f"run{number}", policy, workers) for number, workers in enumerate((1, 1, 2, 2))]
    assert len(runs[0]) == len(FOUR) * 2
    assert all(run == runs[0] for run in runs[1:])
