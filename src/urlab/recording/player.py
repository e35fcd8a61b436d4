"""Replay: loaded recordings, which joints of the current model they drive, and the one that is shown frame by frame."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from urlab.compile.compiled_scene import JointSlot
from urlab.errors import BadValue, NotReady, PathNotReadable, ReplaySessionNotFound, known
from urlab.recording.recorder import Recorder
from urlab.recording.recording import LIVE, FloatArray, RecordedJoint, Recording

_FREE_QPOS_DIM = 7
_Indices = NDArray[np.intp]
_Key = str | None


@dataclass(frozen=True, slots=True, eq=False)
class JointMapping:
    """Columns of a recording (``*_from``) and the places in the model's full arrays that they go to (``*_to``).

    ``pairs`` is (recorded name, model name) in recorded order.
    """

    pairs: tuple[tuple[str, str], ...]
    qpos_from: _Indices
    qpos_to: _Indices
    qvel_from: _Indices
    qvel_to: _Indices


def match_joints(recorded: Sequence[RecordedJoint], slots: Sequence[JointSlot]) -> JointMapping:
    """Decide which recorded joint drives which joint of the model; only joints of equal size match.

    Exact names come first. Then the model's short names (without the prefix) are compared with the recorded name
    as it is, without its first ``word_``, without its first two, and so on: prefixes may hold underscores. Last, a
    free joint that alone is left on both sides. A match must be unique among what is left.
    """
    found = _Matcher(list(recorded), list(slots))
    found.match(lambda joint: joint.name, lambda slot: slot.name)
    for depth in range(1 + max((joint.name.count("_") for joint in recorded), default=0)):
        found.match(partial(_tail, depth=depth), lambda slot: slot.short)
    found.match(
        lambda joint: "free" if joint.qpos_dim == _FREE_QPOS_DIM else None,
        lambda slot: "free" if _width(slot.qpos) == _FREE_QPOS_DIM else None,
    )
    return _mapping(recorded, found.slot_of)


class _Matcher:
    """What is not matched yet, and what is (``slot_of``: recorded name -> slot)."""

    def __init__(self, joints: list[RecordedJoint], slots: list[JointSlot]) -> None:
        self._joints, self._slots = joints, slots
        self.slot_of: dict[str, JointSlot] = {}

    def match(self, joint_key: Callable[[RecordedJoint], _Key], slot_key: Callable[[JointSlot], _Key]) -> None:
        """Match joints and slots whose keys (None never matches) are equal and occur once on each side."""
        claims = Counter(joint_key(joint) for joint in self._joints)
        offers = Counter(slot_key(slot) for slot in self._slots)
        by_key = {slot_key(slot): slot for slot in self._slots}
        for joint in list(self._joints):
            key = joint_key(joint)
            if key and claims[key] == offers[key] == 1 and joint.qpos_dim == _width(by_key[key].qpos):
                self.slot_of[joint.name] = by_key[key]
                self._joints.remove(joint)
                self._slots.remove(by_key[key])


def _tail(joint: RecordedJoint, depth: int) -> _Key:
    """Its name ``a_b_c`` without the first ``depth`` words, or None when nothing is left."""
    words = joint.name.split("_", depth)
    return words[depth] if len(words) > depth else None


def _width(part: slice) -> int:
    return int(part.stop - part.start)


def _mapping(recorded: Sequence[RecordedJoint], slot_of: dict[str, JointSlot]) -> JointMapping:
    columns: dict[str, list[int]] = {"qpos_from": [], "qpos_to": [], "qvel_from": [], "qvel_to": []}
    q = v = 0
    for joint in recorded:
        slot = slot_of.get(joint.name)
        if slot is not None:
            columns["qpos_from"] += range(q, q + joint.qpos_dim)
            columns["qvel_from"] += range(v, v + joint.qvel_dim)
            columns["qpos_to"] += range(slot.qpos.start, slot.qpos.stop)
            columns["qvel_to"] += range(slot.qvel.start, slot.qvel.stop)
        q, v = q + joint.qpos_dim, v + joint.qvel_dim
    arrays: dict[str, Any] = {key: np.array(value, dtype=np.intp) for key, value in columns.items()}
    return JointMapping(
        pairs=tuple((one.name, slot_of[one.name].name) for one in recorded if one.name in slot_of),
        **arrays,
    )


@dataclass(frozen=True, slots=True, eq=False)
class PlayableRecording:
    """A recording, the name that it goes by, and how it fits the current model."""

    name: str
    recording: Recording
    mapping: JointMapping

    @property
    def total_frames(self) -> int:
        """How many frames it has."""
        return self.recording.frame_count

    def write(self, frame: int, qpos: FloatArray, qvel: FloatArray) -> float:
        """Write one frame into the model's full arrays, and return its timestamp in simulated seconds.

        Joints that the recording lacks keep what the arrays hold.
        """
        recording, mapping = self.recording, self.mapping
        qpos[mapping.qpos_to] = recording.qpos[frame, mapping.qpos_from]
        qvel[mapping.qvel_to] = recording.qvel[frame, mapping.qvel_from]
        return float(recording.times[frame])


def fitted(name: str, recording: Recording, slots: Sequence[JointSlot]) -> PlayableRecording:
    """A recording as it fits a model; PathNotReadable when they have no joint in common."""
    mapping = match_joints(recording.joints, slots)
    if not mapping.pairs:
        raise PathNotReadable(
            f"recording {name!r} and the model have no joint in common; "
            f"the recording has: {known(one.name for one in recording.joints)}; "
            f"the model has: {known(one.name for one in slots)}"
        )
    return PlayableRecording(name, recording, mapping)


class ReplayPosition(NamedTuple):
    """Where a replay stands: the index of the frame that is shown, from 0, and its timestamp in simulated seconds."""

    name: str
    frame: int
    total_frames: int
    time_s: float
    loop: bool

    @property
    def is_at_end(self) -> bool:
        """Whether no frame follows."""
        return not self.loop and self.frame == self.total_frames - 1


class ReplayPlayer:
    """Plays recordings onto the joints of one compiled model. The owner of the physics lock calls everything here.

    The active session is the one that ``start`` will play, at first ``live``: the recorder's frames, copied when
    they are started. What plays already is not touched by loading, choosing another one or recording more.
    """

    def __init__(self, joints: Sequence[JointSlot], recorder: Recorder | None = None) -> None:
        self._joints = tuple(joints)
        self._recorder = recorder
        self._loaded: dict[str, PlayableRecording] = {}
        self._active_name = LIVE
        self._playing: PlayableRecording | None = None
        self._loop = False
        self.position: ReplayPosition | None = None
        """Where the replay stands, while one plays. Any thread may read it."""

    @property
    def active_name(self) -> str | None:
        """The session that plays, or else the one that ``start`` would play; None when there is none."""
        if self._playing is not None:
            return self._playing.name
        name = self._shown(self._active_name)
        return name if name in self.names() else None

    @property
    def is_playing(self) -> bool:
        """Whether a session plays; at its end it is held, and still plays."""
        return self._playing is not None

    def load(self, recording: Recording, name: str | None = None) -> PlayableRecording:
        """Add a recording under ``name`` (its own by default), in place of one of that name, and make it active.

        ``live`` belongs to the recorder: a file of that name becomes ``live-2``. PathNotReadable when the
        recording has no joint in common with the model.
        """
        name = name or recording.name
        session = fitted("live-2" if name == LIVE else name, recording, self._joints)
        self._loaded[session.name] = session
        self._active_name = session.name
        return session

    def names(self) -> list[str]:
        """The recorder's, when it has frames, then the loaded ones in the order of loading. Any thread may ask."""
        has_live = self._recorder is not None and self._recorder.has_frames
        return [self._live_name, *self._loaded] if has_live else list(self._loaded)

    def set_active(self, name: str) -> None:
        """Choose what ``start`` plays; the recorder's frames answer to their own name and to ``live``."""
        self._check_exists(name)
        self._active_name = LIVE if name == self._live_name else name

    def make_live_active(self) -> None:
        """For the beginning of a recording: end what plays, and let ``start`` play the frames to come."""
        self.stop()
        self._active_name = LIVE

    def start(self, loop: bool = False) -> int:
        """Play the active session from frame 0, which is current at once; returns how many frames it has."""
        self._check_exists(self._active_name)
        playing = self._loaded.get(self._active_name) or self._live_session()
        if not playing.total_frames:
            raise ReplaySessionNotFound(f"the recording {playing.name!r} has no frames")
        self._playing, self._loop = playing, loop
        self._go_to(playing, 0)
        return playing.total_frames

    def advance(self, frames: int) -> None:
        """Go on by that many frames; the last one is held, or with loop followed by the first."""
        playing, frame = self._require_playing()
        if frames < 0:
            raise BadValue(f"a replay was asked to advance by {frames} frames; it only goes forward")
        following, total = frame + frames, playing.total_frames
        self._go_to(playing, following % total if self._loop else min(following, total - 1))

    def seek(self, frame: int | None = None, time_s: float | None = None) -> None:
        """Go to a frame, by its index or as the one at that time; BadValue names what there is."""
        playing, _ = self._require_playing()
        recording, total = playing.recording, playing.total_frames
        if time_s is not None:
            frame = recording.frame_at(time_s)
        if frame is None or not 0 <= frame < total:
            raise BadValue(f"frame is {frame}; {playing.name!r} has {total} frames, from 0 to {total - 1}")
        self._go_to(playing, frame)

    def seconds_to_next(self) -> float | None:
        """Simulated seconds from the frame shown to the next one, by their timestamps; None at the end.

        0 where time stands still or goes back: after a reset, and where a loop begins again.
        """
        playing, frame = self._require_playing()
        if self.position is None or self.position.is_at_end:
            return None
        times = playing.recording.times
        return max(0.0, float(times[(frame + 1) % len(times)] - times[frame]))

    def current(self, qpos: FloatArray, qvel: FloatArray) -> float:
        """Write the current frame into the model's full arrays and return its timestamp in simulated seconds.

        Joints that the recording lacks keep what the arrays hold.
        """
        playing, frame = self._require_playing()
        return playing.write(frame, qpos, qvel)

    def stop(self) -> None:
        """End the replay, if one plays; the arrays that were written stay as they are."""
        self._playing = self.position = None

    def _go_to(self, playing: PlayableRecording, frame: int) -> None:
        time_s = float(playing.recording.times[frame])
        self.position = ReplayPosition(playing.name, frame, playing.total_frames, time_s, self._loop)

    @property
    def _live_name(self) -> str:
        """What the recorder's frames are called: as they were started, unless a loaded recording has that name."""
        name = self._recorder.name if self._recorder is not None else LIVE
        return LIVE if name in self._loaded else name

    def _shown(self, name: str) -> str:
        return self._live_name if name == LIVE else name

    def _live_session(self) -> PlayableRecording:
        if self._recorder is None:
            raise NotReady("there is no recorder, so no live session")
        return fitted(self._live_name, self._recorder.recording(), self._joints)

    def _check_exists(self, name: str) -> None:
        if self._shown(name) not in self.names():
            raise ReplaySessionNotFound(f"no replay session is called {name!r}; there are: {known(self.names())}")

    def _require_playing(self) -> tuple[PlayableRecording, int]:
        """What plays, and the index of the frame shown."""
        if self._playing is None or self.position is None:
            raise ReplaySessionNotFound("no replay is active; replay_start begins one")
        return self._playing, self.position.frame
