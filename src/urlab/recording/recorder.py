"""The recorder: one frame per ``mj_step``, within a rolling window of simulated time."""

import math
from collections.abc import Sequence

from urlab.compile.compiled_scene import JointSlot
from urlab.errors import BadValue, RecordingAlreadyActive, RecordingNotActive
from urlab.recording.frame_store import FrameStore
from urlab.recording.recording import LIVE, FloatArray, Recording, recorded_joints

UNLIMITED_S = 3.4028234663852886e38
"""The window in force when none is asked for: the largest float32, as clients of the protocol expect it."""

_DEFAULT_MAX_BYTES = 1 << 30
# Times are sums of timesteps: without a little room, rounding would decide whether the oldest frame stays.
_WINDOW_SLACK = 1.0 + 1e-9
# Time of the last frame, and what resets took back in all: time plus this offset never goes backwards.
_FRESH_CLOCK = (-math.inf, 0.0)


class Recorder:
    """Captures the joints of one compiled model. The owner of the physics lock calls everything here.

    It keeps one recording: the running one, or else the last that was stopped and not cleared.
    """

    def __init__(self, joints: Sequence[JointSlot], max_bytes: int = _DEFAULT_MAX_BYTES) -> None:
        self._joints = recorded_joints(joints)
        nq, nv = sum(one.qpos_dim for one in self._joints), sum(one.qvel_dim for one in self._joints)
        self._store = FrameStore(nq, nv, max_bytes)
        self._stopped: Recording | None = None
        self._lost_frames = False
        self._is_active = False
        self._name = LIVE
        self._window_s = UNLIMITED_S
        self._last_time_s, self._offset_s = _FRESH_CLOCK

    @property
    def is_active(self) -> bool:
        """Whether a recording is running."""
        return self._is_active

    @property
    def name(self) -> str:
        """The name of the running or the last recording."""
        return self._name

    @property
    def frame_count(self) -> int:
        """Frames of the running or the last stopped recording."""
        return self._stopped.frame_count if self._stopped is not None else self._store.count

    @property
    def has_frames(self) -> bool:
        """Whether there is anything to save or to replay."""
        return self.frame_count > 0

    @property
    def dropped_for_space(self) -> bool:
        """Whether this recording lost its oldest frames to the memory limit."""
        return self._lost_frames or self._store.dropped_for_space

    def start(self, name: str | None = None, max_duration_s: float | None = None) -> tuple[str, float]:
        """Begin anew, forgetting earlier frames; returns the name and the window (simulated seconds) in force."""
        if self._is_active:
            raise RecordingAlreadyActive(
                f"recording {self._name!r} is running with {self._store.count} frames; stop it first"
            )
        self._name, self._window_s = _checked_name(name), _checked_window(max_duration_s)
        self.clear()
        self._is_active = True
        return self._name, self._window_s

    def capture(self, time_s: float, qpos: FloatArray, qvel: FloatArray) -> None:
        """Copy one state (full ``qpos`` and ``qvel``), right after ``mj_step``; nothing when no recording runs."""
        if not self._is_active:
            return
        if time_s < self._last_time_s:
            self._offset_s += self._last_time_s - time_s
        self._last_time_s = time_s
        elapsed_s = time_s + self._offset_s
        self._store.append(time_s, elapsed_s, qpos, qvel)
        self._store.drop_before(elapsed_s - self._window_s * _WINDOW_SLACK)

    def stop(self) -> Recording:
        """End the running recording; it stays until it is cleared or another one begins."""
        if not self._is_active:
            raise RecordingNotActive("no recording is running; recording_start begins one")
        self._stopped = self.recording()
        self._lost_frames = self._store.dropped_for_space
        self._store.clear()
        self._is_active = False
        return self._stopped

    def clear(self) -> None:
        """Forget the frames. A running recording goes on with the next step; a stopped one is gone."""
        self._store.clear()
        self._stopped = None
        self._lost_frames = False
        self._last_time_s, self._offset_s = _FRESH_CLOCK

    def recording(self) -> Recording:
        """The running recording as it is now (a copy), or the last stopped one."""
        if self._stopped is not None:
            return self._stopped
        if not self._is_active:
            raise RecordingNotActive("there is no recording; recording_start begins one")
        times, qpos, qvel = self._store.arrays()
        return Recording(self._name, self._joints, times, qpos, qvel)


def _checked_name(name: str | None) -> str:
    if name is None:
        return LIVE
    if not name.strip():
        raise BadValue(f"name is {name!r}; a recording needs a name that is not empty, or none at all")
    return name


def _checked_window(max_duration_s: float | None) -> float:
    if max_duration_s is None:
        return UNLIMITED_S
    if not (math.isfinite(max_duration_s) and max_duration_s > 0):
        raise BadValue(f"max_duration_s is {max_duration_s}; it must be a finite number of seconds above 0")
    return float(max_duration_s)
