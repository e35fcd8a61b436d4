"""Memory for frames: chunks of fixed size, appended at the end and dropped at the beginning."""

from collections import deque

import numpy as np

from urlab.recording.recording import FloatArray

_CHUNK_BYTES = 1 << 20
_MAX_CHUNK_ROWS = 4096


class _Chunk:
    """``rows`` frames, not yet written. ``elapsed`` is simulated time that never goes backwards."""

    __slots__ = ("elapsed", "qpos", "qvel", "times")

    def __init__(self, rows: int, nq: int, nv: int) -> None:
        self.times = np.empty(rows)
        self.elapsed = np.empty(rows)
        self.qpos = np.empty((rows, nq))
        self.qvel = np.empty((rows, nv))


class FrameStore:
    """A queue of frames that never holds more than ``max_bytes`` (but always room for two chunks).

    Appending and dropping are O(1) amortised. When the space is used up, the oldest chunk makes room for the next.
    """

    def __init__(self, nq: int, nv: int, max_bytes: int) -> None:
        self._nq, self._nv = nq, nv
        row_bytes = 8 * (2 + nq + nv)
        self._rows = min(max(min(_CHUNK_BYTES, max_bytes // 8) // row_bytes, 1), _MAX_CHUNK_ROWS)
        self._chunk_bytes = self._rows * row_bytes
        self._max_chunks = max(max_bytes // self._chunk_bytes, 2)
        self._spare: _Chunk | None = None
        self.clear()

    def clear(self) -> None:
        """Forget all frames and that any were dropped."""
        self._chunks: deque[_Chunk] = deque()
        self._head = 0
        self._fill = self._rows
        self._oldest_elapsed = np.inf
        self.dropped_for_space = False

    @property
    def count(self) -> int:
        """How many frames it holds."""
        return (len(self._chunks) - 1) * self._rows + self._fill - self._head if self._chunks else 0

    @property
    def nbytes(self) -> int:
        """Bytes that are allocated for frames."""
        return (len(self._chunks) + (self._spare is not None)) * self._chunk_bytes

    def append(self, time_s: float, elapsed_s: float, qpos: FloatArray, qvel: FloatArray) -> None:
        """Copy one frame to the end."""
        if self._fill == self._rows:
            self._open_chunk(elapsed_s)
        chunk, row = self._chunks[-1], self._fill
        chunk.times[row] = time_s
        chunk.elapsed[row] = elapsed_s
        chunk.qpos[row] = qpos
        chunk.qvel[row] = qvel
        self._fill = row + 1

    def drop_before(self, elapsed_s: float) -> None:
        """Drop the oldest frames whose elapsed time is smaller; one frame at least must not be."""
        while self._oldest_elapsed < elapsed_s:
            self._head += 1
            if self._head == self._rows:
                self._retire_oldest_chunk()
            self._oldest_elapsed = float(self._chunks[0].elapsed[self._head])

    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Copies: times (n,), qpos (n, nq), qvel (n, nv)."""
        count, head = self.count, self._head
        times, qpos, qvel = np.empty(count), np.empty((count, self._nq)), np.empty((count, self._nv))
        begin = 0
        for number, chunk in enumerate(self._chunks, start=1):
            stop = self._fill if number == len(self._chunks) else self._rows
            rows, end = slice(head, stop), begin + stop - head
            times[begin:end], qpos[begin:end], qvel[begin:end] = (
                chunk.times[rows],
                chunk.qpos[rows],
                chunk.qvel[rows],
            )
            begin, head = end, 0
        return times, qpos, qvel

    def _open_chunk(self, elapsed_s: float) -> None:
        if len(self._chunks) == self._max_chunks:
            self._retire_oldest_chunk()
            self._oldest_elapsed = float(self._chunks[0].elapsed[0])
            self.dropped_for_space = True
        if not self._chunks:
            self._oldest_elapsed = elapsed_s
        self._chunks.append(self._spare or _Chunk(self._rows, self._nq, self._nv))
        self._spare = None
        self._fill = 0

    def _retire_oldest_chunk(self) -> None:
        self._spare = self._chunks.popleft()
        self._head = 0
