"""The oracle does every task, repeats itself exactly, and moves as a robot can."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab.cli.eval.run import RunOptions, plan_of
from urlab.evaluation.embodiments import EMBODIMENTS
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.policies import PolicyError
from urlab.evaluation.policies.oracle import OraclePolicy
from urlab.evaluation.settings import HOLD_STEPS_FIRST_CLIENTS
from urlab.evaluation.simulation.actions import parse_action
from urlab.evaluation.simulation.episode import Episode
from urlab.evaluation.simulation.simulation import Simulation
from urlab.evaluation.tasks import task as task_module
from urlab.evaluation.tasks.task import Task, find_task, load_task, task_names

DATA = Path(task_module.__file__).parent / "data"
PAGE = (Path(__file__).parents[4] / "docs" / "evaluation-tasks.md").read_text()
OWN_TASK, SCRIPT = re.search(r"```toml\n(# coin_in_cup.*?)(\[\[oracle.*?)```", PAGE, re.DOTALL).groups()


@dataclass
class Played:
    """An episode that the oracle has played to its end."""

    result: EpisodeResult
    actions: list[dict[str, Any]] = field(default_factory=list)
    out_of_reach: int = 0


def play(simulation: Simulation, task: Task, seed: int, policy: Any) -> Played:
    episode = Episode(
        task, seed, simulation, hold_steps=HOLD_STEPS_FIRST_CLIENTS, num_steps=task.num_steps, privileged=True
    )
    observation, actions, out_of_reach = episode.reset(), [], 0
    policy.reset(observation)
    while not episode.done:
        actions.append(policy.act(observation))
        observation = episode.step(parse_action(actions[-1], simulation.embodiment, default_is_rel=True))
        out_of_reach += any(simulation.is_held)
    assert episode.result is not None
    return Played(episode.result, actions, out_of_reach)


def simulate(task: Task) -> Simulation:
    return Simulation(task, EMBODIMENTS[task.embodiment], cameras=False)


LONG = ("aloha_sort_cups", "panda_sort_colors", "robotiq_collect_blocks")
"""Many picks of the kind that other tasks have."""


@pytest.fixture(
    scope="module", params=[pytest.param(one, marks=[pytest.mark.soak] * (one in LONG)) for one in task_names()]
)
def played(request: pytest.FixtureRequest) -> Iterator[tuple[Task, Played]]:
    task = find_task(request.param)
    simulation = simulate(task)
    yield task, play(simulation, task, 0, OraclePolicy())
    simulation.close()


def test_it_does_every_task(played: tuple[Task, Played]) -> None:
    _, done = played
    assert done.result.reason == "success"
    assert done.result.score == 1.0


def test_it_has_time_to_spare(played: tuple[Task, Played]) -> None:
    task, done = played
    assert done.result.steps < 0.8 * task.num_steps


def test_it_asks_for_nothing_out_of_reach_and_for_no_speed_that_arms_cannot_follow(
    played: tuple[Task, Played],
) -> None:
    _, done = played
    assert done.out_of_reach == 0
    for before, after in pairwise(done.actions):
        assert after["control_type"] == "ee_pose"
        assert after["is_rel"] is False
        for one, other in zip(_poses(before), _poses(after), strict=True):
            assert math.dist(one[0], other[0]) <= 0.6 / 30, "the hand turns about the tool, so it may be faster than it"
            assert 2 * math.acos(min(1.0, abs(float(np.dot(one[1], other[1]))))) <= 1.55 / 30


def test_the_same_episode_has_the_same_actions_and_the_same_score() -> None:
    task = find_task("panda_cube_on_plate")
    simulation = simulate(task)
    policy = OraclePolicy()
    first = play(simulation, task, 3, policy)
    between = play(simulation, task, 4, policy)
    again = play(simulation, task, 3, policy)
    simulation.close()
    assert first.actions == again.actions
    assert first.result == again.result
    assert between.actions != first.actions


def test_a_task_of_ones_own_is_given_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "coin_in_cup.toml"
    file.write_text(OWN_TASK + SCRIPT)
    task = load_task(file)
    simulation = simulate(task)
    episode = Episode(
        task, 0, simulation, hold_steps=HOLD_STEPS_FIRST_CLIENTS, num_steps=task.num_steps, privileged=True
    )
    observation, policy = episode.reset(), OraclePolicy(task_files=[file])
    policy.reset(observation)
    assert policy.act(observation)["control_type"] == "ee_pose"
    with pytest.raises(PolicyError, match=r"coin_in_cup.*task_files"):
        OraclePolicy().reset(observation)
    simulation.close()


def test_the_command_line_gives_the_oracle_the_scripts_of_ones_own_tasks(tmp_path: Path) -> None:
    file = tmp_path / "coin_in_cup.toml"
    file.write_text(OWN_TASK)
    options = RunOptions("oracle", [], str(file), 1, 0, None, None, None, tmp_path, None, None, None)
    policy = plan_of(options).policy.make()
    with pytest.raises(PolicyError, match="coin_in_cup has no"):
        policy.reset({"privileged": {"task": "coin_in_cup"}})


def test_without_privileged_observations_or_a_script_it_says_what_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "coin_in_cup.toml"
    file.write_text(OWN_TASK)
    with pytest.raises(PolicyError, match="--privileged"):
        OraclePolicy().reset({"robot_id": "manip/franka/panda_hand"})
    with pytest.raises(PolicyError, match=r"coin_in_cup has no \[\[oracle\]\] steps"):
        OraclePolicy(task_files=[file]).reset({"privileged": {"task": "coin_in_cup"}})


BY_ONE_BAR = """
[[oracle]]
do = "pick"
object = "tray"
arm = "left"
offset = [0.0, 0.17, 0.01]

[[oracle]]
do = "wait"
steps = 130
"""
LEFT_ALONE = """
[[oracle]]
do = "pick"
object = "stick"
arm = "left"
offset = [0.07, 0.0, 0.0]
yaw_deg = 90.0
lift = 0.2

[[oracle]]
do = "place"
object = "stick"
target = "crate"
arm = "left"
frame = "target"
offset = [0.0, 0.08, 0.03]
yaw_deg = 90.0
"""
CAN_FIRST = """
[[oracle]]
do = "pick"
object = "can"
any_yaw = true

[[oracle]]
do = "place"
object = "can"
target = "table"
offset = [-0.16, -0.25, 0.003]
"""


def script_of(name: str, script: str, num_steps: int, folder: Path) -> tuple[Task, OraclePolicy]:
    """A shipped task, with time enough for another script, under its own name and so with its own seeds."""
    shipped = (DATA / f"{name}.toml").read_text()
    file = folder / f"{name}.toml"
    file.write_text(shipped.partition("[[oracle]]")[0] + script)
    return replace(find_task(name), num_steps=num_steps), OraclePolicy(task_files=[file])


def test_a_tray_that_one_hand_lifts_is_not_lifted_with_both(tmp_path: Path) -> None:
    task, policy = script_of("aloha_lift_tray", BY_ONE_BAR, 450, tmp_path)
    simulation = simulate(task)
    done = play(simulation, task, 0, policy)
    lifted = simulation.objects["tray"].pos[2]
    simulation.close()
    assert lifted > 1.1, "the hand has lifted it"
    assert (done.result.success, done.result.reason) == (False, "step_limit")
    assert done.result.score < 0.2


def test_a_bar_that_one_hand_carries_to_the_bin_was_not_handed_over(tmp_path: Path) -> None:
    task, policy = script_of("aloha_hand_over", LEFT_ALONE, 350, tmp_path)
    simulation = simulate(task)
    done = play(simulation, task, 2, policy)
    beside = np.abs(np.subtract(simulation.objects["stick"].pos, simulation.objects["crate"].pos))
    simulation.close()
    assert (beside[:2] < (0.03, 0.12)).all(), "the bar is in the bin"
    assert (done.result.success, done.result.nested) == (False, [[[1.0]], [[0.0]], [[0.0]]])


def test_a_can_that_was_carried_away_was_not_left_where_it_was(tmp_path: Path) -> None:
    shipped = (DATA / "panda_cube_in_bowl.toml").read_text()
    cube = "".join(shipped.partition("[[oracle]]")[1:])
    task, policy = script_of("panda_cube_in_bowl", CAN_FIRST + cube, 1000, tmp_path)
    simulation = simulate(task)
    done = play(simulation, task, 0, policy)
    in_the_bowl = math.dist(simulation.objects["cube"].pos[:2], simulation.objects["bowl"].pos[:2])
    simulation.close()
    assert in_the_bowl < 0.05, "the cube is in the bowl"
    assert (done.result.success, done.result.score) == (False, 0.0)


class Clinging:
    """The oracle's script up to the moment at which it would let go; then it keeps hold."""

    def __init__(self) -> None:
        self._oracle = OraclePolicy()

    def reset(self, observation: dict[str, Any]) -> None:
        self._oracle.reset(observation)
        self._last: dict[str, Any] | None = None
        self._clings = False

    def act(self, observation: dict[str, Any]) -> dict[str, Any]:
        wanted = self._oracle.act(observation)
        lets_go = self._last is not None and wanted["action"][2][0] > self._last["action"][2][0]
        self._clings = self._clings or lets_go
        self._last = self._last if self._clings and self._last is not None else wanted
        return self._last


def test_what_is_still_in_the_gripper_is_not_placed() -> None:
    task = replace(find_task("panda_cube_on_plate"), num_steps=420)
    simulation = simulate(task)
    done = play(simulation, task, 0, Clinging())
    simulation.close()
    assert (done.result.success, done.result.reason) == (False, "step_limit")


def _poses(action: dict[str, Any]) -> list[tuple[Any, ...]]:
    arms = action["action"]
    return [arms] if len(arms) == 3 else list(arms)
