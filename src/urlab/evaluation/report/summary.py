"""A run in numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.report.statistics import Comparison, ConfidenceInterval, EpisodeOutcome, compare, wilson
from urlab.evaluation.runs.results import Run


@dataclass(frozen=True)
class TaskSummary:
    """Episodes of one task, or of all: ``interval`` is the Wilson 95 % interval of the success rate."""

    task: str
    episodes: int
    successes: int
    mean_score: float
    interval: ConfidenceInterval
    reasons: dict[str, int]

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
    )


def compare_runs(first: Run, second: Run) -> Comparison:
    """Two runs on their common episodes."""
    return compare(_outcomes(first.episodes), _outcomes(second.episodes))


def document(runs: Iterable[Run]) -> dict[str, Any]:
    """The same numbers for programs: ``runs``, and with several of them ``comparisons`` with the first."""
    everything = list(runs)
    return {
        "runs": [_run_document(run) for run in everything],
        "comparisons": [_comparison_document(everything[0], other) for other in everything[1:]],
    }


def _outcomes(episodes: Sequence[EpisodeResult]) -> dict[tuple[str, str], EpisodeOutcome]:
    return {one.key: EpisodeOutcome(one.score, one.success) for one in episodes}


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
        "termination_reasons": summary.reasons,
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
