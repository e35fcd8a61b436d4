"""Runs as datasets: the episodes of an evaluation run in the formats of `urlab.export`.

A sample is what the policy was shown at a control step, and the action that it sent. Pictures are drawn when the export
is made, from the states that the run has kept, by the renderer of the evaluation: they are those that the policy saw.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from urlab.compile import CompiledScene
from urlab.errors import BadValue, UrlabError, known
from urlab.evaluation.camera_config import CameraMount
from urlab.evaluation.embodiments import EMBODIMENTS, Embodiment
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.runs.results import STATES, TRACE, Run, RunFolderError, read_run
from urlab.evaluation.runs.states import EpisodeStates, read_states
from urlab.evaluation.simulation.actions import ControlType
from urlab.evaluation.simulation.kinematics import Kinematics
from urlab.evaluation.simulation.scene import ROBOT
from urlab.evaluation.simulation.simulation import Simulation
from urlab.evaluation.tasks.task import Task, find_task
from urlab.export import (
    CameraUse,
    Clip,
    EpisodeOutcome,
    ExportFormat,
    ExportSource,
    RecordedEpisode,
    RecordedState,
    export_format,
)
from urlab.paths import FileRoots
from urlab.recording import PlayableRecording, RecordedJoint, RecordedSignals, Recording, save_path
from urlab.recording.player import JointMapping
from urlab_wire.pixels import Bytes

CONTROL_HZ = 30.0
_POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")

Progress = Callable[[int, int], None]
"""Called with the frames that are written, and with all that will be."""


@dataclass(frozen=True)
class RunSelection:
    """Which episodes of a run: of the tasks in ``only`` (none is all), and with ``successful`` those that succeeded."""

    only: tuple[str, ...] = ()
    successful: bool = False

    def has(self, result: EpisodeResult) -> bool:
        """Whether an episode is chosen."""
        return (not self.only or result.task in self.only) and (result.success or not self.successful)


@dataclass(frozen=True)
class ExportedRun:
    """What was written, and what the user should know of it."""

    path: Path
    format: str
    episodes: int
    frames: int
    warnings: list[str] = field(default_factory=list)


def export_run(
    folder: Path,
    out: Path,
    word: str,
    *,
    chosen: RunSelection | None = None,
    cameras: Sequence[str] | None = None,
    size: tuple[int, int] | None = None,
    task: str | None = None,
    own_tasks: Iterable[Task] = (),
    progress: Progress | None = None,
) -> ExportedRun:
    """Write the episodes of a run as one dataset of a format; BadValue, RunFolderError or PathNotWritable say why not.

    ``cameras`` are drawn, in their own size or ``size`` (width, height); None is what the format does by itself.
    ``task`` replaces the instructions. ``own_tasks`` are those of the run that are not shipped, which pictures need.
    """
    made = export_format(word)
    if made.cameras is CameraUse.ONE:
        raise BadValue(f"format {word} is one film, and a run has films of its own: they stand beside its results")
    made.check()
    path = save_path(str(out.absolute()), out.absolute().parent, FileRoots(own_rights=True), made.kind)
    made.check_target(path)
    found, warnings = _read(read_run(folder), chosen or RunSelection(), task)
    _check_actions(found)
    episodes = _episodes(found)
    _check_episodes(made, episodes)
    scenes = _EpisodeScenes(found, {one.name: one for one in own_tasks})
    mounts = _mounts(found, made, cameras, size)
    scenes.mounts = tuple(mounts.values())
    pictures = {name: _EpisodePictures(scenes, mount) for name, mount in mounts.items()}
    source = ExportSource(scenes.scene_of, episodes, pictures, _about(found))
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, source.total)

    try:
        made(CONTROL_HZ).write(source, path, advance)
    finally:
        scenes.close()
    return ExportedRun(path, word, len(episodes), source.total, warnings)


# -- what the run has kept ----------------------------------------------------------------------------------------


class _SentAction(msgspec.Struct):
    control_type: ControlType
    action: Any
    is_rel: bool

    def numbers(self) -> list[float]:
        """All of them, one after the other."""
        if self.control_type is ControlType.JOINT_POSITION:
            return list(self.action)
        arms = [self.action] if isinstance(self.action[0][0], int | float) else self.action
        return [number for arm in arms for part in arm for number in part]


class _TraceRow(msgspec.Struct):
    score: float
    action: _SentAction | None


@dataclass(frozen=True, eq=False)
class _KeptEpisode:
    """An episode of a run with all that was kept of it. ``name`` is its folder in the run's."""

    result: EpisodeResult
    run: Run
    task: str
    states: EpisodeStates
    actions: list[_SentAction]
    scores: NDArray[np.float64]

    @property
    def name(self) -> str:
        return f"{self.result.task}/{self.result.seed}"

    @property
    def robot(self) -> Embodiment:
        return EMBODIMENTS[self.states.about.robot]


def _read(run: Run, chosen: RunSelection, task: str | None) -> tuple[list[_KeptEpisode], list[str]]:
    """The episodes that can be exported, and sentences about those that cannot."""
    tasks = {one.task for one in run.episodes}
    if unknown := [one for one in chosen.only if one not in tasks]:
        raise BadValue(f"run {run.name} has no episodes of {unknown[0]!r}; it has: {known(sorted(tasks))}")
    results = [one for one in run.episodes if chosen.has(one)]
    if not results:
        raise BadValue(f"run {run.name} has no successful episode" if chosen.successful else f"run {run.name} is empty")
    read = [(one, _kept(run, one, task)) for one in results]
    lacking = [f"{one.task}/{one.seed}" for one, kept in read if kept is None]
    if len(lacking) == len(read):
        raise RunFolderError(
            f"run {run.name} has no {STATES} and {TRACE} in {lacking[0]}: a server that is far away keeps them on its "
            "own machine, and runs of older versions have none; run it again"
        )
    words = f"{len(lacking)} episodes are left out, as no step of them was kept: {known(lacking)}"
    found = [kept for _, kept in read if kept is not None]
    if unknown := [one.states.about.robot for one in found if one.states.about.robot not in EMBODIMENTS]:
        raise RunFolderError(f"run {run.name} is of {unknown[0]!r}, a robot that this version does not have")
    return found, [words] if lacking else []


def _kept(run: Run, result: EpisodeResult, task: str | None) -> _KeptEpisode | None:
    """None where an episode has no step, or its files are not there."""
    folder = run.folder / result.task / result.seed
    states, rows = read_states(folder), _trace(folder / TRACE)
    if states is None or not rows or len(states.time) < 2:
        return None
    if len(rows) != len(states.time):
        raise RunFolderError(f"{folder}: {TRACE} has {len(rows)} rows, {STATES} {len(states.time)}")
    words = task or result.instruction or result.task
    scores = np.array([row.score for row in rows])
    return _KeptEpisode(result, run, words, states, [row.action for row in rows[1:] if row.action], scores)


def _trace(path: Path) -> list[_TraceRow]:
    try:
        return [msgspec.json.decode(line, type=_TraceRow) for line in path.read_bytes().splitlines()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as wrong:
        raise RunFolderError(f"cannot read {path}: {wrong}") from wrong


def _check_actions(found: Sequence[_KeptEpisode]) -> None:
    """BadValue unless the policy sent one kind of actions, as the columns of a dataset are."""
    kinds = {(one.control_type, one.is_rel): kept.name for kept in found for one in kept.actions}
    if len(kinds) > 1:
        words = [f"{'relative' if is_rel else 'absolute'} {word} in {name}" for (word, is_rel), name in kinds.items()]
        raise BadValue(f"the policy sent actions of several kinds, which are no columns: {'; '.join(words)}")


def _check_episodes(made: type[ExportFormat], episodes: Sequence[RecordedEpisode]) -> None:
    """BadValue where these make no dataset of that format."""
    try:
        made.check_episodes(episodes)
    except BadValue as wrong:
        tasks = {one.name.rpartition("/")[0] for one in episodes}
        advice = "; choose among its tasks, --only TASK" if len(tasks) > 1 else ""
        raise BadValue(f"{wrong.message}{advice}") from wrong


# -- as recordings ------------------------------------------------------------------------------------------------


def _episodes(found: Sequence[_KeptEpisode]) -> list[RecordedEpisode]:
    """Of runs with several scenes the objects are left out: they have no columns in common."""
    is_one_scene = len({one.states.about.joints for one in found}) == 1
    return [_episode(one, has_environment=is_one_scene) for one in found]


def _episode(kept: _KeptEpisode, *, has_environment: bool) -> RecordedEpisode:
    states, result = kept.states, kept.result
    recording = _recording(kept)
    q, v = (np.arange(one.shape[1], dtype=np.intp) for one in (states.qpos, states.qvel))
    mapping = JointMapping(tuple((one.name, one.name) for one in recording.joints), q, q, v, v)
    playable, last = PlayableRecording(kept.name, recording, mapping), len(states.time) - 1
    clip = Clip(playable, 0, last, len(v), states.qpos[0], states.fixed[:, :3], states.fixed[:, 3:])
    facts = {"score": result.score, "task_name": result.task, "seed": int(result.seed)}
    facts["termination_reason"] = result.reason or "unknown"
    outcome = EpisodeOutcome(result.success, np.diff(kept.scores, prepend=kept.scores[0]), facts)
    joints = tuple(f"{ROBOT}_{name}" for name in kept.robot.joints)
    return RecordedEpisode(clip, clip.all_frames(), kept.task, joints, has_environment, outcome)


def _recording(kept: _KeptEpisode) -> Recording:
    """Its controls are the actions as they were sent; none has led to the first state."""
    states, robot = kept.states, kept.robot
    joints = tuple(RecordedJoint(*one) for one in states.about.joints)
    sent = np.array([one.numbers() for one in kept.actions])
    actions = np.concatenate((np.full((1, sent.shape[1]), np.nan), sent))
    places = _places(joints)
    measured = states.qpos[:, [places[f"{ROBOT}_{name}"] for name in robot.joints]]
    hands = np.array([_hands(robot, row) for row in measured])
    signals = RecordedSignals(_action_names(robot, kept.actions[0]), tuple((name, 7) for name in _hand_names(robot)))
    return Recording(kept.name, joints, states.time, states.qpos, states.qvel, signals, actions, hands)


def _places(joints: Sequence[RecordedJoint]) -> dict[str, int]:
    starts = np.cumsum([0, *(one.qpos_dim for one in joints)]).tolist()
    return {one.name: start for one, start in zip(joints, starts, strict=False)}


def _action_names(robot: Embodiment, action: _SentAction) -> tuple[str, ...]:
    if action.control_type is ControlType.JOINT_POSITION:
        return robot.joints
    return tuple(name for arm in robot.arms for name in (*(f"{arm.name}_{one}" for one in _POSE), *arm.gripper.joints))


def _hand_names(robot: Embodiment) -> list[str]:
    return ["ee_pose"] if len(robot.arms) == 1 else [f"{arm.name}_ee_pose" for arm in robot.arms]


@cache
def _kinematics(robot: str) -> Kinematics:
    return Kinematics(EMBODIMENTS[robot])


def _hands(robot: Embodiment, joints: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the hands are, as observations tell it."""
    poses = _kinematics(robot.name).ee_poses(joints)
    return np.concatenate([np.concatenate((one.pos, one.quat_wxyz)) for one in poses])


def _about(found: Sequence[_KeptEpisode]) -> dict[str, Any]:
    first = found[0]
    tasks = list(dict.fromkeys(one.result.task for one in found))
    return {
        "level": tasks[0] if len(tasks) == 1 else None,
        "timestep": 1 / CONTROL_HZ,
        "run": first.run.name,
        "policy": first.run.policy,
        "robot": first.robot.name,
        "control_type": first.actions[0].control_type.value,
        "is_rel": first.actions[0].is_rel,
    }


# -- pictures -----------------------------------------------------------------------------------------------------


def _mounts(
    found: Sequence[_KeptEpisode],
    made: type[ExportFormat],
    cameras: Sequence[str] | None,
    size: tuple[int, int] | None,
) -> dict[str, CameraMount]:
    """The cameras that are drawn, by name, as the first episode has them; BadValue if others have them otherwise."""
    if made.cameras is CameraUse.NONE and cameras:
        raise BadValue(f"format {made.name} has no pictures: leave the cameras out")
    of_first = {one.name: one for one in found[0].states.about.cameras}
    wanted = cameras if cameras is not None else of_first if made.cameras is CameraUse.ALL else ()
    for kept in found:
        has = {one.name: one for one in kept.states.about.cameras}
        for name in wanted:
            if name not in has:
                raise BadValue(f"{kept.name} has no camera {name!r}; it has: {known(has)}")
            if size is None and (has[name].width, has[name].height) != (of_first[name].width, of_first[name].height):
                raise BadValue(f"camera {name!r} has another size in {kept.name} than in {found[0].name}: give a size")
    return {name: of_first[name] if size is None else of_first[name].resized(*size) for name in wanted}


class _EpisodeScenes:
    """The scenes of episodes; one at a time is there. For one thread."""

    def __init__(self, found: Sequence[_KeptEpisode], own_tasks: Mapping[str, Task]) -> None:
        self._kept = {one.name: one for one in found}
        self._own_tasks = own_tasks
        self.mounts: tuple[CameraMount, ...] = ()
        """The cameras that are drawn: names, and sizes for all episodes."""
        self._simulation: Simulation | None = None
        self._shown = ""

    def scene_of(self, name: str) -> CompiledScene:
        """What an episode took place in."""
        return self.simulation_of(name).scene

    def simulation_of(self, name: str) -> Simulation:
        """The simulation of an episode's task, with what was drawn for the episode."""
        if self._simulation is None or self._shown != name:
            kept = self._kept[name]
            before = self._kept.get(self._shown)
            if self._simulation is None or before is None or not _is_alike(before, kept):
                self.close()
                self._simulation = self._made(kept)
            self._simulation.draw_model(int(kept.result.seed))
            self._shown = name
        return self._simulation

    def _made(self, kept: _KeptEpisode) -> Simulation:
        about, task = kept.states.about, self._task(kept)
        sizes = {one.name: (one.width, one.height) for one in self.mounts}
        mounts = tuple(_sized(one, sizes[one.name]) for one in about.cameras if one.name in sizes)
        simulation = Simulation(task, replace(kept.robot, cameras=mounts), cameras=bool(mounts))
        joints = [(one.name, one.qpos.stop - one.qpos.start) for one in simulation.scene.joints]
        if joints != [(name, nq) for name, nq, _ in about.joints]:
            simulation.close()
            raise BadValue(f"the scene of {task.name!r} has other joints now than in the run: {_ANEW}")
        return simulation

    def _task(self, kept: _KeptEpisode) -> Task:
        name = kept.result.task
        try:
            task = self._own_tasks.get(name) or find_task(name)
        except UrlabError as unknown:
            raise BadValue(f"{name!r} is no shipped task: name its file, --task-file {name}.toml") from unknown
        if task.digest != kept.states.about.task_digest:
            raise BadValue(f"task {name!r} was changed since the run, so its scene cannot be drawn: {_ANEW}")
        return task

    def close(self) -> None:
        """Give back what drawing needed. May be called twice."""
        if self._simulation is not None:
            self._simulation.close()
        self._simulation = None


_ANEW = "run it again, or export without cameras as lerobot or parquet, which need no scene"


def _is_alike(one: _KeptEpisode, other: _KeptEpisode) -> bool:
    return one.result.task == other.result.task and one.states.about == other.states.about


def _sized(mount: CameraMount, size: tuple[int, int]) -> CameraMount:
    return mount if (mount.width, mount.height) == size else mount.resized(*size)


class _EpisodePictures:
    """What one camera of a policy saw."""

    def __init__(self, scenes: _EpisodeScenes, mount: CameraMount) -> None:
        self._scenes, self._name = scenes, mount.name
        self.size = (mount.width, mount.height)

    def draw(self, state: RecordedState) -> Bytes:
        return self._scenes.simulation_of(state.recording).picture(self._name, state)

    def close(self) -> None:
        self._scenes.close()
