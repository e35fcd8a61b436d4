"""Replay: loaded recordings, which joints of the current model they drive, and the one that is shown frame by frame."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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
        self.frame = 0
        """The index of the frame shown, from 0."""

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

    @property
    def total_frames(self) -> int:
        """Frames of the session that plays; 0 when none does."""
        return self._playing.total_frames if self._playing is not None else 0

    def load(self, recording: Recording, name: str | None = None) -> PlayableRecording:
        """Add a recording under ``name`` (its own by default), in place of one of that name, and make it active.

        ``live`` belongs to the recorder: a file of that name becomes ``live-2``. PathNotReadable when the
        recording has no joint in common with the model.
        """
        name = name or recording.name
        session = self._session("live-2" if name == LIVE else name, recording)
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
        self._playing = self._loaded.get(self._active_name) or self._live_session()
        self._loop, self.frame = loop, 0
        return self._playing.total_frames

    def advance(self, frames: int) -> None:
        """Go on by that many frames; the last one is held, or with loop followed by the first."""
        playing = self._require_playing()
        if frames < 0:
            raise BadValue(f"a replay was asked to advance by {frames} frames; it only goes forward")
        following = self.frame + frames
        self.frame = following % playing.total_frames if self._loop else min(following, playing.total_frames - 1)

    def current(self, qpos: FloatArray, qvel: FloatArray) -> float:
        """Write the current frame into the model's full arrays and return its timestamp in simulated seconds.

        Joints that the recording lacks keep what the arrays hold.
        """
        playing = self._require_playing()
        recording, mapping = playing.recording, playing.mapping
        qpos[mapping.qpos_to] = recording.qpos[self.frame, mapping.qpos_from]
        qvel[mapping.qvel_to] = recording.qvel[self.frame, mapping.qvel_from]
        return float(recording.times[self.frame])

    def stop(self) -> None:
        """End the replay, if one plays; the arrays that were written stay as they are."""
        self._playing = None
        self.frame = 0

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
        return self._session(self._live_name, self._recorder.recording())

    def _session(self, name: str, recording: Recording) -> PlayableRecording:
        mapping = match_joints(recording.joints, self._joints)
        if not mapping.pairs:
            recorded, present = (
                known(one.name for one in recording.joints),
                known(one.name for one in self._joints),
            )
            raise PathNotReadable(
                f"recording {name!r} and the model have no joint in common; "
                f"the recording has: {recorded}; the model has: {present}"
            )
        return PlayableRecording(name, recording, mapping)

    def _check_exists(self, name: str) -> None:
        if self._shown(name) not in self.names():
            raise ReplaySessionNotFound(f"no replay session is called {name!r}; there are: {known(self.names())}")

    def _require_playing(self) -> PlayableRecording:
        if self._playing is None:
            raise NotReady("no replay is playing; replay_start begins one")
        return self._playing
