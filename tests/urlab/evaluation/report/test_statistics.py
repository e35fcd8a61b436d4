"""Intervals and tests against published values and independent computations."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.report.statistics import (
    ConfidenceInterval,
    bootstrap_mean,
    compare_runs,
    mcnemar_exact,
    wilson,
)
from urlab.evaluation.runs.results import Run

Z = 1.959963984540054


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(0, 10, 0.0, 0.27753), (10, 10, 0.72247, 1.0), (5, 10, 0.23659, 0.76341), (81, 263, 0.25529, 0.36621)],
)
def test_the_wilson_interval_has_the_values_of_the_literature(successes, trials, low, high):
    found = wilson(successes, trials)
    assert (found.low, found.high) == pytest.approx((low, high), abs=2e-5)


def test_the_ends_of_a_wilson_interval_are_the_rates_that_just_explain_what_was_seen():
    for successes, trials in ((1, 7), (13, 20), (199, 200)):
        found = wilson(successes, trials)
        for end in (found.low, found.high):
            assert abs(successes / trials - end) == pytest.approx(Z * math.sqrt(end * (1 - end) / trials))


def test_without_episodes_nothing_is_known():
    assert wilson(0, 0) == ConfidenceInterval(0.0, 1.0)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3)])
def test_impossible_counts_are_refused(successes, trials):
    with pytest.raises(ValueError, match="successes of 3"):
        wilson(successes, trials)


def test_the_sign_test_counts_all_outcomes_that_are_as_uneven():
    for first, second in ((0, 5), (1, 6), (3, 3), (2, 8)):
        total, gap = first + second, abs(first - second)
        as_uneven = sum(abs(total - 2 * sum(flips)) >= gap for flips in itertools.product((0, 1), repeat=total))
        assert mcnemar_exact(first, second) == pytest.approx(as_uneven / 2**total)
        assert mcnemar_exact(second, first) == mcnemar_exact(first, second)


def test_runs_that_never_differ_give_no_evidence():
    assert mcnemar_exact(0, 0) == 1.0


def test_the_bootstrap_agrees_with_the_normal_interval_of_many_differences_and_repeats():
    differences = list(np.random.default_rng(1).normal(0.1, 0.2, 400))
    found = bootstrap_mean(differences)
    half = Z * np.std(differences) / math.sqrt(400)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(
        (np.mean(differences) - half, np.mean(differences) + half), abs=2e-3
    )
    assert bootstrap_mean(differences) == found


def test_one_difference_has_no_interval():
    assert bootstrap_mean([0.5]) is None


def run_of(**scores: list[float]) -> Run:
    """A run with the scores of each task's seeds; 1 is a success."""
    episodes = [
        EpisodeResult(task, str(seed), score, score == 1.0)
        for task, seeds in scores.items()
        for seed, score in enumerate(seeds)
    ]
    return Run("run", Path(), {}, tuple(episodes))


def test_runs_are_compared_on_the_episodes_that_both_have():
    first = run_of(a=[0.0, 1.0], b=[0.5, 1.0], only_first=[1.0])
    second = run_of(a=[1.0, 1.0], b=[0.5, 0.5], only_second=[0.0])
    found = compare_runs(first, second)
    assert (found.pairs, found.both, found.only_first, found.only_second, found.neither) == (4, 1, 1, 1, 1)
    assert found.success_difference == 0.0
    assert found.score_difference == pytest.approx((1.0 + 0.0 + 0.0 - 0.5) / 4)
    assert found.p_value == 1.0
    assert found.score_interval is not None
    assert found.score_interval.low < found.score_difference < found.score_interval.high


def test_runs_without_a_common_episode_can_be_compared_with_no_result():
    found = compare_runs(run_of(a=[1.0]), run_of(b=[1.0]))
    assert (found.pairs, found.success_difference, found.p_value, found.score_interval) == (0, 0.0, 1.0, None)
