"""A whole evaluation with oracles, without cameras, as `urlab eval run` does it."""

import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from urlab.cli.bench.evaluation.plan import EvalPlan
from urlab.cli.bench.evaluation.results import TaskResult, WholeResult
from urlab.cli.bench.stepping import Tick
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.policies.registry import find_policy
from urlab.evaluation.runs.runner import RunOutcome, run_plan
from urlab.evaluation.settings import RunPlan, VideoChoice
from urlab.evaluation.tasks.task import find_task, task_names

WORKERS = 2
_ORACLE = "oracle"


class _Onlooker:
    """Tells the progress bar."""

    def __init__(self, tick: Tick) -> None:
        self._tick = tick

    def begin(self, run_id: str, total: int, completed: int) -> None:  # noqa: ARG002 - of a protocol
        self._tick(f"0 of {total} episodes")

    def episode(self, done: EpisodeResult) -> None:
        self._tick(f"{done.task} {done.seed}")


def chosen_tasks(plan: EvalPlan) -> tuple[str, ...]:
    """The tasks of the plan's robots; where they are not to be all, the first of each robot come first."""
    by_robot = {scene: [name for name in task_names() if find_task(name).embodiment == scene] for scene in plan.scenes}
    in_turn = [(place, name) for names in by_robot.values() for place, name in enumerate(names)]
    return tuple(name for _, name in sorted(in_turn))[: plan.most_tasks]


def measure_whole(plan: EvalPlan, tasks: Sequence[str], tick: Tick) -> WholeResult:
    """Run it; its files are gone afterwards."""
    with TemporaryDirectory(prefix="urlab-bench-") as folder:
        wanted = RunPlan(
            policy=find_policy(_ORACLE),
            tasks=tuple(tasks),
            episodes=plan.episodes,
            seed=0,
            workers=WORKERS,
            cameras=False,
            videos=VideoChoice.NONE,
            results=Path(folder),
        )
        begin_s = time.perf_counter()
        outcome = run_plan(wanted, _Onlooker(tick), threading.Event())
        took_s = time.perf_counter() - begin_s
    return whole_of(plan, tasks, outcome, took_s)


def whole_of(plan: EvalPlan, tasks: Sequence[str], outcome: RunOutcome, took_s: float) -> WholeResult:
    """What an outcome comes to."""
    steps = sum(one.steps or 0 for one in outcome.finished)
    return WholeResult(
        workers=WORKERS,
        episodes=len(outcome.finished),
        took_s=took_s,
        control_steps=steps,
        steps_per_s=steps / took_s,
        tasks=[_task(name, [one for one in outcome.finished if one.task == name]) for name in tasks],
        is_complete=outcome.is_complete,
        problem=None if outcome.problem is None else str(outcome.problem),
        is_judged=plan.is_whole,
    )


def _task(name: str, done: Sequence[EpisodeResult]) -> TaskResult:
    return TaskResult(
        task=name,
        episodes=len(done),
        successes=sum(one.success for one in done),
        mean_score=_mean(one.score for one in done),
        mean_steps=_mean(one.steps or 0 for one in done),
    )


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return fmean(found) if found else 0.0
