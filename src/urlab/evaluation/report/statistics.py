"""A run in numbers: what a handful of episodes says, and how surely.

Success rates come with the Wilson score interval, which is honest at few episodes and at rates of 0 and 1. Two runs are
compared on the episodes that both have, which are those of the same task and seed: success by the exact McNemar test
(a two-sided sign test on the episodes that only one of them solved), scores by a paired bootstrap of the mean
difference.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from urlab.errors import UrlabError
from urlab.evaluation.episode_result import EpisodeResult, Retries, sum_of
from urlab.evaluation.runs.results import Run

Z_95 = 1.959963984540054
"""The normal quantile that leaves 2.5 % on each side."""

RESAMPLES = 10_000
_BOOTSTRAP_SEED = 20_260_101
_CHUNK = 1_000_000
"""Numbers drawn at a time, so that thousands of pairs need no gigabytes."""


@dataclass(frozen=True)
class ConfidenceInterval:
    """From ``low`` to ``high``."""

    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Two runs on the episodes that both have; differences are second minus first.

    ``p_value`` belongs to the success rates. ``score_interval`` is the 95 % bootstrap interval of the mean difference
    of scores; None with fewer than two pairs.
    """

    pairs: int
    both: int
    only_first: int
    only_second: int
    neither: int
    p_value: float
    score_difference: float
    score_interval: ConfidenceInterval | None

    @property
    def success_difference(self) -> float:
        """Of the two success rates on the pairs; 0 without pairs."""
        return (self.only_second - self.only_first) / self.pairs if self.pairs else 0.0


def wilson(successes: int, trials: int, z: float = Z_95) -> ConfidenceInterval:
    """The Wilson score interval of a rate, 95 % unless ``z`` says otherwise; all of [0, 1] without trials."""
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials")
    if trials == 0:
        return ConfidenceInterval(0.0, 1.0)
    rate, spread = successes / trials, z * z / trials
    centre = (rate + spread / 2) / (1 + spread)
    half = z * math.sqrt(rate * (1 - rate) / trials + spread / (4 * trials)) / (1 + spread)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return ConfidenceInterval(low, high)


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """The two-sided p-value that two success rates differ, from the episodes that only one of two runs solved."""
    discordant = only_first + only_second
    if discordant == 0:
        return 1.0
    fewer = min(only_first, only_second)
    tail = sum(math.comb(discordant, count) for count in range(fewer + 1))
    return min(1.0, 2 * tail / (1 << discordant))


def bootstrap_mean(differences: Sequence[float], resamples: int = RESAMPLES) -> ConfidenceInterval | None:
    """The 95 % percentile interval of the mean of paired differences; the same numbers give the same interval."""
    values = np.asarray(differences, dtype=np.float64)
    if len(values) < 2:
        return None
    generator = np.random.Generator(np.random.PCG64(_BOOTSTRAP_SEED))
    rows = max(1, _CHUNK // len(values))
    means = np.concatenate(
        [
            values[generator.integers(0, len(values), (min(rows, resamples - done), len(values)))].mean(axis=1)
            for done in range(0, resamples, rows)
        ]
    )
    low, high = np.quantile(means, (0.025, 0.975))
    return ConfidenceInterval(float(low), float(high))


@dataclass(frozen=True)
class TaskSummary:
    """Episodes of one task, or of all: ``interval`` is the Wilson 95 % interval of the success rate.

    ``floor`` is the mean score of a robot that never moves, None if it was not written down for all episodes.
    ``retries`` are the attempts at these episodes that came to no result, before those that did.
    """

    task: str
    episodes: int
    successes: int
    mean_score: float
    interval: ConfidenceInterval
    reasons: dict[str, int]
    retries: Retries
    floor: float | None = None

    @property
    def rate(self) -> float:
        """Successes per episode; 0 without any."""
        return self.successes / self.episodes if self.episodes else 0.0


@dataclass(frozen=True)
class RunSummary:
    """``overall`` pools the episodes of all tasks."""

    name: str
    policy: str
    overall: TaskSummary
    tasks: tuple[TaskSummary, ...]


def summarise(run: Run) -> RunSummary:
    """All numbers of a run."""
    tasks = sorted({one.task for one in run.episodes})
    return RunSummary(
        name=run.name,
        policy=run.policy,
        overall=summary_of("all", run.episodes),
        tasks=tuple(summary_of(task, [one for one in run.episodes if one.task == task]) for task in tasks),
    )


def summary_of(task: str, episodes: Sequence[EpisodeResult]) -> TaskSummary:
    """The numbers of some episodes."""
    successes = sum(one.success for one in episodes)
    return TaskSummary(
        task=task,
        episodes=len(episodes),
        successes=successes,
        mean_score=sum(one.score for one in episodes) / len(episodes) if episodes else 0.0,
        interval=wilson(successes, len(episodes)),
        reasons=dict(Counter(one.reason or "not recorded" for one in episodes).most_common()),
        floor=_mean_floor(episodes),
        retries=sum_of(one.retries for one in episodes if one.retries is not None),
    )


def _mean_floor(episodes: Sequence[EpisodeResult]) -> float | None:
    floors = [one.floor for one in episodes if one.floor is not None]
    return sum(floors) / len(floors) if floors and len(floors) == len(episodes) else None


class UnlikeRuns(UrlabError):
    """Runs whose pictures were drawn in different ways: a policy that looks at them was measured on two benchmarks."""


def refuse_unlike(runs: Sequence[Run]) -> None:
    """UnlikeRuns if the runs' pictures are not of one renderer and render profile. Runs without pictures fit all."""
    drawn = {run.drawing: run.name for run in reversed(runs) if run.drawing is not None}
    if len(drawn) > 1:
        ways = "; ".join(f"{name}: {drawing}" for drawing, name in reversed(drawn.items()))
        raise UnlikeRuns(
            f"these runs saw pictures that were drawn differently ({ways}), so their numbers do not show which policy "
            "is better; run them on one machine, or compare them all the same with --force"
        )


def compare_runs(first: Run, second: Run) -> Comparison:
    """Two runs on their common episodes; those that only one of them has do not count."""
    ours, theirs = ({one.key: one for one in run.episodes} for run in (first, second))
    pairs = [(ours[key], theirs[key]) for key in sorted(ours.keys() & theirs.keys(), key=repr)]
    solved = [(one.success, other.success) for one, other in pairs]
    differences = [other.score - one.score for one, other in pairs]
    only_first, only_second = solved.count((True, False)), solved.count((False, True))
    return Comparison(
        pairs=len(pairs),
        both=solved.count((True, True)),
        only_first=only_first,
        only_second=only_second,
        neither=solved.count((False, False)),
        p_value=mcnemar_exact(only_first, only_second),
        score_difference=float(np.mean(differences)) if differences else 0.0,
        score_interval=bootstrap_mean(differences),
    )


def document(runs: Iterable[Run], *, force: bool = False) -> dict[str, Any]:
    """The same numbers for programs: ``runs``, and with several of them ``comparisons`` with the first.

    UnlikeRuns if their pictures were drawn differently, unless ``force``.
    """
    everything = list(runs)
    if not force:
        refuse_unlike(everything)
    return {
        "runs": [_run_document(run) for run in everything],
        "comparisons": [_comparison_document(everything[0], other) for other in everything[1:]],
    }


def _run_document(run: Run) -> dict[str, Any]:
    summary = summarise(run)
    return {
        "run_id": run.name,
        "policy": run.policy,
        "folder": str(run.folder),
        "info": run.info,
        "overall": _numbers(summary.overall),
        "tasks": {one.task: _numbers(one) for one in summary.tasks},
        "episodes": [
            {
                "task": one.task,
                "seed": one.seed,
                "score": one.score,
                "success": one.success,
                "steps": one.steps,
                "termination_reason": one.reason,
                "termination_detail": one.detail,
                "attempts": one.attempts,
                "retries": None if one.retries is None else asdict(one.retries),
            }
            for one in run.episodes
        ],
    }


def _numbers(summary: TaskSummary) -> dict[str, Any]:
    return {
        "episodes": summary.episodes,
        "successes": summary.successes,
        "success_rate": summary.rate,
        "wilson_95": [summary.interval.low, summary.interval.high],
        "mean_score": summary.mean_score,
        "floor": summary.floor,
        "termination_reasons": summary.reasons,
        "retries": asdict(summary.retries),
    }


def _comparison_document(first: Run, second: Run) -> dict[str, Any]:
    found = compare_runs(first, second)
    interval = found.score_interval
    return {
        "first": first.name,
        "second": second.name,
        "pairs": found.pairs,
        "both": found.both,
        "only_first": found.only_first,
        "only_second": found.only_second,
        "neither": found.neither,
        "success_difference": found.success_difference,
        "mcnemar_exact_p": found.p_value,
        "score_difference": found.score_difference,
        "score_bootstrap_95": None if interval is None else [interval.low, interval.high],
    }
