"""A job: the episodes that are wanted, who runs which, and what came out. Bookkeeping only; one thread uses it."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.unit import Unit

Scores = dict[str, dict[str, float]]


class Job:
    """Episodes are handed out in order: all seeds of the first task, then the next task.

    An episode belongs to one worker until it is finished or given back; whatever is in ``finished`` is not run again.
    """

    def __init__(self, run_id: str, units: Sequence[Unit], finished: Mapping[Unit, EpisodeResult]) -> None:
        self.run_id = run_id
        self._units = list(dict.fromkeys(units))
        self._results: dict[Unit, EpisodeResult] = {unit: finished[unit] for unit in self._units if unit in finished}
        self._taken: dict[str, Unit] = {}

    @property
    def units(self) -> list[Unit]:
        """Every episode of the job, in order."""
        return list(self._units)

    def take(self, worker_id: str) -> Unit | None:
        """The worker's episode: the one it has, else the next free one; None when nothing is left for it."""
        if worker_id not in self._taken:
            busy = set(self._taken.values())
            free = (unit for unit in self._units if unit not in self._results and unit not in busy)
            unit = next(free, None)
            if unit is None:
                return None
            self._taken[worker_id] = unit
        return self._taken[worker_id]

    def current(self, worker_id: str) -> Unit | None:
        """The episode that the worker is running."""
        return self._taken.get(worker_id)

    def give_back(self, worker_id: str) -> None:
        """The worker will not finish its episode; another may begin it anew."""
        self._taken.pop(worker_id, None)

    def finish(self, worker_id: str, result: EpisodeResult) -> None:
        """The worker's episode is over."""
        self._results[self._taken.pop(worker_id)] = result

    def add_finished(self, finished: Mapping[Unit, EpisodeResult]) -> None:
        """Take over results that were found on disk."""
        for unit in self._units:
            if unit in finished and unit not in self._results and unit not in self._taken.values():
                self._results[unit] = finished[unit]

    @property
    def is_complete(self) -> bool:
        """True when every episode has a result."""
        return len(self._results) == len(self._units)

    @property
    def in_a_line(self) -> str:
        """How much there is to do, for logs."""
        tasks = len({unit.task for unit in self._units})
        return f"{len(self._units)} episodes of {tasks} tasks, {len(self._results)} of them done"

    def scores(self) -> Scores:
        """``{task: {"score", "sr"}}``: means over the finished episodes of each task that has any."""
        return {task: _means(done) for task, done, _total in self._by_task() if done}

    def progress(self) -> Scores:
        """The same for all tasks; keys: ``(n/n)task`` when done, ``*(k/n)task``, ``*task`` before the first."""
        return {_progress_key(task, len(done), total): _means(done) for task, done, total in self._by_task()}

    def status(self, active_workers: Iterable[str]) -> dict[str, Any]:
        """What /status says of it."""
        workers = sorted(active_workers)
        return {
            "status": self._word(bool(workers)),
            "run_id": self.run_id,
            "total_episodes": len(self._units),
            "completed_episodes": len(self._results),
            "in_progress_episodes": len(self._taken),
            "active_workers": workers,
            "results": {task: means["score"] for task, means in self.scores().items()},
        }

    def _word(self, has_workers: bool) -> str:
        if self.is_complete:
            return "complete"
        if has_workers:
            return "running"
        return "incomplete" if self._results else "idle"

    def _by_task(self) -> list[tuple[str, list[EpisodeResult], int]]:
        tasks: dict[str, list[Unit]] = {}
        for unit in self._units:
            tasks.setdefault(unit.task, []).append(unit)
        return [
            (task, [self._results[unit] for unit in units if unit in self._results], len(units))
            for task, units in tasks.items()
        ]


def _means(done: Sequence[EpisodeResult]) -> dict[str, float]:
    if not done:
        return {"score": 0.0, "sr": 0.0}
    return {"score": fmean(one.score for one in done), "sr": fmean(one.success_rate for one in done)}


def _progress_key(task: str, done: int, total: int) -> str:
    if done == total:
        return f"({done}/{total}){task}"
    return f"*({done}/{total}){task}" if done else f"*{task}"
