"""The files that prove an episode: written in the background, `result_info.json` last, so that it means "finished"."""

import pickle
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from urlab.errors import FileError, UrlabError
from urlab.evaluation.actions import Action
from urlab.evaluation.episode import Episode, Observation
from urlab.evaluation.episode_record import EpisodeRecord
from urlab.evaluation.results import RESULT_INFO, write_json
from urlab.evaluation.video import Films
from urlab.files import replacing

_FRAMES_AHEAD = 16


class EvidenceWriter:
    """One background thread that writes in order. What goes wrong is kept as sentences: no result is lost by it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="urlab-evidence")
        self._room = BoundedSemaphore(_FRAMES_AHEAD)
        self._problems: list[str] = []

    def submit(self, work: Callable[[], None]) -> None:
        """Do ``work`` later; waits when too much is waiting already."""
        self._room.acquire()
        self._thread.submit(self._guarded, work)

    def flush(self) -> None:
        """Wait until everything so far is on disk, or has failed."""
        self._thread.submit(lambda: None).result()

    def take_problems(self) -> tuple[str, ...]:
        """What went wrong since the last call."""
        problems, self._problems = tuple(self._problems), []
        return problems

    def close(self) -> None:
        """Flush, and end the thread."""
        self._thread.shutdown(wait=True)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except UrlabError as problem:
            self._problems.append(problem.message)
        except (OSError, ValueError, MemoryError) as problem:
            self._problems.append(f"cannot write evidence: {problem}")
        finally:
            self._room.release()


class Evidence:
    """Of one episode: gathered step by step on the worker's thread, written by ``writer``."""

    def __init__(self, episode: Episode, folder: Path, writer: EvidenceWriter, *, videos: bool) -> None:
        self._episode, self._folder, self._writer = episode, folder, writer
        self._record = EpisodeRecord(episode.simulation.embodiment)
        self._films = Films(folder) if videos else None
        self._film_failed = False
        self._begun = _now()
        self._record.add(episode, None)

    def add(self, action: Action) -> None:
        """Keep the step that was just made."""
        self._record.add(self._episode, action)

    def see(self, observation: Observation) -> None:
        """Keep the pictures of an observation."""
        pictures = _pictures(observation)
        if self._films is not None and pictures:
            self._writer.submit(lambda: self._film(pictures))

    def finish(self, terminal: Observation) -> None:
        """The episode is done: write everything."""
        info = self._result_info()
        self._writer.submit(lambda: self._write(info, terminal))

    def discard(self) -> None:
        """The episode was given up: nothing of it stays."""
        if self._films is not None:
            self._writer.submit(self._films.discard)

    def _film(self, pictures: Mapping[str, NDArray[np.uint8]]) -> None:
        """After a failure there is no film, rather than one complaint per frame."""
        if self._films is None or self._film_failed:
            return
        try:
            self._films.add(pictures)
        except UrlabError:
            self._film_failed = True
            self._films.discard()
            raise

    def _write(self, info: dict[str, Any], terminal: Observation) -> None:
        """Every file is tried: a full disk that has no room for pictures may still take the result."""
        failed: list[str] = []
        for write in (
            self._close_films,
            self._write_meta_record,
            self._write_steps,
            lambda: self._write_terminal(terminal),
            lambda: write_json(self._folder / RESULT_INFO, info),
        ):
            try:
                write()
            except UrlabError as problem:
                failed.append(problem.message)
        if failed:
            raise FileError("; ".join(dict.fromkeys(failed)))

    def _close_films(self) -> None:
        if self._films is not None and not self._film_failed:
            self._films.close()

    def _write_meta_record(self) -> None:
        with replacing(self._folder / "meta_record.pkl") as file:
            pickle.dump(self._record.meta_record(self._episode.instruction), file, 4)

    def _write_steps(self) -> None:
        with replacing(self._folder / "trace.jsonl") as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in self._record.rows)

    def _write_terminal(self, terminal: Observation) -> None:
        once = {key: value for key, value in terminal.items() if not key.startswith("video.")}
        with replacing(self._folder / "terminal_observation.npz") as file:
            np.savez_compressed(file, allow_pickle=False, **_flat(once))

    def _result_info(self) -> dict[str, Any]:
        episode, result = self._episode, self._episode.result
        if result is None:
            raise ValueError("the episode is not done")
        return {
            "score": result.score,
            "success_rate": int(result.success),
            "log_info": {
                "episode_start_time": self._begun,
                "episode_end_time": _now(),
                "metric_score": result.nested,
            },
            "termination_reason": result.termination_reason,
            "steps": result.steps,
            "hold_steps": episode.hold_steps,
            "task_name": episode.task.name,
            "seed": f"{episode.seed:03d}",
            "instruction": episode.instruction,
            "robot_id": episode.simulation.embodiment.robot_id,
        }


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def _pictures(observation: Observation) -> dict[str, NDArray[np.uint8]]:
    return {name: data["rgb"] for name, data in observation["camera_data"].items()}


def _flat(value: Any, path: str = "") -> dict[str, NDArray[Any]]:
    """Nested dicts and lists as arrays named by their path: ``camera_data/obs_camera/depth``."""
    if isinstance(value, dict):
        return _merged(value.items(), path)
    if isinstance(value, list) and any(isinstance(one, np.ndarray | list | dict) for one in value):
        return _merged(((str(index), one) for index, one in enumerate(value)), path)
    return {} if value is None else {path: np.asarray(value)}


def _merged(parts: Iterable[tuple[str, Any]], path: str) -> dict[str, NDArray[Any]]:
    return {name: array for key, one in parts for name, array in _flat(one, f"{path}/{key}" if path else key).items()}
