"""The folder of a run: ``<results>/<benchmark>/<run_id>/<task>/<seed>/``. Files appear whole or not at all."""

import contextlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.problems import BadJob
from urlab.evaluation.settings import BENCHMARK
from urlab.evaluation.unit import Unit
from urlab.files import replacing

RESULT_INFO = "result_info.json"
_LONGEST_RUN_ID = 200


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
    return run_id


class RunFolder:
    """Where one run keeps its results."""

    def __init__(self, results: Path, run_id: str) -> None:
        self.path = results.absolute() / BENCHMARK / check_run_id(run_id)

    def episode(self, unit: Unit) -> Path:
        """The folder of one episode."""
        return self.path / unit.task / unit.seed_text

    def read_finished(self, units: Iterable[Unit]) -> dict[Unit, EpisodeResult]:
        """The episodes that have a readable `RESULT_INFO`; others will be run again."""
        found: dict[Unit, EpisodeResult] = {}
        for unit in units:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                found[unit] = _result(json.loads((self.episode(unit) / RESULT_INFO).read_bytes()))
        return found

    def write_job(self, description: Mapping[str, Any]) -> None:
        """What the run is: ``job.json``."""
        write_json(self.path / "job.json", description)

    def write_summary(self, progress: Mapping[str, Any], *, is_complete: bool) -> None:
        """``result.json`` when all is done, ``progress.json`` until then."""
        write_json(self.path / ("result.json" if is_complete else "progress.json"), progress)
        stale = self.path / ("progress.json" if is_complete else "result.json")
        with contextlib.suppress(OSError):
            stale.unlink(missing_ok=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Put ``value`` in place of ``path``; PathNotWritable with the reason if that cannot be."""
    with replacing(path) as file:
        file.write(json.dumps(value, indent=2).encode())


def _result(info: Mapping[str, Any]) -> EpisodeResult:
    return EpisodeResult(
        score=float(info["score"]),
        success=bool(info["success_rate"]),
        nested=list(info["log_info"]["metric_score"]),
        termination_reason=str(info.get("termination_reason", "unknown")),
        steps=int(info.get("steps", 0)),
    )
