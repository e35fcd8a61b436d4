"""Reading the results of a run: what our server wrote, what GenManip's server wrote, or what a client kept.

A run is a folder with ``<task>/<seed>/result_info.json`` for each episode; ``result.json`` (a client's) and
``<seed>_success/sr_info.json`` (the first GenManip servers') are read too. ``run_info.json`` (of the run) and
``job.json`` (of the server) tell the conditions.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

RUN_INFO = "run_info.json"
JOB_INFO = "job.json"
EPISODE_FILES = ("result_info.json", "result.json", "sr_info.json")
"""In the order in which they are believed."""

_RUN_FILES = (RUN_INFO, JOB_INFO)
_MAX_LISTED = 5
_OLD_SUFFIXES = ("_success", "_failure")


class RunFolderError(Exception):
    """A folder that holds no results; the message says what is missing."""


@dataclass(frozen=True)
class EpisodeRecord:
    """One episode that came to its end. ``seed`` is as its folder is named; what nobody wrote down is None.

    ``hold_steps`` is how many control steps a subgoal had to last.
    """

    task: str
    seed: str
    score: float
    success: bool
    steps: int | None = None
    reason: str | None = None
    seconds: float | None = None
    instruction: str | None = None
    hold_steps: int | None = None
    videos: dict[str, Path] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """The same in every run that has this episode."""
        return self.task, self.seed


@dataclass(frozen=True)
class Run:
    """The episodes of a run, by task and seed, and the conditions under which they ran."""

    name: str
    folder: Path
    info: dict[str, Any]
    episodes: tuple[EpisodeRecord, ...]

    @property
    def expected(self) -> int:
        """How many episodes the run was to have; as many as it has, where nobody wrote that down."""
        tasks, seeds = self.info.get("tasks"), self.info.get("seeds")
        planned = len(tasks) * len(seeds) if isinstance(tasks, dict) and isinstance(seeds, list) else 0
        return max(int(self.info.get("total_episodes", planned)), len(self.episodes))

    @property
    def hold_steps(self) -> tuple[int, ...]:
        """How many control steps subgoals had to last: one number, unless several kinds of clients took part."""
        return tuple(sorted({one.hold_steps for one in self.episodes if one.hold_steps is not None}))

    @property
    def policy(self) -> str:
        """Who was evaluated, as far as it is known."""
        return str(self.info.get("policy") or self.name)


def read_run(folder: Path) -> Run:
    """Read a run's folder; RunFolderError when it is none. Episodes that are half written are left out."""
    if not folder.is_dir():
        raise RunFolderError(f"there is no folder {folder}")
    _refuse_several(folder)
    found: dict[tuple[str, str], EpisodeRecord] = {}
    for name in reversed(EPISODE_FILES):
        found.update({one.key: one for one in _episodes(folder, name)})
    if not found:
        raise RunFolderError(f"{folder} holds no results: a run has <task>/<seed>/result_info.json")
    info = {**_json(folder / JOB_INFO), **_json(folder / RUN_INFO)}
    return Run(str(info.get("run_id") or folder.name), folder, info, tuple(found[key] for key in sorted(found)))


def named_apart(runs: Sequence[Run]) -> list[Run]:
    """The runs under names that differ: their policies' if those do, else their own, with numbers if need be."""
    for names in ([run.policy for run in runs], [run.name for run in runs]):
        if len(set(names)) == len(names):
            return [replace(run, name=name) for run, name in zip(runs, names, strict=True)]
    return [replace(run, name=f"{run.name} ({number})") for number, run in enumerate(runs, 1)]


def _refuse_several(folder: Path) -> None:
    """Whoever names a folder above the runs is told which there are, and not given their sum."""
    runs = sorted({path.parent for name in _RUN_FILES for path in folder.rglob(name)} - {folder})
    if runs:
        raise RunFolderError(f"{folder} is not one run; runs below it are: {', '.join(map(str, runs[-_MAX_LISTED:]))}")


def _episodes(folder: Path, file_name: str) -> Iterator[EpisodeRecord]:
    for path in sorted(folder.rglob(file_name)):
        place = path.parent.relative_to(folder).parts
        document = _json(path)
        seed = place[-1].removesuffix(_OLD_SUFFIXES[0]).removesuffix(_OLD_SUFFIXES[1]) if place else ""
        if len(place) >= 2 and seed.isdecimal() and document:
            with suppress(TypeError, ValueError):
                yield _episode("/".join(place[:-1]), seed, document, path.parent)


def _episode(task: str, seed: str, document: dict[str, Any], folder: Path) -> EpisodeRecord:
    """TypeError or ValueError when a number is none."""
    log = document.get("log_info")
    log = log if isinstance(log, dict) else {}
    rate = _finite(document.get("success_rate", document.get("sr", 0.0)))
    return EpisodeRecord(
        task=task,
        seed=seed,
        score=_finite(document.get("score", rate)),
        success=rate > 0.5,
        steps=_if_told(int, document.get("steps", log.get("steps"))),
        reason=_if_told(str, document.get("termination_reason", log.get("termination_reason"))),
        seconds=_seconds(log.get("episode_start_time"), log.get("episode_end_time")),
        instruction=_if_told(str, document.get("instruction")),
        hold_steps=_if_told(int, document.get("hold_steps")),
        videos={path.stem: path for path in sorted(folder.glob("*.mp4"))},
    )


def _if_told(kind: Callable[[Any], T], value: Any) -> T | None:
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
