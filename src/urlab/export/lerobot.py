"""Recordings as a LeRobot dataset, version 3.0: a folder of Parquet tables, films and JSON."""

import contextlib
import hashlib
import importlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue
from urlab.export.episodes import ExportSource, LearnerSamples, RecordedEpisode, check_samples, samples_of
from urlab.export.film import Mp4
from urlab.export.formats import Advance, CameraUse, ExportFormat, require, tokens
from urlab.export.lerobot_tables import PictureStats, episode_table, feature_stats, frame_table, merged, task_table
from urlab.files import not_writable
from urlab.paths import FileKind, open_folder
from urlab.video import VideoEncoder

_INFO = "meta/info.json"
_WRITER = "urlab-headless"
_CHUNK = 1000
"""Files in a folder of files."""

_DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
_CODEC = ("-g", "2", "-crf", "23", "-preset", "veryfast")
"""A picture that stands alone every other picture: learners jump to and fro."""


class LeRobot(ExportFormat, name="lerobot"):
    """A folder. ``observation.state`` are the positions of hinges and slides, ``action`` the controls.

    ``observation.velocity``, ``observation.environment_state`` (free and ball joints), ``observation.sensors`` and
    ``observation.images.<camera>`` are there where the scene has them, ``next.reward``, ``next.done`` and
    ``next.success`` where episodes were judged. Each episode is a file of its own, and an export that was killed goes
    on after the last one that it had finished.
    """

    kind = FileKind("a LeRobot dataset, which is a folder,", "", lambda _: False)
    cameras = CameraUse.ALL
    splits = True

    def __init__(self, rate_hz: float) -> None:
        super().__init__(rate_hz)
        if rate_hz != int(rate_hz):
            raise BadValue(f"format lerobot needs a whole number of samples per second, but fps is {rate_hz:g}")

    @classmethod
    def check(cls) -> None:
        """It takes pyarrow, and ffmpeg for films."""
        require("lerobot", "pyarrow")
        Mp4.check()

    @classmethod
    def check_target(cls, path: Path) -> None:
        """Only a dataset of ours is replaced."""
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise not_writable(path, "it exists and is not a folder, so it is kept")
        try:
            if path.is_dir() and any(path.iterdir()) and not _is_ours(path):
                raise not_writable(path, "it exists and is not a LeRobot dataset of ours, so it is kept")
        except OSError as refused:
            raise not_writable(path, refused.strerror or str(refused)) from refused

    @classmethod
    def check_episodes(cls, episodes: Sequence[RecordedEpisode]) -> None:
        """Learners need controls."""
        check_samples(episodes)

    def write(self, source: ExportSource, path: Path, advance: Advance) -> None:
        """Write episode by episode into a hidden folder beside ``path``, which takes its name in the end."""
        with _work_folder(path, self._plan(source)) as work:
            rows = []
            for number, episode in enumerate(source.episodes):
                about = _finished(work, number)
                if about is None:
                    about = self._episode(work, number, episode, source, advance)
                else:
                    for _ in range(len(episode.frames)):
                        advance()
                rows.append(about)
            self._meta(work, rows, source)

    def _plan(self, source: ExportSource) -> str:
        """What is written, in a word: an export goes on only with what was begun for the same, and looked the same."""
        digest = hashlib.sha256(repr((self.rate_hz, {n: p.size for n, p in source.pictures.items()})).encode())
        for one in source.episodes:
            recording, judged = one.recording, one.outcome
            facts = None if judged is None else (judged.success, dict(judged.facts), judged.rewards.tolist())
            told = (one.name, one.task, one.robot_joints, one.has_environment, facts)
            digest.update(repr((told, recording.joints, recording.signals)).encode())
            for array in (recording.qpos, recording.qvel, recording.ctrl, recording.sensordata):
                digest.update(np.ascontiguousarray(array[one.frames]).tobytes())
        first = source.episodes[0]
        for camera in source.pictures.values():
            digest.update(camera.draw(first.clip.state(int(first.frames[0]))).tobytes())
        return digest.hexdigest()[:16]

    # -- one episode --------------------------------------------------------------------------------------------

    def _episode(
        self, work: Path, number: int, episode: RecordedEpisode, source: ExportSource, advance: Advance
    ) -> dict[str, Any]:
        samples = samples_of(episode)
        columns = _columns(samples) | _judged(episode)
        stats = {name: feature_stats(values) for name, (values, _) in columns.items()}
        stats |= self._films(work, number, episode, source, advance)
        place = {"chunk_index": number // _CHUNK, "file_index": number % _CHUNK}
        table = frame_table({name: values for name, (values, _) in columns.items()}, number, self.rate_hz)
        _write_table(table, work / _DATA_PATH.format(**place))
        features = {
            name: _feature(str(values.dtype), [values.shape[1]], names) for name, (values, names) in columns.items()
        }
        about = {"length": samples.count, "task": episode.task, "features": features, "stats": stats}
        if episode.outcome is not None:
            about["facts"] = {"success": episode.outcome.success, **episode.outcome.facts}
        _write_text(work / _DONE.format(number), json.dumps(about))
        return about

    def _films(
        self, work: Path, number: int, episode: RecordedEpisode, source: ExportSource, advance: Advance
    ) -> dict[str, Any]:
        """Draw all cameras, frame by frame; what was seen, in figures."""
        keys = _video_keys(source.pictures)
        with contextlib.ExitStack() as open_films:
            films = {}
            for name, camera in source.pictures.items():
                path = work / _VIDEO_PATH.format(
                    video_key=keys[name], chunk_index=number // _CHUNK, file_index=number % _CHUNK
                )
                path.parent.mkdir(parents=True, exist_ok=True)
                encoder = VideoEncoder(path, camera.size, self.rate_hz, _CODEC)
                films[name] = open_films.enter_context(encoder), PictureStats()
            for frame in episode.frames[:-1].tolist():
                state = episode.clip.state(frame)
                for name, camera in source.pictures.items():
                    picture = camera.draw(state)
                    films[name][0].add(picture)
                    films[name][1].add(picture)
                advance()
            advance()
        return {keys[name]: seen.figures() for name, (_, seen) in films.items()}

    # -- all of them --------------------------------------------------------------------------------------------

    def _meta(self, work: Path, rows: list[dict[str, Any]], source: ExportSource) -> None:
        tasks = list(dict.fromkeys(one["task"] for one in rows))
        keys = list(_video_keys(source.pictures).values())
        self._number_frames(work, rows, tasks)
        _write_table(task_table(tasks), work / "meta/tasks.parquet")
        table = episode_table(rows, keys, self.rate_hz, _CHUNK)
        _write_table(table, work / "meta/episodes/chunk-000/file-000.parquet")
        _write_text(work / "meta/stats.json", json.dumps(merged([one["stats"] for one in rows]), indent=4))
        for left in (work / ".done").glob("*"):
            left.unlink()
        (work / ".done").rmdir()
        _write_text(work / _INFO, json.dumps(self._info(rows, tasks, source), indent=4))

    @staticmethod
    def _number_frames(work: Path, rows: list[dict[str, Any]], tasks: list[str]) -> None:
        """Give every frame its number in the dataset, and its task's, which are known only now."""
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
        begin = 0
        for number, one in enumerate(rows):
            path = work / _DATA_PATH.format(chunk_index=number // _CHUNK, file_index=number % _CHUNK)
            table, count = parquet.read_table(path), one["length"]
            for name, values in {
                "index": np.arange(begin, begin + count),
                "task_index": np.full(count, tasks.index(one["task"])),
            }.items():
                column = table.schema.get_field_index(name)
                table = table.set_column(column, name, arrow.array(values, arrow.int64()))
            _write_table(table, path)
            begin += count

    def _info(self, rows: list[dict[str, Any]], tasks: list[str], source: ExportSource) -> dict[str, Any]:
        fps = int(self.rate_hz)
        features, keys = dict(rows[0]["features"]), _video_keys(source.pictures)
        for name, camera in source.pictures.items():
            width, height = (side + side % 2 for side in camera.size)
            about = {
                "video.fps": float(fps), "video.height": height, "video.width": width, "video.channels": 3,
                "video.codec": "h264", "video.pix_fmt": "yuv420p", "video.is_depth_map": False, "has_audio": False,
            }  # fmt: skip
            shape = _feature("video", [height, width, 3], ["height", "width", "channels"])
            features[keys[name]] = {**shape, "info": about}
        features["timestamp"] = _feature("float32", [1], None)
        features |= {
            key: _feature("int64", [1], None) for key in ("frame_index", "episode_index", "index", "task_index")
        }
        return {
            "codebase_version": "v3.0",
            "robot_type": _WRITER,
            "total_episodes": len(rows),
            "total_frames": sum(one["length"] for one in rows),
            "total_tasks": len(tasks),
            "chunks_size": _CHUNK,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "fps": fps,
            "splits": {"train": f"0:{len(rows)}"},
            "data_path": _DATA_PATH,
            "video_path": _VIDEO_PATH if source.pictures else None,
            "features": features,
        }


_DONE = ".done/{:06d}.json"


def _columns(samples: LearnerSamples) -> dict[str, tuple[NDArray[Any], list[str] | None]]:
    """The vectors of every sample, with the names of their numbers."""
    count = samples.count
    sensors = [(name, rows[:count]) for name, rows in samples.sensors.items()]
    found: dict[str, tuple[Any, list[str]]] = {
        "observation.state": (samples.joint_pos[:count], [*samples.joint_names]),
        "observation.velocity": (samples.joint_vel[:count], [*samples.joint_names]),
        "observation.environment_state": (samples.free_pos[:count], [*samples.free_names]),
        "observation.sensors": (
            np.concatenate([rows for _, rows in sensors], axis=1) if sensors else np.empty((count, 0)),
            [f"{name}[{index}]" for name, rows in sensors for index in range(rows.shape[1])],
        ),
        "action": (samples.action, [*samples.action_names]),
    }
    return {key: (values.astype(np.float32), names) for key, (values, names) in found.items() if values.shape[1]}


def _judged(episode: RecordedEpisode) -> dict[str, tuple[NDArray[Any], list[str] | None]]:
    """What each sample led to, under the names that LeRobot's own simulated datasets have."""
    if episode.outcome is None:
        return {}
    rewards = episode.outcome.rewards[1:, None].astype(np.float32)
    is_last = (np.arange(len(rewards)) == len(rewards) - 1)[:, None]
    success = is_last & episode.outcome.success
    return {"next.reward": (rewards, None), "next.done": (is_last, None), "next.success": (success, None)}


def _feature(dtype: str, shape: list[int], names: list[str] | None) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "names": names}


def _video_keys(cameras: Iterable[str]) -> dict[str, str]:
    """The features of cameras, by their names."""
    return {name: f"observation.images.{token}" for name, token in tokens(cameras, "_-").items()}


# -- the folder ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _work_folder(path: Path, plan: str) -> Iterator[Path]:
    """A hidden folder beside ``path`` that takes its name when the block ends well; what fails or is cancelled goes.

    One that a killed process left is gone on with, if it is of the same plan.
    """
    try:
        parent = open_folder(path.parent, made=[])
    except OSError as refused:
        raise not_writable(path, refused.strerror or str(refused)) from refused
    # By its descriptor: whatever takes the folder's place later is not written to.
    reached = Path(f"/proc/{os.getpid()}/fd/{parent}")
    work = reached / f".{path.name}.{plan}.part"
    try:
        for other in reached.glob(f".{path.name}.*.part"):
            if other.name != work.name:
                shutil.rmtree(other, ignore_errors=True)
        (work / ".done").mkdir(parents=True, exist_ok=True)
        try:
            yield work
            LeRobot.check_target(reached / path.name)
            if (reached / path.name).exists():
                shutil.rmtree(reached / path.name)
            work.rename(reached / path.name)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    except OSError as refused:
        raise not_writable(path, refused.strerror or str(refused)) from refused
    finally:
        os.close(parent)


def _is_ours(path: Path) -> bool:
    try:
        return bool(json.loads((path / _INFO).read_bytes()).get("robot_type") == _WRITER)
    except (OSError, ValueError, AttributeError):
        return False


def _finished(work: Path, number: int) -> dict[str, Any] | None:
    """What is known of an episode that was written whole."""
    try:
        found = json.loads((work / _DONE.format(number)).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def _write_table(table: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    importlib.import_module("pyarrow.parquet").write_table(table, unfinished)
    unfinished.replace(path)
