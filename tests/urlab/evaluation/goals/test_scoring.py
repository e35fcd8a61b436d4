"""The score: sequences written by hand, and a second count of chance ones."""

import random
from collections.abc import Iterable

import pytest

from urlab.evaluation.goals.scoring import GoalTracker
from urlab.evaluation.tasks.task import Task, parse_task
from urlab.geometry import Pose

HEAD = """
embodiment = "franka_panda"
title = "t"
category = "c"
num_steps = 600
instructions = ["go"]
goal = {goal}
"""
OBJECT = '[objects.{name}]\nshape = "box"\nsize = [0.04, 0.04, 0.04]\nx = [0, 0]\ny = [{y}, {y}]\n'


def task_with(goal: str, *, objects: str = "abcd") -> Task:
    tables = "".join(OBJECT.format(name=name, y=0.2 * number) for number, name in enumerate(objects))
    return parse_task(HEAD.format(goal=goal) + tables, name="t", source="t.toml")


def up(name: str, **more: object) -> str:
    """A subgoal that holds while the object is lifted."""
    stated = "".join(f", {field} = {str(value).lower()}" for field, value in more.items())
    return f'{{ type = "range", object = "{name}", z = [2, 3]{stated} }}'


def poses(lifted: Iterable[str], *, objects: str = "abcd") -> dict[str, Pose]:
    return {name: Pose((0.0, 0.0, 2.5 if name in lifted else 1.0)) for name in objects}


def run(tracker: GoalTracker, script: Iterable[tuple[int, str]]) -> list[float]:
    """Lift the named objects for so many control steps, one after the other; the score after each."""
    scores, timestep = [], 0
    for steps, lifted in script:
        for _ in range(steps):
            timestep += 1
            tracker.update(timestep, poses(lifted), {})
        scores.append(tracker.score)
    return scores


def test_it_takes_eleven_looks_of_a_p2_client_and_six_of_a_later_one() -> None:
    assert run(GoalTracker(task_with(up("a")), 100), [(109, "a"), (1, "a")]) == [0.0, 1.0]
    assert run(GoalTracker(task_with(up("a")), 50), [(59, "a"), (1, "a")]) == [0.0, 1.0]


def test_one_bad_look_starts_the_count_again() -> None:
    script = [(100, "a"), (10, ""), (100, "a"), (10, "a")]
    assert run(GoalTracker(task_with(up("a")), 100), script) == [0.0, 0.0, 0.0, 1.0]


def test_what_happens_between_looks_is_not_seen() -> None:
    tracker = GoalTracker(task_with(up("a")), 100)
    script = [step for _ in range(11) for step in ((9, ""), (1, "a"))]
    assert run(tracker, script)[-1] == 1.0


def test_a_subgoal_that_was_true_and_fails_is_lost_unless_it_latches() -> None:
    goal = f"[{up('a')}, {up('b')}]"
    assert run(GoalTracker(task_with(goal), 100), [(110, "a"), (10, ""), (110, "b")]) == [0.5, 0.0, 0.5]
    goal = f"[{up('a', never_reset=True)}, {up('b')}]"
    tracker = GoalTracker(task_with(goal), 100)
    assert run(tracker, [(110, "a"), (10, ""), (110, "b")]) == [0.5, 0.5, 1.0]
    assert tracker.is_success


def test_success_is_kept_when_things_fall_down_afterwards() -> None:
    tracker = GoalTracker(task_with(up("a")), 100)
    assert run(tracker, [(110, "a"), (200, "")]) == [1.0, 1.0]
    assert tracker.nested == [[[1.0]]]


def test_weights_count_in_the_mean_which_is_rounded() -> None:
    goal = f"[{up('a', weight=2.0)}, {up('b', weight=0.5)}, {up('c', weight=0.5)}]"
    tracker = GoalTracker(task_with(goal), 50)
    assert run(tracker, [(60, "a"), (60, "ab"), (60, "abc")]) == [0.66667, 0.83333, 1.0]
    assert tracker.nested == [[[2.0, 0.5, 0.5]]]


def test_the_floor_is_what_standing_still_scores_in_the_end() -> None:
    goal = f"[[[{up('a', weight=1.5)}, {up('b', weight=0.5)}]], [[{up('c')}]]]"
    tracker = GoalTracker(task_with(goal), 50)
    assert tracker.floor(poses("bc"), {}) == run(tracker, [(120, "bc")])[0] == 0.125


def test_the_better_alternative_counts() -> None:
    goal = f"[[{up('a')}, {up('b')}], [{up('c')}, {up('d')}]]"
    tracker = GoalTracker(task_with(goal), 50)
    assert run(tracker, [(60, "a"), (60, "ac"), (60, "acd")]) == [0.5, 0.5, 1.0]
    assert tracker.nested == [[[1.0, 0.0], [1.0, 1.0]]]


def test_half_of_one_alternative_and_half_of_another_is_half() -> None:
    goal = f"[[{up('a')}, {up('b')}], [{up('c')}, {up('d')}]]"
    tracker = GoalTracker(task_with(goal), 50)
    assert run(tracker, [(600, "bd")]) == [0.5]
    assert not tracker.is_success


def test_stages_come_one_after_the_other_and_freeze() -> None:
    goal = f"[[[{up('a')}]], [[{up('b')}, {up('c')}]]]"
    tracker = GoalTracker(task_with(goal), 50)
    script = [(300, "bc"), (60, "abc"), (50, "bc"), (9, "bc"), (1, "bc")]
    assert run(tracker, script) == [0.0, 0.5, 0.5, 0.5, 1.0]
    assert tracker.nested == [[[1.0]], [[1.0, 1.0]]]


def test_a_stage_ahead_is_not_even_counted() -> None:
    goal = f"[[[{up('a')}]], [[{up('b')}]]]"
    assert run(GoalTracker(task_with(goal), 50), [(300, "b"), (60, "ab"), (10, "")]) == [0.0, 0.5, 0.5]


@pytest.mark.parametrize("goal", ["{0}", "[{0}]", "[[{0}]]", "[[[{0}]]]"])
def test_a_goal_is_wrapped_to_three_levels(goal: str) -> None:
    tracker = GoalTracker(task_with(goal.replace("{0}", up("a"))), 50)
    assert tracker.nested == [[[0.0]]]


def test_two_levels_are_alternatives_of_one_stage() -> None:
    tracker = GoalTracker(task_with(f"[[{up('a')}], [{up('b')}]]"), 50)
    assert tracker.nested == [[[0.0], [0.0]]]
    assert run(tracker, [(60, "b")]) == [1.0]


def test_a_subgoal_can_have_its_own_pace_and_patience() -> None:
    goal = f"[{up('a', skip_steps=1, hold_steps=5)}, {up('b', skip_steps=7)}]"
    tracker = GoalTracker(task_with(goal), 20)
    assert run(tracker, [(5, "ab"), (1, "ab"), (14, "ab"), (1, "ab")]) == [0.0, 0.5, 0.5, 1.0]


class _Count:
    """The rules of the benchmark for one subgoal, written down once more."""

    def __init__(self, latches: bool) -> None:
        self.looks: list[bool] = []
        self.latches = latches

    @property
    def is_true(self) -> bool:
        streaks, length = [], 0
        for look in self.looks:
            length = length + 1 if look else 0
            streaks.append(length * 10 > 50)
        return bool(streaks) and (any(streaks) if self.latches else streaks[-1])


@pytest.mark.parametrize("seed", range(5))
def test_chance_sequences_agree_with_a_second_count(seed: int) -> None:
    chance = random.Random(seed)
    goal = f"[[[{up('a')}, {up('b', never_reset=True)}]], [[{up('c')}], [{up('d', never_reset=True)}, {up('a')}]]]"
    tracker = GoalTracker(task_with(goal), 50)
    stages = [[[_Count(False), _Count(True)]], [[_Count(False)], [_Count(True), _Count(False)]]]
    names = [[["a", "b"]], [["c"], ["d", "a"]]]
    lifted = "ab"
    for timestep in range(1, 2001):
        lifted = "".join(name for name in "abcd" if chance.random() < 0.985) if timestep % 10 == 0 else lifted
        if timestep % 10 == 0:
            for stage, stage_names in zip(stages, names, strict=True):
                if any(all(leaf.is_true for leaf in one) for one in stage):
                    continue
                for one, one_names in zip(stage, stage_names, strict=True):
                    for leaf, name in zip(one, one_names, strict=True):
                        leaf.looks.append(name in lifted)
                break
        tracker.update(timestep, poses(lifted), {})
        assert tracker.nested == [[[float(leaf.is_true) for leaf in one] for one in stage] for stage in stages]
    assert tracker.is_success == (tracker.score == 1.0)
