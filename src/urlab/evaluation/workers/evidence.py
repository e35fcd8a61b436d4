"""The files that prove an episode: written in the background, `result_info.json` last, so that it means "finished"."""

import contextlib
import pickle
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from urlab.errors import FileError, UrlabError
from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.runs.results import META_RECORD, TERMINAL_OBSERVATION, TRACE, write_result_info
from urlab.evaluation.runs.states import EpisodeStates, StateRow, StatesAbout
from urlab.evaluation.simulation.actions import Action, ControlType
from urlab.evaluation.simulation.episode import Episode, Observation
from urlab.files import part_name, replacing, sweep
from urlab.video import VideoEncoder

FPS = 30
"""Of films: one frame per control step."""
_DRAWN_EVERY = 3
"""Control steps between the pictures that are drawn inside a chunk, where the policy sees none."""
_FRAMES_AHEAD = 16
_QUICK = ("-crf", "25", "-preset", "veryfast", "-threads", "1")

Pictures = Mapping[str, NDArray[np.uint8]]
Row = dict[str, Any]


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
        self._trace = EpisodeTrace(episode.simulation.embodiment)
        self._states: list[StateRow] = []
        self._videos = EpisodeVideos(folder) if videos else None
        self._overview = _overview(episode.simulation.embodiment) if videos else None
        self._video_failed = False
        self._begun = _now()
        self._keep(None)

    def add(self, action: Action) -> None:
        """Keep the step that was just made."""
        self._keep(action)

    def _keep(self, action: Action | None) -> None:
        self._trace.add(self._episode, action)
        self._states.append(self._episode.simulation.state())

    def add_pictures(self, observation: Observation) -> None:
        """Keep the pictures of an observation."""
        pictures = {name: data["rgb"] for name, data in observation["camera_data"].items()}
        self._submit(pictures)

    def add_overview(self) -> None:
        """Keep a picture of a step that no observation shows, every few steps: one camera is enough for the eye."""
        if self._overview is not None and self._episode.timestep % _DRAWN_EVERY == 0:
            self._submit({self._overview: self._episode.simulation.picture(self._overview)})

    def finish(self, terminal: Observation, result: EpisodeResult) -> None:
        """The episode is done: write everything."""
        times = (self._begun, _now())
        self._writer.submit(lambda: self._write(result, times, terminal))

    def discard(self) -> None:
        """The episode was given up: nothing of it stays."""
        if self._videos is not None:
            self._writer.submit(self._videos.discard)

    def _submit(self, pictures: Pictures) -> None:
        timestep = self._episode.timestep
        if self._videos is not None and pictures:
            self._writer.submit(lambda: self._add_frames(pictures, timestep))

    def _add_frames(self, pictures: Pictures, timestep: int) -> None:
        """After a failure there is no video, rather than one complaint per frame."""
        if self._videos is None or self._video_failed:
            return
        try:
            self._videos.add(pictures, timestep)
        except UrlabError:
            self._video_failed = True
            self._videos.discard()
            raise

    def _write(self, result: EpisodeResult, times: tuple[str, str], terminal: Observation) -> None:
        """Every file is tried: a full disk that has no room for pictures may still take the result."""
        failed: list[str] = []
        robot_id = self._episode.simulation.embodiment.robot_id
        for write in (
            self._close_videos,
            self._write_meta_record,
            self._write_trace,
            self._write_states,
            lambda: self._write_terminal(terminal),
            lambda: write_result_info(self._folder, result, times, robot_id),
        ):
            try:
                write()
            except UrlabError as problem:
                failed.append(problem.message)
        if failed:
            raise FileError("; ".join(dict.fromkeys(failed)))

    def _close_videos(self) -> None:
        if self._videos is not None and not self._video_failed:
            self._videos.close()

    def _write_meta_record(self) -> None:
        with replacing(self._folder / META_RECORD) as file:
            pickle.dump(self._trace.meta_record(self._episode.instruction), file, 4)

    def _write_trace(self) -> None:
        with replacing(self._folder / TRACE) as file:
            file.writelines(msgspec.json.encode(row) + b"\n" for row in self._trace.rows)

    def _write_states(self) -> None:
        simulation = self._episode.simulation
        joints = tuple(
            (one.name, one.qpos.stop - one.qpos.start, one.qvel.stop - one.qvel.start)
            for one in simulation.scene.joints
        )
        robot = simulation.embodiment
        about = StatesAbout(robot.name, self._episode.task.digest, joints, robot.cameras)
        EpisodeStates.of(about, self._states).write(self._folder)

    def _write_terminal(self, terminal: Observation) -> None:
        once = {key: value for key, value in terminal.items() if not key.startswith("video.")}
        with replacing(self._folder / TERMINAL_OBSERVATION) as file:
            np.savez_compressed(file, allow_pickle=False, **_flat(once))


class EpisodeTrace:
    """One row per control step, the first for the state before any action. Values of rows are builtins."""

    def __init__(self, embodiment: Embodiment) -> None:
        self._embodiment = embodiment
        self.rows: list[Row] = []

    def add(self, episode: Episode, action: Action | None) -> None:
        """Keep the state after ``action`` (None: the first state)."""
        simulation = episode.simulation
        self.rows.append(
            {
                "timestep": episode.timestep,
                "action": None if action is None else _as_sent(action),
                "joints": simulation.joints.tolist(),
                "commanded_joints": simulation.commanded_joints.tolist(),
                "objects": {name: [*pose.pos, *pose.quat_wxyz] for name, pose in simulation.objects.items()},
                "object_joints": simulation.object_joints,
                "score": episode.score,
            }
        )

    def meta_record(self, instruction: str) -> dict[str, Any]:
        """The trace in the shape that GenManip's own tools read: they draw arrays, and joint targets as actions."""
        return {
            "joint_positions": [self._part(row, "joints") for row in self.rows],
            "gripper_positions": [self._part(row, "gripper") for row in self.rows],
            "base_positions": [np.zeros(3) for _ in self.rows],
            "instruction": instruction,
            "model_output": list(self._model_output()),
            "robot_id": self._embodiment.robot_id,
        }

    def _part(self, row: Row, part: str) -> NDArray[np.float64]:
        return np.array([number for slot in self._embodiment.slots for number in row["joints"][getattr(slot, part)]])

    def _model_output(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            if row["action"] is not None:
                base_motion = np.array(row["action"]["base_motion"])
                yield {"arm_action": np.array(row["commanded_joints"]), "base_motion": base_motion}


def _as_sent(action: Action) -> dict[str, Any]:
    """The action as a client would send it."""
    arms = [[list(one.pos), list(one.quat_wxyz), list(one.gripper)] for one in action.arms]
    ee_pose = arms[0] if len(arms) == 1 else arms
    return {
        "control_type": action.kind.value,
        "action": list(action.joints) if action.kind is ControlType.JOINT_POSITION else ee_pose,
        "is_rel": action.is_rel,
        "base_motion": list(action.base_motion),
    }


class NoVideo(UrlabError):
    """A video cannot be made; the message has the reason."""


class EpisodeVideos:
    """One mp4 per camera of one episode, each encoded by ffmpeg in its own process. One thread.

    Frame n shows control step n, so a video is as long as the episode: a step without a picture shows the one before.
    The files have their names only when all is well in the end.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._encoders: dict[str, VideoEncoder] = {}
        self._parts: dict[str, Path] = {}
        self._last: dict[str, tuple[int, NDArray[np.uint8]]] = {}

    def add(self, pictures: Pictures, timestep: int) -> None:
        """One picture per camera, (height, width, 3) RGB, of a control step; steps come in order."""
        for camera, picture in pictures.items():
            if camera not in self._encoders:
                self._encoders[camera] = self._open(camera, picture)
            before, shown = self._last.get(camera, (timestep - 1, picture))
            if before == timestep:
                continue
            try:
                for _ in range(before + 1, timestep):
                    self._encoders[camera].add(shown)
                self._encoders[camera].add(picture)
            except OSError as problem:
                raise NoVideo(f"cannot encode the video of {camera}: {_short(problem)}") from problem
            self._last[camera] = timestep, picture

    def close(self) -> None:
        """End the videos and give them their names."""
        for camera, encoder in self._encoders.items():
            try:
                encoder.close()
                self._part(camera).replace(self._folder / f"{camera}.mp4")
            except OSError as problem:
                raise NoVideo(f"cannot finish the video of {camera}: {_short(problem)}") from problem

    def discard(self) -> None:
        """End the videos and leave nothing behind."""
        for camera, encoder in self._encoders.items():
            with contextlib.suppress(OSError):
                encoder.close()
            with contextlib.suppress(OSError):
                self._part(camera).unlink(missing_ok=True)

    def _open(self, camera: str, picture: NDArray[np.uint8]) -> VideoEncoder:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            sweep([self._folder])
            return VideoEncoder(self._part(camera), (picture.shape[1], picture.shape[0]), FPS, _QUICK)
        except ImportError as problem:
            raise NoVideo("videos need imageio-ffmpeg: pip install 'urlab-headless[eval]'") from problem
        except (OSError, RuntimeError) as problem:
            raise NoVideo(f"ffmpeg cannot begin the video of {camera}: {_short(problem)}") from problem

    def _part(self, camera: str) -> Path:
        """A name that no link can have been laid under: ffmpeg would follow it."""
        if camera not in self._parts:
            self._parts[camera] = self._folder / part_name()
        return self._parts[camera]


def _overview(embodiment: Embodiment) -> str | None:
    """The camera that shows most of what happens: one that stands in the world, else one that no hand carries."""
    carried = {body for arm in embodiment.arms for body in (arm.ee_body, arm.base_body)}
    ranked = sorted(embodiment.cameras, key=lambda one: (one.body is not None, one.body in carried))
    return ranked[0].name if ranked else None


def _short(problem: BaseException) -> str:
    """In one line, however much was said."""
    return " ".join(str(problem).split())[:300]


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def _flat(value: Any, path: str = "") -> dict[str, NDArray[Any]]:
    """Nested dicts and lists as arrays named by their path: ``camera_data/obs_camera/depth``."""
    if isinstance(value, list) and any(isinstance(one, np.ndarray | list | dict) for one in value):
        value = {str(index): one for index, one in enumerate(value)}
    if not isinstance(value, dict):
        return {} if value is None else {path: np.asarray(value)}
    parts = (_flat(one, f"{path}/{key}" if path else key) for key, one in value.items())
    return {name: array for part in parts for name, array in part.items()}
