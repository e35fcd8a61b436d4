"""The recorder: one frame per mj_step into memory that is bounded, until it is saved or cleared."""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from urlab.compile.compiled_scene import JointSlot
from urlab.errors import BadValue, RecordingAlreadyActive, RecordingNotActive
from urlab.recording.recording import (
    LIVE,
    NO_SIGNALS,
    FloatArray,
    RecordedJoint,
    RecordedSignals,
    Recording,
    recorded_joints,
)
from urlab_wire.envelope import MAX_NAME_LENGTH

_CHUNK_BYTES = 1 << 20
_MAX_CHUNK_ROWS = 4096

NOTHING: FloatArray = np.empty(0)
Widths = tuple[int, int, int, int]
"""The numbers of one frame in qpos, qvel, ctrl and sensordata."""


class FrameChunk:
    """Room for ``rows`` frames, of which ``fill`` are there; the first is number ``first`` since the store was cleared.

    ``elapsed`` is simulated time that never goes backwards. Another thread than the recorder's may read the frames
    below ``fill``: what it has copied is good if ``first`` is the same afterwards, for a chunk is used again for later
    frames when its own have been dropped.
    """

    __slots__ = ("ctrl", "elapsed", "fill", "first", "qpos", "qvel", "sensordata", "times")

    def __init__(self, rows: int, widths: Widths) -> None:
        self.first = 0
        self.fill = 0
        self.times = np.empty(rows)
        self.elapsed = np.empty(rows)
        self.qpos, self.qvel, self.ctrl, self.sensordata = (np.empty((rows, width)) for width in widths)


class FrameBlock(NamedTuple):
    """Copies of frames that follow one another: ``times`` and ``elapsed`` (n,), the rest (n, width)."""

    times: FloatArray
    elapsed: FloatArray
    qpos: FloatArray
    qvel: FloatArray
    ctrl: FloatArray
    sensordata: FloatArray


def new_frames(chunks: Iterable[FrameChunk], position: int) -> Iterator[tuple[int, FrameBlock]]:
    """Copies of the frames from number ``position`` on, with the number of the first of each. Any thread."""
    for chunk in tuple(chunks):
        first, fill = chunk.first, chunk.fill
        begin = max(position - first, 0)
        if begin >= fill:
            continue
        rows = slice(begin, fill)
        kept = (chunk.times, chunk.elapsed, chunk.qpos, chunk.qvel, chunk.ctrl, chunk.sensordata)
        block = FrameBlock(*(one[rows].copy() for one in kept))
        if chunk.first == first:  # else they were dropped meanwhile, and others stand there
            yield first + begin, block


class FrameStore:
    """A queue of frames that never holds more than ``max_bytes`` (but always room for two chunks).

    Appending and dropping are O(1) amortised. When the space is used up, the oldest chunk makes room for the next.
    """

    def __init__(self, widths: Widths, max_bytes: int) -> None:
        self._widths = widths
        self._has_signals = widths[2] + widths[3] > 0
        row_bytes = 8 * (2 + sum(widths))
        self._rows = min(max(min(_CHUNK_BYTES, max_bytes // 8) // row_bytes, 1), _MAX_CHUNK_ROWS)
        self._chunk_bytes = self._rows * row_bytes
        self._max_chunks = max(max_bytes // self._chunk_bytes, 2)
        self._spare: FrameChunk | None = None
        self._full = FrameChunk(0, widths)
        self._full.fill = self._rows
        self.clear()

    def clear(self) -> None:
        """Forget all frames."""
        self.chunks: deque[FrameChunk] = deque()
        """The chunks that hold frames, oldest first. After `clear` it is another one, and this one stays as it is."""

        self._head = 0
        self._last = self._full
        self._total = 0
        self._oldest_elapsed = np.inf
        self.count = 0
        """How many frames it holds. Any thread may read it."""

    @property
    def nbytes(self) -> int:
        """Bytes that are allocated for frames."""
        return (len(self.chunks) + (self._spare is not None)) * self._chunk_bytes

    def append(
        self,
        time_s: float,
        elapsed_s: float,
        qpos: FloatArray,
        qvel: FloatArray,
        ctrl: FloatArray = NOTHING,
        sensordata: FloatArray = NOTHING,
    ) -> None:
        """Copy one frame to the end."""
        chunk = self._last
        if chunk.fill == self._rows:
            chunk = self._open_chunk(elapsed_s)
        row = chunk.fill
        chunk.times[row] = time_s
        chunk.elapsed[row] = elapsed_s
        chunk.qpos[row] = qpos
        chunk.qvel[row] = qvel
        if self._has_signals:
            chunk.ctrl[row] = ctrl
            chunk.sensordata[row] = sensordata
        chunk.fill = row + 1
        self.count += 1

    def drop_before(self, elapsed_s: float) -> None:
        """Drop the oldest frames whose elapsed time is smaller; one frame at least must not be."""
        while self._oldest_elapsed < elapsed_s:
            self._head += 1
            self.count -= 1
            if self._head == self._rows:
                self._retire_oldest_chunk()
            self._oldest_elapsed = float(self.chunks[0].elapsed[self._head])

    def arrays(self) -> tuple[FloatArray, ...]:
        """Copies: times (n,), qpos (n, nq), qvel (n, nv), ctrl (n, nu), sensordata (n, nsensordata)."""
        count, head = self.count, self._head
        copies = (np.empty(count), *(np.empty((count, width)) for width in self._widths))
        begin = 0
        for chunk in self.chunks:
            rows, end = slice(head, chunk.fill), begin + chunk.fill - head
            kept = (chunk.times, chunk.qpos, chunk.qvel, chunk.ctrl, chunk.sensordata)
            for copy, array in zip(copies, kept, strict=True):
                copy[begin:end] = array[rows]
            begin, head = end, 0
        return copies

    def _open_chunk(self, elapsed_s: float) -> FrameChunk:
        if len(self.chunks) == self._max_chunks:
            self.count -= self._rows - self._head
            self._retire_oldest_chunk()
            self._oldest_elapsed = float(self.chunks[0].elapsed[0])
        if not self.chunks:
            self._oldest_elapsed = elapsed_s
        chunk = self._spare or FrameChunk(self._rows, self._widths)
        self._spare = None
        chunk.first, chunk.fill = self._total, 0
        self._total += self._rows
        self.chunks.append(chunk)
        self._last = chunk
        return chunk

    def _retire_oldest_chunk(self) -> None:
        self._spare = self.chunks.popleft()
        self._head = 0


UNLIMITED_S = 3.4028234663852886e38
"""The window in force when none is asked for: the largest float32, as clients of the protocol expect it."""

_DEFAULT_MAX_BYTES = 1 << 30
# Times are sums of timesteps: without a little room, rounding would decide whether the oldest frame stays.
WINDOW_SLACK = 1.0 + 1e-9
# Time of the last frame, and what resets took back in all: time plus this offset never goes backwards.
_FRESH_CLOCK = (-math.inf, 0.0)


class Recorder:
    """Captures the joints of one compiled model. The owner of the physics lock calls everything here.

    It keeps one recording: the running one, or else the last that was stopped and not cleared.
    """

    def __init__(
        self,
        joints: Sequence[JointSlot],
        signals: RecordedSignals = NO_SIGNALS,
        max_bytes: int = _DEFAULT_MAX_BYTES,
    ) -> None:
        self._joints = recorded_joints(joints)
        self.signals = signals
        nq, nv = sum(one.qpos_dim for one in self._joints), sum(one.qvel_dim for one in self._joints)
        self._store = FrameStore((nq, nv, len(signals.controls), signals.sensor_dim), max_bytes)
        self._stopped: Recording | None = None
        self.is_active = False
        """Whether a recording is running."""

        self.name = LIVE
        """The name of the running or the last recording."""

        self._window_s = UNLIMITED_S
        self._last_time_s, self._offset_s = _FRESH_CLOCK

    @property
    def frame_count(self) -> int:
        """Frames of the running or the last stopped recording. Any thread may ask."""
        stopped = self._stopped
        return stopped.frame_count if stopped is not None else self._store.count

    @property
    def chunks(self) -> deque[FrameChunk]:
        """The frames since the recording began or was cleared, for a thread that copies them while they grow."""
        return self._store.chunks

    @property
    def joints(self) -> tuple[RecordedJoint, ...]:
        """What a frame consists of."""
        return self._joints

    @property
    def window_s(self) -> float:
        """How much of simulated time the recording keeps."""
        return self._window_s

    @property
    def has_frames(self) -> bool:
        """Whether there is anything to save or to replay."""
        return self.frame_count > 0

    def start(self, name: str | None = None, max_duration_s: float | None = None) -> tuple[str, float]:
        """Begin anew, forgetting earlier frames; returns the name and the window (simulated seconds) in force."""
        if self.is_active:
            raise RecordingAlreadyActive(
                f"recording {self.name!r} is running with {self._store.count} frames; stop it first"
            )
        self.name, self._window_s = _checked_name(name), _checked_window(max_duration_s)
        self.clear()
        self.is_active = True
        return self.name, self._window_s

    def capture(
        self,
        time_s: float,
        qpos: FloatArray,
        qvel: FloatArray,
        ctrl: FloatArray = NOTHING,
        sensordata: FloatArray = NOTHING,
    ) -> None:
        """Copy one state (full arrays), right after ``mj_step``; nothing when no recording runs."""
        if not self.is_active:
            return
        if time_s < self._last_time_s:
            self._offset_s += self._last_time_s - time_s
        self._last_time_s = time_s
        elapsed_s = time_s + self._offset_s
        self._store.append(time_s, elapsed_s, qpos, qvel, ctrl, sensordata)
        self._store.drop_before(elapsed_s - self._window_s * WINDOW_SLACK)

    def stop(self) -> Recording:
        """End the running recording; it stays until it is cleared or another one begins."""
        if not self.is_active:
            raise RecordingNotActive("no recording is running; recording_start begins one")
        self._stopped = self.recording()
        self._store.clear()
        self.is_active = False
        return self._stopped

    def clear(self) -> None:
        """Forget the frames. A running recording goes on with the next step; a stopped one is gone."""
        self._store.clear()
        self._stopped = None
        self._last_time_s, self._offset_s = _FRESH_CLOCK

    def recording(self) -> Recording:
        """The running recording as it is now (a copy), or the last stopped one."""
        if self._stopped is not None:
            return self._stopped
        if not self.is_active:
            raise RecordingNotActive("there is no recording; recording_start begins one")
        times, qpos, qvel, ctrl, sensordata = self._store.arrays()
        return Recording(self.name, self._joints, times, qpos, qvel, self.signals, ctrl, sensordata)


def _checked_name(name: str | None) -> str:
    if name is None:
        return LIVE
    if not name.strip():
        raise BadValue(f"name is {name!r}; a recording needs a name that is not empty, or none at all")
    if len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise BadValue(
            f"name is {name[:MAX_NAME_LENGTH]!r}; a recording's has at most {MAX_NAME_LENGTH} characters that can be "
            "printed, so no line ends"
        )
    return name


def _checked_window(max_duration_s: float | None) -> float:
    if max_duration_s is None:
        return UNLIMITED_S
    if not (math.isfinite(max_duration_s) and max_duration_s > 0):
        raise BadValue(f"max_duration_s is {max_duration_s}; it must be a finite number of seconds above 0")
    return float(max_duration_s)
