"""The folder of a run: who writes and reads it need to know no file name.

A run is ``<results>/<benchmark>/<run_id>/`` with ``<task>/<seed>/result_info.json`` for each episode, written by the
worker when all other files of the episode are there. ``job.json`` (of the server) and ``run_info.json`` (of `urlab eval
run`) tell the conditions; ``progress.json`` or ``result.json`` has the means, ``attempts.jsonl`` the attempts at
episodes that came to no result. `read_run` also takes ``result.json`` of an episode, which a run keeps of a server that
is far away, and ``<seed>_success/sr_info.json`` of the first GenManip servers. Files appear whole or not at all.
"""

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from urlab.evaluation.episode_result import EpisodeResult, Retries
from urlab.evaluation.errors import BadJob
from urlab.evaluation.settings import BENCHMARK
from urlab.files import not_writable, replacing

T = TypeVar("T")

TRACE = "trace.jsonl"
STATES = "states.npz"
META_RECORD = "meta_record.pkl"
TERMINAL_OBSERVATION = "terminal_observation.npz"

_RESULT_INFO = "result_info.json"
_CLIENT_RESULT = "result.json"
_EPISODE_FILES = (_RESULT_INFO, _CLIENT_RESULT, "sr_info.json")
"""In the order in which they are believed."""

_RUN_INFO, _JOB_INFO = "run_info.json", "job.json"
_COMPLETE, _PROGRESS = "result.json", "progress.json"
_ATTEMPTS = "attempts.jsonl"
_LONGEST_RUN_ID = 200
_LONGEST_NAME = 255
"""In bytes, of one folder on most file systems."""
_MAX_LISTED = 5
NO_PICTURES = "none, as there are no cameras"
"""The renderer of a run without pictures."""

_OLD_SUFFIXES = ("_success", "_failure")


class RunFolderError(Exception):
    """A folder that holds no results; the message says what is missing."""


@dataclass(frozen=True)
class Run:
    """The episodes of a run, by task and seed, and the conditions under which they ran."""

    name: str
    folder: Path
    info: dict[str, Any]
    episodes: tuple[EpisodeResult, ...]

    @property
    def expected(self) -> int:
        """How many episodes the run was to have; as many as it has, where that was not written down."""
        tasks, seeds = self.info.get("tasks"), self.info.get("seeds")
        planned = len(tasks) * len(seeds) if isinstance(tasks, dict) and isinstance(seeds, list) else 0
        return max(int(self.info.get("total_episodes", planned)), len(self.episodes))

    @property
    def hold_steps(self) -> tuple[int, ...]:
        """How many control steps subgoals had to last: one number, unless several kinds of clients took part."""
        return tuple(sorted({one.hold_steps for one in self.episodes if one.hold_steps is not None}))

    @property
    def drawing(self) -> str | None:
        """What the policy's pictures were drawn by, in words; None without pictures, or if it was not written down."""
        renderer, profile = self.info.get("renderer"), self.info.get("render_profile")
        if renderer in (None, NO_PICTURES):
            return None
        return f"{renderer}, render profile {profile or 'not recorded'}"

    @property
    def task_digests(self) -> dict[str, str]:
        """What tasks were when they ran: `Task.digest` by name, as far as it was written down."""
        found = self.info.get("task_digests")
        return {str(name): str(digest) for name, digest in found.items()} if isinstance(found, dict) else {}

    @property
    def policy(self) -> str:
        """The policy that was evaluated, as far as it is known."""
        return str(self.info.get("policy") or self.name)


def read_run(folder: Path) -> Run:
    """Read a run's folder; RunFolderError when it is none. Episodes that are half written are left out."""
    if not _is_folder(folder):
        raise RunFolderError(f"there is no folder {folder}")
    _refuse_several(folder)
    found: dict[tuple[str, str], EpisodeResult] = {}
    for name in reversed(_EPISODE_FILES):
        found.update({one.key: one for one in _episodes(folder, name)})
    if not found:
        raise RunFolderError(f"{folder} holds no results: a run has <task>/<seed>/{_RESULT_INFO}")
    info = {**_json(folder / _JOB_INFO), **_json(folder / _RUN_INFO)}
    abandoned = len(_attempts(folder))
    info |= {"abandoned_attempts": abandoned} if abandoned else {}
    return Run(str(info.get("run_id") or folder.name), folder, info, tuple(found[key] for key in sorted(found)))


def _is_folder(path: Path) -> bool:
    """Also of names that no folder can have, of which Python says so by raising."""
    try:
        return path.is_dir()
    except OSError:
        return False


def named_apart(runs: Sequence[Run]) -> list[Run]:
    """The runs under names that differ: their policies' if those do, else their own, with numbers if need be."""
    for names in ([run.policy for run in runs], [run.name for run in runs]):
        if len(set(names)) == len(names):
            return [replace(run, name=name) for run, name in zip(runs, names, strict=True)]
    return [replace(run, name=f"{run.name} ({number})") for number, run in enumerate(runs, 1)]


class RunFolder:
    """Where one run keeps its results."""

    def __init__(self, results: Path, run_id: str) -> None:
        self.path = results.absolute() / BENCHMARK / check_run_id(run_id)

    def episode(self, task: str, seed: str) -> Path:
        """The folder of one episode."""
        return self.path / task / seed

    def read_finished(self, task: str, seed: str) -> EpisodeResult | None:
        """The result of an episode that a worker has finished; without a readable one it will be run again."""
        folder = self.episode(task, seed)
        document = _json(folder / _RESULT_INFO)
        with contextlib.suppress(TypeError, ValueError):
            if {"score", "success_rate"} <= document.keys():
                return _result(task, seed, document, folder)
        return None

    def write_job(self, description: Mapping[str, Any]) -> None:
        """What the run is made of, as the server knows it."""
        _write_json(self.path / _JOB_INFO, description)

    def write_info(self, conditions: Mapping[str, Any]) -> None:
        """The conditions of the run, as the one who drives it knows them."""
        _write_json(self.path / _RUN_INFO, conditions)

    def write_summary(self, progress: Mapping[str, Any], *, is_complete: bool) -> None:
        """The means so far; the file's name says whether the run is complete."""
        _write_json(self.path / (_COMPLETE if is_complete else _PROGRESS), progress)
        with contextlib.suppress(OSError):
            (self.path / (_PROGRESS if is_complete else _COMPLETE)).unlink(missing_ok=True)

    def add_attempt(self, row: Mapping[str, Any]) -> None:
        """Keep an attempt at an episode that came to no result; PathNotWritable if that cannot be."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with open(self.path / _ATTEMPTS, "a", encoding="utf-8", opener=_open_no_link) as file:
                file.write(json.dumps(row) + "\n")
        except OSError as problem:
            raise not_writable(self.path / _ATTEMPTS, problem.strerror or str(problem)) from problem

    def attempts(self) -> list[dict[str, Any]]:
        """The attempts that came to no result, as they were kept."""
        return _attempts(self.path)

    def keep_result(self, result: EpisodeResult) -> None:
        """Write what a reply said of an episode, unless its worker has written more here."""
        folder = self.episode(*result.key)
        if not (folder / _RESULT_INFO).exists():
            numbers = {"score": result.score, "sr": result.success_rate, "steps": result.steps}
            _write_json(folder / _CLIENT_RESULT, {**numbers, "termination_reason": result.reason})

    def remove_videos(self, solved: Iterable[EpisodeResult]) -> None:
        """Remove the videos of some episodes."""
        for result in solved:
            for video in self.episode(*result.key).glob("*.mp4"):
                video.unlink(missing_ok=True)


def write_result_info(folder: Path, result: EpisodeResult, times: tuple[str, str], robot_id: str) -> None:
    """The file that says that an episode is finished; ``times`` are its begin and end as ISO texts."""
    _write_json(
        folder / _RESULT_INFO,
        {
            "score": result.score,
            "success_rate": int(result.success),
            "log_info": {
                "episode_start_time": times[0],
                "episode_end_time": times[1],
                "metric_score": result.nested,
            },
            "termination_reason": result.reason,
            "termination_detail": result.detail,
            "attempts": result.attempts,
            "retries": None if result.retries is None else asdict(result.retries),
            "steps": result.steps,
            "hold_steps": result.hold_steps,
            "floor": result.floor,
            "task_name": result.task,
            "seed": result.seed,
            "instruction": result.instruction,
            "robot_id": robot_id,
        },
    )


def new_run_id() -> str:
    """The local time, to the microsecond."""
    return datetime.now().astimezone().strftime("%Y-%m-%d_%H_%M_%S_%f")


def check_run_id(run_id: str) -> str:
    """``run_id`` if it can name a folder inside the results; BadJob if it would lead elsewhere."""
    parts = run_id.split("/")
    bad = any(part in ("", ".", "..") or part != part.strip() for part in parts)
    if (
        bad
        or len(run_id) > _LONGEST_RUN_ID
        or not run_id.isprintable()
        or "\\" in run_id
        or PurePosixPath(run_id).is_absolute()
    ):
        raise BadJob(
            f"run_id {run_id[:60]!r} cannot name a folder: use a relative name without '.', '..' or empty parts"
        )
    if any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts):
        raise BadJob(f"run_id {run_id[:60]!r} cannot name a folder: File name too long")
    return run_id


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Put ``value`` in place of ``path``; PathNotWritable with the reason if that cannot be."""
    with replacing(path) as file:
        file.write(json.dumps(value, indent=2).encode())


def _attempts(folder: Path) -> list[dict[str, Any]]:
    """Lines that cannot be read are left out."""
    try:
        lines = (folder / _ATTEMPTS).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
    rows = []
    for line in lines:
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return [row for row in rows if isinstance(row, dict)]


def _refuse_several(folder: Path) -> None:
    """A folder above several runs is refused with their names, rather than read as their sum."""
    runs = sorted({path.parent for name in (_RUN_INFO, _JOB_INFO) for path in folder.rglob(name)} - {folder})
    if runs:
        raise RunFolderError(f"{folder} is not one run; runs below it are: {', '.join(map(str, runs[-_MAX_LISTED:]))}")


def _episodes(folder: Path, file_name: str) -> Iterator[EpisodeResult]:
    for path in sorted(folder.rglob(file_name)):
        place = path.parent.relative_to(folder).parts
        document = _json(path)
        seed = place[-1].removesuffix(_OLD_SUFFIXES[0]).removesuffix(_OLD_SUFFIXES[1]) if place else ""
        if len(place) >= 2 and seed.isdecimal() and document:
            with contextlib.suppress(TypeError, ValueError):
                yield _result("/".join(place[:-1]), seed, document, path.parent)


def _result(task: str, seed: str, document: dict[str, Any], folder: Path) -> EpisodeResult:
    """TypeError or ValueError when a number is none."""
    log = document.get("log_info")
    log = log if isinstance(log, dict) else {}
    nested = log.get("metric_score")
    rate = _finite(document.get("success_rate", document.get("sr", 0.0)))
    return EpisodeResult(
        task=task,
        seed=seed,
        score=_finite(document.get("score", rate)),
        success=rate > 0.5,
        steps=_optional(int, document.get("steps", log.get("steps"))),
        reason=_optional(str, document.get("termination_reason", log.get("termination_reason"))),
        hold_steps=_optional(int, document.get("hold_steps")),
        instruction=_optional(str, document.get("instruction")),
        floor=_optional(_finite, document.get("floor")),
        nested=nested if isinstance(nested, list) else [],
        seconds=_seconds(log.get("episode_start_time"), log.get("episode_end_time")),
        videos={path.stem: path for path in sorted(folder.glob("*.mp4"))},
        detail=_optional(str, document.get("termination_detail")),
        retries=_retries(document.get("retries")),
    )


def _retries(found: Any) -> Retries | None:
    """TypeError or ValueError when a number is none."""
    if not isinstance(found, dict):
        return None
    return Retries(**{one.name: int(found.get(one.name, 0)) for one in fields(Retries)})


def _optional(kind: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else kind(value)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is no score")
    return number


def _seconds(begin: object, end: object) -> float | None:
    """From two times as numbers or as ISO texts."""
    try:
        if isinstance(begin, str) and isinstance(end, str):
            return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
        return float(end) - float(begin)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
