"""What an export writes: episodes of recordings, and the cameras that look at them."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.compile.compiled_scene import CompiledScene
from urlab.errors import BadValue
from urlab.export.clip import Clip, RecordedState
from urlab.export.pictures import StatePictures
from urlab.recording import Recording

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EpisodeOutcome:
    """What an episode came to. ``rewards`` has a number for every frame: what the step that led to it gained.

    ``facts`` are further values of the whole episode, by names, each a number, a text or a truth value.
    """

    success: bool
    rewards: Array
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RecordedEpisode:
    """Frames of a clip, by their indices in its recording. ``task`` says in words what is done in it.

    ``robot_joints`` are those that are the robot's own state, in that order, and all others are its environment; None:
    hinges and slides are its state. Without ``has_environment`` learners get the robot's state alone. An ``outcome`` is
    known of episodes that were judged.
    """

    clip: Clip
    frames: NDArray[np.intp]
    task: str
    robot_joints: tuple[str, ...] | None = None
    has_environment: bool = True
    outcome: EpisodeOutcome | None = None

    @property
    def recording(self) -> Recording:
        """What it is a part of."""
        return self.clip.playable.recording

    @property
    def name(self) -> str:
        """The recording's."""
        return self.clip.playable.name

    def states(self) -> list[RecordedState]:
        """The states of its frames."""
        return [self.clip.state(frame) for frame in self.frames.tolist()]


@dataclass(frozen=True, eq=False)
class ExportSource:
    """Episodes, and pictures of their states by the names of cameras.

    ``scene_of`` gives the scene that a recording of that name is of. ``about`` is what the files say of themselves:
    versions, the level, the timestep.
    """

    scene_of: Callable[[str], CompiledScene]
    episodes: Sequence[RecordedEpisode]
    pictures: Mapping[str, StatePictures] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The frames of all episodes."""
        return sum(len(one.frames) for one in self.episodes)

    def close(self) -> None:
        """Give back what drawing needed."""
        for one in self.pictures.values():
            one.close()


@dataclass(frozen=True, eq=False)
class LearnerSamples:
    """An episode for learners: what was seen, and the controls that followed. Rows are samples, one fewer than frames.

    The action of a sample is what was applied in the step right after it. ``frames`` has one more, the last next state.
    """

    frames: NDArray[np.intp]
    action_names: tuple[str, ...]
    action: Array
    joint_names: tuple[str, ...]
    joint_pos: Array
    joint_vel: Array
    free_names: tuple[str, ...]
    free_pos: Array
    sensors: dict[str, Array]

    @property
    def count(self) -> int:
        """How many samples there are."""
        return len(self.frames) - 1

    @property
    def columns(self) -> tuple[Any, ...]:
        """What its numbers are: samples of one file have the same."""
        sensors = [(name, rows.shape[1]) for name, rows in self.sensors.items()]
        return self.action_names, self.joint_names, self.free_names, sensors


def samples_of(episode: RecordedEpisode) -> LearnerSamples:
    """The samples of an episode; BadValue when there are no controls, or too few frames.

    All arrays but ``action`` have one row more: that of the last frame.
    """
    recording = episode.recording
    if not recording.signals.controls:
        raise BadValue(
            f"recording {episode.name!r} has no controls, which learners need as actions: it is of a scene without "
            "actuators, or of another writer"
        )
    frames = episode.frames
    joints, free = _columns(recording, episode.robot_joints)
    free = free if episode.has_environment else []
    following = np.minimum(frames[:-1] + 1, recording.frame_count - 1)
    sensors, begin = {}, 0
    for name, dim in recording.signals.sensors:
        sensors[name] = recording.sensordata[frames, begin : begin + dim]
        begin += dim
    return LearnerSamples(
        frames=frames,
        action_names=recording.signals.controls,
        action=recording.ctrl[following],
        joint_names=tuple(name for name, _, _ in joints),
        joint_pos=recording.qpos[frames][:, [q for _, q, _ in joints]],
        joint_vel=recording.qvel[frames][:, [v for _, _, v in joints]],
        free_names=tuple(name for name, _ in free),
        free_pos=recording.qpos[frames][:, [q for _, q in free]],
        sensors=sensors,
    )


def check_alike(episodes: Sequence[RecordedEpisode]) -> None:
    """BadValue unless all have the same joints and signals, as the columns of one file do."""
    first = episodes[0].recording
    for one in episodes:
        if (one.recording.joints, one.recording.signals) != (first.joints, first.signals):
            raise _unlike(one, episodes[0])


def _unlike(one: RecordedEpisode, first: RecordedEpisode) -> BadValue:
    return BadValue(f"{one.name!r} has other joints, controls or sensors than {first.name!r}")


def check_samples(episodes: Sequence[RecordedEpisode]) -> None:
    """BadValue unless learners get the same numbers of all, and every one has controls and two frames."""
    first = samples_of(episodes[0]).columns
    for one in episodes:
        if len(one.frames) < 2:
            raise BadValue(f"an episode of {one.name!r} is too short: it has one frame at that fps")
        if samples_of(one).columns != first:
            raise _unlike(one, episodes[0])


def _columns(
    recording: Recording, robot_joints: tuple[str, ...] | None
) -> tuple[list[tuple[str, int, int]], list[tuple[str, int]]]:
    """The robot's joints as (name, column in qpos, in qvel); the numbers of all others as (name, column in qpos)."""
    robot: dict[str, tuple[str, int, int]] = {}
    others, q, v = [], 0, 0
    for one in recording.joints:
        if one.qpos_dim == 1 and (robot_joints is None or one.name in robot_joints):
            robot[one.name] = (one.name, q, v)
        else:
            names = [one.name] if one.qpos_dim == 1 else [f"{one.name}[{index}]" for index in range(one.qpos_dim)]
            others += [(name, q + index) for index, name in enumerate(names)]
        q, v = q + one.qpos_dim, v + one.qvel_dim
    return [robot[name] for name in (robot if robot_joints is None else robot_joints)], others


def split_at_resets(clip: Clip) -> list[Clip]:
    """The parts of a clip between resets, where times go back; those of one frame are left out, unless it is all."""
    times = clip.playable.recording.times[clip.first : clip.last + 1]
    starts = [0, *(np.flatnonzero(np.diff(times) < 0) + 1).tolist(), len(times)]
    parts = [(a + clip.first, b - 1 + clip.first) for a, b in itertools.pairwise(starts) if b - a > 1]
    return [clip.part(first, last) for first, last in parts] or [clip]
