"""A run: a job, its tasks and its folder."""

import asyncio
import logging
import pickle
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from urlab.errors import UrlabError
from urlab.evaluation.embodiments import EMBODIMENTS, Embodiment
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.http.wire import Wire
from urlab.evaluation.job import Job
from urlab.evaluation.results import RunFolder, new_run_id
from urlab.evaluation.settings import BENCHMARK
from urlab.evaluation.tasks.task import Task
from urlab.evaluation.unit import Unit
from urlab.evaluation.worker_messages import Begin, Letter

log = logging.getLogger("urlab.evaluation")

WORKER_FAILED = "worker_failed"
_MOST_LOSSES = 3
_PROBLEMS_TOLD = 20


class Run:
    """Used by the server's event loop only. A ``run_id`` that has results on disk goes on where it stopped."""

    def __init__(self, tasks: Sequence[Task], seeds: Sequence[int], results: Path, run_id: str | None = None) -> None:
        run_id = new_run_id() if run_id is None else run_id
        self.tasks = {task.name: task for task in tasks}
        self.folder = RunFolder(results, run_id)
        units = [Unit(name, seed) for name in self.tasks for seed in seeds]
        self.job = Job(run_id, units, self.folder.read_finished(units))
        self.problems: list[str] = []
        self._losses: dict[Unit, int] = {}
        self._writing = asyncio.Lock()

    def begin(self, worker_id: str, *, hold_steps: int, wire: Wire) -> Letter | None:
        """The worker's episode from its start; None when nothing is left for it."""
        unit = self.job.take(worker_id)
        if unit is None:
            return None
        task, folder = self.tasks[unit.task], self.folder.episode(unit)
        log.debug("worker %s begins %s/%s", worker_id, unit.task, unit.seed_text)
        begin = Begin(unit.seed, hold_steps, self.episode_id(unit), str(folder), wire)
        return Letter(begin, pickle.dumps(task))

    @property
    def name(self) -> str:
        """``benchmark/run_id``."""
        return f"{BENCHMARK}/{self.job.run_id}"

    def episode_id(self, unit: Unit) -> str:
        """``benchmark/run_id/task/seed``."""
        return f"{self.name}/{unit.task}/{unit.seed_text}"

    def episode_result(self, unit: Unit, result: EpisodeResult) -> dict[str, Any]:
        """A result as clients are told it."""
        return {
            "episode_id": self.episode_id(unit),
            "task_name": unit.task,
            "seed": unit.seed_text,
            "score": result.score,
            "sr": result.success_rate,
            "termination_reason": result.termination_reason,
            "steps": result.steps,
        }

    def embodiment(self, unit: Unit) -> Embodiment:
        """The robot of an episode."""
        return EMBODIMENTS[self.tasks[unit.task].embodiment]

    async def finish(self, worker_id: str, result: EpisodeResult) -> None:
        """Keep a result, and the summary on disk up to date."""
        unit = self.job.current(worker_id)
        self.job.finish(worker_id, result)
        if unit is not None:
            words = (worker_id, unit.task, unit.seed_text, result.termination_reason, result.steps, result.score)
            log.info("worker %s: %s/%s ended by %s after %d steps, score %.2f", *words)
        await self.write_summary()

    async def lose(self, worker_id: str, reason: str) -> dict[str, Any] | None:
        """An episode was lost. It begins again, but what fails again and again counts as failed: its result."""
        unit = self.job.current(worker_id)
        self.note(f"worker {worker_id}: {reason}")
        if unit is None:
            return None
        self._losses[unit] = self._losses.get(unit, 0) + 1
        if self._losses[unit] < _MOST_LOSSES:
            return None
        self.note(f"{unit.task}/{unit.seed_text} failed {_MOST_LOSSES} times and is given up")
        result = EpisodeResult(0.0, False, [], WORKER_FAILED, 0)
        await self.finish(worker_id, result)
        return self.episode_result(unit, result)

    def note(self, problem: str) -> None:
        """Keep a problem for /status, and log it; what every episode says again is told once."""
        if problem not in self.problems[-_PROBLEMS_TOLD:]:
            log.warning("%s", problem)
            self.problems = [*self.problems[-_PROBLEMS_TOLD + 1 :], problem]

    async def write_summary(self) -> None:
        """``result.json`` or ``progress.json``; a disk that refuses is noted, the results stay in memory."""
        progress, is_complete = self.job.progress(), self.job.is_complete
        async with self._writing:
            try:
                await asyncio.to_thread(self.folder.write_summary, progress, is_complete=is_complete)
            except UrlabError as problem:
                self.note(problem.message)

    def write_description(self, extra: dict[str, Any]) -> None:
        """``job.json``: what the run is made of, for reports. PathNotWritable if the results cannot be written."""
        self.folder.write_job(
            {
                "benchmark_id": BENCHMARK,
                "run_id": self.job.run_id,
                "tasks": {name: task.embodiment for name, task in self.tasks.items()},
                "seeds": sorted({unit.seed for unit in self.job.units}),
                "versions": {name: version(name) for name in ("urlab-headless", "mujoco", "numpy")},
                "python": platform.python_version(),
                "platform": platform.platform(),
                **extra,
            }
        )

    def status(self, active_workers: Sequence[str]) -> dict[str, Any]:
        """What /status says."""
        return {**self.job.status(active_workers), "benchmark_id": BENCHMARK, "problems": self.problems}
