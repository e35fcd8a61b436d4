"""The jobs of a server: the episodes that are wanted, the run that works on them, and requests for another."""

import asyncio
import contextlib
import logging
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from statistics import fmean
from typing import Any

from urlab.errors import UrlabError, known
from urlab.evaluation.camera_config import CameraChoice, CameraMount
from urlab.evaluation.embodiments import EMBODIMENTS, Embodiment
from urlab.evaluation.episode_result import WORKER_FAILED, EpisodeResult, Retries, seed_text
from urlab.evaluation.errors import BadJob
from urlab.evaluation.runs.plan import drawing, refuse_other_conditions
from urlab.evaluation.runs.results import RunFolder, check_run_id, new_run_id, write_result_info
from urlab.evaluation.settings import BENCHMARK, MetricShape, ServerSettings
from urlab.evaluation.tasks.task import Task, find_task, own_tasks, task_names

log = logging.getLogger("urlab.evaluation")

ALL = "all"
MAX_EPISODES = 10_000
_MAX_WORDS = 1000
_MOST_LOSSES = 3
_PROBLEMS_KEPT = 20
_MOST_RUNS = 100_000
_FILES = "; files of one's own are named when the server starts: urlab eval serve --tasks"

Scores = dict[str, dict[str, float]]


class AttemptEnd(StrEnum):
    """How an attempt at an episode ended that came to no result."""

    RESET = "reset"
    KILL = "kill"
    WORKER_DEATH = "worker_death"


@dataclass(frozen=True, order=True)
class EpisodeKey:
    """One episode that a job wants: the name of a task, and the seed that picks the layout."""

    task: str
    seed: int

    @property
    def seed_text(self) -> str:
        """The seed as folders and results spell it."""
        return seed_text(self.seed)

    def __str__(self) -> str:
        return f"{self.task}/{self.seed_text}"


class Job:
    """The episodes that are wanted, which worker runs which, and what came out. Bookkeeping only; one thread.

    Episodes are handed out in order: all seeds of the first task, then the next task. An episode belongs to
    one worker until it is finished or given back; whatever is in ``finished`` is not run again.
    """

    def __init__(
        self, run_id: str, episodes: Sequence[EpisodeKey], finished: Mapping[EpisodeKey, EpisodeResult]
    ) -> None:
        self.run_id = run_id
        self._episodes = list(dict.fromkeys(episodes))
        self._results: dict[EpisodeKey, EpisodeResult] = {
            key: finished[key] for key in self._episodes if key in finished
        }
        self._taken: dict[str, EpisodeKey] = {}

    @property
    def episodes(self) -> list[EpisodeKey]:
        """Every episode of the job, in order."""
        return list(self._episodes)

    def take(self, worker_id: str) -> EpisodeKey | None:
        """The worker's episode: the one it has, else the next free one; None when nothing is left for it."""
        if worker_id not in self._taken:
            busy = set(self._taken.values())
            free = (key for key in self._episodes if key not in self._results and key not in busy)
            key = next(free, None)
            if key is None:
                return None
            self._taken[worker_id] = key
        return self._taken[worker_id]

    def current(self, worker_id: str) -> EpisodeKey | None:
        """The episode that the worker is running."""
        return self._taken.get(worker_id)

    def give_back(self, worker_id: str) -> None:
        """The worker will not finish its episode; another may begin it anew."""
        self._taken.pop(worker_id, None)

    def finish(self, worker_id: str, result: EpisodeResult) -> None:
        """The worker's episode is over."""
        self._results[self._taken.pop(worker_id)] = result

    def add_finished(self, finished: Mapping[EpisodeKey, EpisodeResult]) -> None:
        """Take over results that were found on disk."""
        for key in self._episodes:
            if key in finished and key not in self._results and key not in self._taken.values():
                self._results[key] = finished[key]

    @property
    def is_complete(self) -> bool:
        """True when every episode has a result."""
        return len(self._results) == len(self._episodes)

    @property
    def in_a_line(self) -> str:
        """How much there is to do, for logs."""
        tasks = len({key.task for key in self._episodes})
        return f"{len(self._episodes)} episodes of {tasks} tasks, {len(self._results)} of them done"

    def scores(self) -> Scores:
        """``{task: {"score", "sr"}}``: means over the finished episodes of each task that has any."""
        return {task: _means(done) for task, done, _total in self._by_task() if done}

    def progress(self) -> Scores:
        """The same for all tasks; keys: ``(n/n)task`` when done, ``*(k/n)task``, ``*task`` before the first."""
        return {_progress_key(task, len(done), total): _means(done) for task, done, total in self._by_task()}

    def metric(self, shape: MetricShape) -> dict[str, Any]:
        """The ``metric`` of a reply; a task that is not complete is marked as in `progress`, whatever the shape."""
        if shape is MetricShape.COUNTED:
            return self.progress()
        metric: dict[str, Any] = {}
        for task, done, total in self._by_task():
            means = _means(done)
            key = task if len(done) == total else _progress_key(task, len(done), total)
            metric[key] = means["sr"] if shape is MetricShape.RATES else means
        return metric

    def status(self, active_workers: Iterable[str]) -> dict[str, Any]:
        """What /status says of it."""
        workers = sorted(active_workers)
        return {
            "status": self._word(bool(workers)),
            "run_id": self.run_id,
            "total_episodes": len(self._episodes),
            "completed_episodes": len(self._results),
            "solved_episodes": sum(one.success for one in self._results.values()),
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
        tasks: dict[str, list[EpisodeKey]] = {}
        for key in self._episodes:
            tasks.setdefault(key.task, []).append(key)
        return [
            (task, [self._results[key] for key in episodes if key in self._results], len(episodes))
            for task, episodes in tasks.items()
        ]


def _means(done: Sequence[EpisodeResult]) -> dict[str, float]:
    if not done:
        return {"score": 0.0, "sr": 0.0}
    return {"score": fmean(one.score for one in done), "sr": fmean(one.success_rate for one in done)}


def _progress_key(task: str, done: int, total: int) -> str:
    if done == total:
        return f"({done}/{total}){task}"
    return f"*({done}/{total}){task}" if done else f"*{task}"


class ActiveRun:
    """The run that a server is working on: a job, its tasks and its folder. Used by the server's event loop only.

    A ``run_id`` that has results on disk goes on where it stopped.
    """

    def __init__(self, tasks: Sequence[Task], seeds: Sequence[int], results: Path, run_id: str | None = None) -> None:
        run_id = new_run_id() if run_id is None else run_id
        self.tasks = {task.name: task for task in tasks}
        self.folder = RunFolder(results, run_id)
        episodes = [EpisodeKey(name, seed) for name in self.tasks for seed in seeds]
        self.job = Job(run_id, episodes, self._read_finished(episodes))
        self.problems: list[str] = []
        self.was_complete = self.job.is_complete
        """Whether there was nothing to do from the start."""
        self._losses: dict[EpisodeKey, int] = {}
        self._retries = _retries_by_episode(self.folder.attempts())
        self._writing = asyncio.Lock()

    @property
    def name(self) -> str:
        """``benchmark/run_id``."""
        return f"{BENCHMARK}/{self.job.run_id}"

    def episode_id(self, key: EpisodeKey) -> str:
        """``benchmark/run_id/task/seed``."""
        return f"{self.name}/{key.task}/{key.seed_text}"

    def episode_folder(self, key: EpisodeKey) -> Path:
        """Where the files of an episode go."""
        return self.folder.episode(key.task, key.seed_text)

    def embodiment(self, key: EpisodeKey) -> Embodiment:
        """The robot of an episode."""
        return EMBODIMENTS[self.tasks[key.task].embodiment]

    async def find_finished(self) -> None:
        """Take over results that workers have written since: a run that goes on under its name may still have some."""
        self.job.add_finished(await asyncio.to_thread(self._read_finished, self.job.episodes))

    async def finish(self, worker_id: str, result: EpisodeResult) -> None:
        """Keep a result, and the summary on disk up to date."""
        self.job.finish(worker_id, result)
        words = (worker_id, result.task, result.seed, result.reason, result.steps, result.score)
        log.info("worker %s: %s/%s ended by %s after %d steps, score %.2f", *words)
        await self.write_summary()

    def retries(self, key: EpisodeKey) -> Retries:
        """The attempts at an episode that came to no result so far, those of earlier runs of this name too."""
        return self._retries.get(key, Retries())

    async def abandon(self, worker_id: str, how: AttemptEnd, steps: int, detail: str | None = None) -> None:
        """An attempt at the worker's episode comes to no result: it is counted, and kept on disk."""
        key = self.job.current(worker_id)
        if key is None:
            return
        self._retries[key] = _counted(self.retries(key), how, steps)
        log.info("worker %s: an attempt at %s ended by %s after %d steps", worker_id, key, how, steps)
        row = {"task": key.task, "seed": key.seed_text, "ended_by": how, "steps": steps, "worker": worker_id}
        row |= {"detail": detail, "time": _now()}
        async with self._writing:
            try:
                await asyncio.to_thread(self.folder.add_attempt, row)
            except UrlabError as problem:
                self.note(problem.message)

    async def lose(self, worker_id: str, reason: str, steps: int = 0) -> EpisodeResult | None:
        """An episode was lost. It begins again, but what fails again and again counts as failed: its result."""
        key = self.job.current(worker_id)
        self.note(f"worker {worker_id}: {reason}")
        if key is None:
            return None
        self._losses[key] = self._losses.get(key, 0) + 1
        if self._losses[key] < _MOST_LOSSES:
            await self.abandon(worker_id, AttemptEnd.WORKER_DEATH, steps, reason)
            return None
        self.note(f"{key} failed {_MOST_LOSSES} times and is given up")
        result = EpisodeResult(key.task, key.seed_text, 0.0, False, steps=steps, reason=WORKER_FAILED)
        result = replace(result, detail=reason, retries=self.retries(key))
        await self._write_result(key, result)
        await self.finish(worker_id, result)
        return result

    async def _write_result(self, key: EpisodeKey, result: EpisodeResult) -> None:
        """In place of a worker that cannot; a disk that refuses is noted."""
        folder, robot_id = self.episode_folder(key), self.embodiment(key).robot_id
        try:
            await asyncio.to_thread(write_result_info, folder, result, (_now(), _now()), robot_id)
        except UrlabError as problem:
            self.note(problem.message)

    def note(self, problem: str) -> None:
        """Keep a problem for /status, and log it; what every episode says again is kept once."""
        if problem not in self.problems[-_PROBLEMS_KEPT:]:
            log.warning("%s", problem)
            self.problems = [*self.problems[-_PROBLEMS_KEPT + 1 :], problem]

    async def write_summary(self) -> None:
        """The means so far, on disk; a disk that refuses is noted, the results stay in memory."""
        progress, is_complete = self.job.progress(), self.job.is_complete
        async with self._writing:
            try:
                await asyncio.to_thread(self.folder.write_summary, progress, is_complete=is_complete)
            except UrlabError as problem:
                self.note(problem.message)

    def write_description(self, extra: dict[str, Any]) -> None:
        """What the run is made of, for reports. PathNotWritable if the results cannot be written."""
        self.folder.write_job(
            {
                "benchmark_id": BENCHMARK,
                "run_id": self.job.run_id,
                "tasks": {name: task.embodiment for name, task in self.tasks.items()},
                "seeds": sorted({key.seed for key in self.job.episodes}),
                "versions": {name: version(name) for name in ("urlab-headless", "mujoco", "numpy")},
                "python": platform.python_version(),
                "platform": platform.platform(),
                **extra,
            }
        )

    def status(self, active_workers: Sequence[str]) -> dict[str, Any]:
        """What /status says."""
        return {**self.job.status(active_workers), "benchmark_id": BENCHMARK, "problems": self.problems}

    def _read_finished(self, episodes: Iterable[EpisodeKey]) -> dict[EpisodeKey, EpisodeResult]:
        found = {key: self.folder.read_finished(key.task, key.seed_text) for key in episodes}
        return {key: result for key, result in found.items() if result is not None}


def _counted(retries: Retries, how: AttemptEnd, steps: int) -> Retries:
    return Retries(
        resets=retries.resets + (how is AttemptEnd.RESET),
        kills=retries.kills + (how is AttemptEnd.KILL),
        worker_deaths=retries.worker_deaths + (how is AttemptEnd.WORKER_DEATH),
        steps=retries.steps + steps,
    )


def _retries_by_episode(rows: Iterable[Mapping[str, Any]]) -> dict[EpisodeKey, Retries]:
    """From what a run of this name has kept; rows that make no sense are left out."""
    found: dict[EpisodeKey, Retries] = {}
    for row in rows:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            key, how, steps = EpisodeKey(str(row["task"]), int(row["seed"])), AttemptEnd(row["ended_by"]), row["steps"]
            found[key] = _counted(found.get(key, Retries()), how, int(steps))
    return found


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class JobRequest:
    """What a client wants to be run. ``words`` are names of tasks, `ALL`, or an embodiment (all its tasks)."""

    words: tuple[str, ...]
    run_id: str | None
    episodes: int
    seed: int


class JobFactory:
    """Makes runs from requests, and those of the tasks that the server was started with.

    A client drives one robot, so tasks of several robots become a job for each, in the order of `EMBODIMENTS`, unless
    the settings want one job. Task files of one's own are read at the start only: requests cannot name files.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        files = list(dict.fromkeys(word for word in settings.tasks if word.endswith(".toml")))
        own = dict(zip(files, own_tasks(files), strict=True))
        self._tasks = {task.name: task for task in (*map(find_task, task_names()), *own.values())}
        words = tuple(own[word].name if word in own else word for word in settings.tasks)
        self._all = JobRequest(words, settings.run_id, settings.episodes, settings.seed)
        self._own = [self._all] if settings.one_job else self._by_robot(self._all)
        self._place, self._own_run = 0, ""

    def first_run(self) -> ActiveRun:
        """The first job of the server's own."""
        return self._begin(self._own[0])

    def next_run(self, done: ActiveRun) -> ActiveRun | None:
        """What follows a complete run of the server's own: the next robot's job, after the last the first one again.

        None if clients started that run, or if it was complete from the start: its name was asked for.
        """
        if done.was_complete or done.job.run_id != self._own_run:
            return None
        self._place = (self._place + 1) % len(self._own)
        request = self._own[self._place]
        return self._begin(replace(request, run_id=self._unused(request.run_id)))

    def _begin(self, request: JobRequest) -> ActiveRun:
        run = self.run(request)
        self._own_run = run.job.run_id
        return run

    def _unused(self, run_id: str | None) -> str | None:
        """The run's name, with a number if it has a folder already."""
        if run_id is None:
            return None
        names = (run_id, *(f"{run_id}-{number}" for number in range(2, _MOST_RUNS)))
        return next(name for name in names if not RunFolder(self._settings.results, name).path.exists())

    def _by_robot(self, request: JobRequest) -> list[JobRequest]:
        tasks = self._asked(request.words)
        robots = [one for one in EMBODIMENTS if any(task.embodiment == one for task in tasks)]
        if len(robots) < 2:
            return [request]
        words = {robot: tuple(task.name for task in tasks if task.embodiment == robot) for robot in robots}
        names = {robot: None if request.run_id is None else f"{request.run_id}-{robot}" for robot in robots}
        return [replace(request, words=words[robot], run_id=names[robot]) for robot in robots]

    def _asked(self, words: Iterable[str]) -> list[Task]:
        return list({task.name: task for word in words for task in self._named(word)}.values())

    def run(self, request: JobRequest) -> ActiveRun:
        """The run that was asked for, its folder begun; BadJob names what cannot be."""
        if not 1 <= request.episodes <= MAX_EPISODES or not 0 <= request.seed < 2**31:
            raise BadJob(f"episodes must be 1 to {MAX_EPISODES} and seed a whole number that is not negative")
        if request.run_id is not None:
            check_run_id(request.run_id)
        tasks = self._asked(request.words)
        if not tasks:
            raise BadJob(f"no tasks were named; tasks: {known(self._tasks)}, or {ALL}")
        seeds = range(request.seed, request.seed + request.episodes)
        run = ActiveRun(tasks, seeds, self._settings.results, request.run_id)
        meaning = {None: "by the client's generation", True: "relative", False: "absolute"}[self._settings.is_rel]
        described = {**self._pictures(tasks), "actions_without_is_rel": meaning}
        digests = {task.name: task.digest for task in tasks}
        before = refuse_other_conditions(run.folder.path, {**described, "task_digests": digests})
        run.write_description({**described, "task_digests": {**before, **digests}})
        return run

    def _pictures(self, tasks: Sequence[Task]) -> dict[str, Any]:
        """What policies see, for those who read the numbers: which cameras, how large, and what draws them."""
        cameras, choice = self._settings.cameras, self._settings.camera_choice or CameraChoice()
        described: dict[str, Any] = {"cameras": cameras, **drawing(cameras=cameras)}
        if cameras:
            robots = {task.name: (EMBODIMENTS[task.embodiment], task) for task in tasks}
            described["camera_sizes"] = {
                name: {one.name: _size(one) for one in choice.mounts(robot.name, task.cameras or robot.cameras)}
                for name, (robot, task) in robots.items()
            }
        return described

    def read(self, data: Mapping[str, object]) -> JobRequest:
        """A request from the body of /start_new_job; ``episodes`` and ``seed`` are ours and optional."""
        request = replace(self._all, words=_words(data.get("config_path")), run_id=_run_id(data.get("run_id")))
        return replace(
            request,
            episodes=_whole("episodes", data.get("episodes"), request.episodes),
            seed=_whole("seed", data.get("seed"), request.seed),
        )

    def _named(self, word: str) -> list[Task]:
        if word == ALL:
            return list(self._tasks.values())
        name = PurePosixPath(word).stem if word.endswith((".yml", ".yaml", ".toml", ".json")) else word
        if name in self._tasks:
            return [self._tasks[name]]
        found = [task for task in self._tasks.values() if task.embodiment == name]
        if not found:
            robots = known({task.embodiment for task in self._tasks.values()})
            raise BadJob(
                f"there is no task {word[:60]!r}; tasks: {known(self._tasks)}; all tasks of a robot: {robots}; {ALL}"
                + (_FILES if word.endswith(".toml") else "")
            )
        return found


def _size(mount: CameraMount) -> str:
    return f"{mount.width} x {mount.height}{' and depth' if mount.depth else ''}"


def _words(value: object) -> tuple[str, ...]:
    words: Sequence[object] = value if isinstance(value, list | tuple) else ()
    good = [word.strip() for word in words if isinstance(word, str) and word.strip()]
    if not good or len(good) != len(words) or len(good) > _MAX_WORDS:
        raise BadJob("config_path must be a list of names of tasks, not empty, such as ['all']")
    return tuple(good)


def _run_id(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise BadJob(f"run_id must be text or null, not {type(value).__name__}")
    return value


def _whole(field: str, value: object, default: int) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadJob(f"{field} must be a whole number, not {type(value).__name__}")
    return value
