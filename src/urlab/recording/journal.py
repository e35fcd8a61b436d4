"""The journal of a recording: its frames on disk as they come, so that a server that is killed loses next to none.

A thread of its own appends what the recorder has captured since its last turn; the stepping thread does nothing for it
and never waits for it. A journal is a folder: ``about.json``, which its process holds a lock on (the system lets go of
it when the process ends, however it ends), and segments of binary blocks. A segment goes when all its frames have
left the recording's window. The folder goes when the recording is saved, or given up on purpose; what is left of a
process that is gone is made a recording by `recover`.
"""

import contextlib
import fcntl
import json
import logging
import os
import secrets
import shutil
import struct
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from urlab.errors import FileError
from urlab.recording.json_format import write_json
from urlab.recording.recorder import WINDOW_SLACK, FrameChunk, new_frames
from urlab.recording.recording import NO_SIGNALS, FloatArray, RecordedJoint, RecordedSignals, Recording

log = logging.getLogger("urlab.recording")

PERIOD_S = 0.25
"""How often frames are appended."""

_RETRY_S = 5.0
"""How long to wait after the disk has refused a block."""

_SEGMENT_BYTES = 16 << 20
_STOP_LIMIT_S = 5.0
_ABOUT = "about.json"
_SEGMENT = "{:08d}.frames"
_UNFINISHED_S = 60.0
_BLOCK = struct.Struct("<4sIQI")
"""Mark, frames, number of the first one, checksum of the numbers that follow."""

_MARK = b"URJ1"


@dataclass(frozen=True, slots=True)
class JournalHeader:
    """What a recording is, beside its frames. ``window_s`` is how much of simulated time it keeps."""

    name: str
    joints: tuple[RecordedJoint, ...]
    window_s: float
    metadata: Mapping[str, Any]
    signals: RecordedSignals = NO_SIGNALS

    @property
    def columns(self) -> int:
        """The numbers of one frame: its time, its elapsed time, positions, velocities, controls, sensors."""
        signals = len(self.signals.controls) + self.signals.sensor_dim
        return 2 + sum(one.qpos_dim + one.qvel_dim for one in self.joints) + signals


class Journal:
    """Keeps the frames of one recording in a folder of its own below ``folder``. Any thread may call its methods."""

    def __init__(self, folder: Path, header: JournalHeader, chunks: deque[FrameChunk]) -> None:
        self._root = folder
        self._header = header
        self._chunks = chunks
        self._wake = threading.Event()
        self._ending = self._discarded = False
        self._saved_to: int | None = None
        self._folder: Path | None = None
        self._lock: int | None = None
        self._segment: FileIO | None = None
        self._segments: list[tuple[Path, int]] = []
        """Segments on disk, and the number of the frame after the last one of each."""

        self._position = 0
        """The number of the next frame to write."""

        self._refused = ""
        self._thread = threading.Thread(target=self._run, name="urlab-journal", daemon=True)
        self._thread.start()

    def mark(self) -> int:
        """The number of the next frame that will be captured; the caller holds the physics lock."""
        return self._chunks[-1].first + self._chunks[-1].fill if self._chunks else 0

    def saved(self, mark: int) -> None:
        """All frames before ``mark`` are safe elsewhere."""
        self._saved_to = mark
        self._wake.set()

    def finish(self) -> None:
        """No more frames will come; those that there are stay on disk."""
        self._ending = True
        self._wake.set()

    def discard(self) -> None:
        """The frames are not wanted any more: take the files away, and wait for that."""
        self._discarded = self._ending = True
        self._wake.set()
        self._thread.join(_STOP_LIMIT_S)
        self._remove()

    def leave(self) -> bool:
        """Write what is left and let go of the files, for `recover`; whether all frames are there."""
        self.finish()
        self._thread.join(_STOP_LIMIT_S)
        self._unlock()
        return not self._refused and not self._thread.is_alive()

    # -- the journal's thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            ending = self._ending  # before the frames are looked at: what came before it is written
            if not self._discarded:
                self._append()
            if ending:
                break
            self._wake.wait(_RETRY_S if self._refused else PERIOD_S)
            self._wake.clear()
        if self._segment is not None:
            self._segment.close()

    def _append(self) -> None:
        try:
            if self._saved_to is not None:
                self._begin_at(self._saved_to)
            for first, block in self._new_blocks():
                self._write(first, block)
            self._drop_old_segments()
        except OSError as refused:
            self._warn(refused)
        else:
            if self._refused:
                log.info("the journal of recording %r is written again", self._header.name)
                self._refused = ""

    def _warn(self, refused: OSError) -> None:
        reason = refused.strerror or str(refused)
        if reason != self._refused:
            log.warning(
                "recording %r goes on in memory only, as its journal in %s cannot be written: %s",
                self._header.name,
                self._root,
                reason,
            )
        self._refused = reason

    def _new_blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """Copies of the frames that are not on disk yet, with the number of the first of each."""
        for first, frames in new_frames(self._chunks, self._position):
            times, elapsed, *states = frames
            yield first, np.concatenate((times[:, None], elapsed[:, None], *states), axis=1)

    def _write(self, first: int, block: FloatArray) -> None:
        body = block.tobytes()
        segment = self._segment
        if segment is None or segment.tell() > _SEGMENT_BYTES:
            segment = self._open_segment()
        whole = segment.tell()
        rest = memoryview(_BLOCK.pack(_MARK, len(block), first, zlib.crc32(body)) + body)
        try:
            while rest:  # a disk that is nearly full takes a part, and refuses the next
                rest = rest[segment.write(rest) :]
        except OSError:
            with contextlib.suppress(OSError):
                segment.seek(whole)
                segment.truncate()
            raise
        self._position = first + len(block)
        self._segments[-1] = (self._segments[-1][0], self._position)

    def _open_segment(self) -> FileIO:
        folder = self._folder
        if folder is None:
            folder, self._lock = _make_folder(self._root, self._header)
            self._folder = folder
        number = int(self._segments[-1][0].stem) + 1 if self._segments else 0
        path = folder / _SEGMENT.format(number)
        opened = FileIO(path, "xb")
        if self._segment is not None:
            self._segment.close()
        self._segment = opened
        self._segments.append((path, self._position))
        return opened

    def _begin_at(self, mark: int) -> None:
        """Go on with the frames from ``mark`` on, in a new segment, and let go of what was written before."""
        self._position = mark
        if self._segment is None or self._segment.tell():
            self._open_segment()
        old = len(self._segments) - 1
        for first, block in self._new_blocks():
            self._write(first, block)
        for path, _ in self._segments[:old]:
            path.unlink(missing_ok=True)
        del self._segments[:old]
        self._saved_to = None

    def _drop_old_segments(self) -> None:
        chunks = tuple(self._chunks)
        while len(self._segments) > 1 and chunks and self._segments[0][1] <= chunks[0].first:
            self._segments.pop(0)[0].unlink(missing_ok=True)

    # -- the end ------------------------------------------------------------------------------------------------

    def _remove(self) -> None:
        if self._folder is not None and not self._thread.is_alive():
            shutil.rmtree(self._folder, ignore_errors=True)
        self._unlock()

    def _unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def _make_folder(root: Path, header: JournalHeader) -> tuple[Path, int]:
    """A folder that appears under its name when its lock is held already."""
    root.mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(8)
    unfinished, ready = root / f".{token}", root / token
    unfinished.mkdir(mode=0o700)
    lock = -1
    try:
        lock = os.open(unfinished / _ABOUT, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, _encoded(header))
        unfinished.rename(ready)
    except OSError:
        if lock >= 0:
            os.close(lock)
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return ready, lock


def _encoded(header: JournalHeader) -> bytes:
    joints = [[one.name, one.qpos_dim, one.qvel_dim] for one in header.joints]
    about = {
        "name": header.name,
        "joints": joints,
        "window_s": header.window_s,
        "metadata": dict(header.metadata),
        "controls": header.signals.controls,
        "sensors": header.signals.sensors,
    }
    return json.dumps(about).encode()


# -- what a process left behind -----------------------------------------------------------------------------------


def recover(folder: Path, replays_dir: Path) -> list[Path]:
    """Make recordings of the journals whose processes are gone: ``recovered-<time>.json``; which files those are."""
    recovered = []
    for entry in _entries(folder):
        lock = _taken(entry)
        if lock is None:
            continue
        try:
            if (path := _recover(entry, replays_dir)) is not None:
                recovered.append(path)
        except (FileError, OSError) as refused:
            log.warning("the recording of a server that was killed stays in %s: %s", entry, refused)
        finally:
            os.close(lock)
    return recovered


def recover_in_background(folder: Path, replays_dir: Path) -> threading.Thread | None:
    """`recover` on a thread of its own, as a long recording takes a while to write; None when there is nothing."""
    if not _entries(folder):
        return None
    thread = threading.Thread(target=recover, args=(folder, replays_dir), name="urlab-recover", daemon=True)
    thread.start()
    return thread


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _taken(entry: Path) -> int | None:
    """The lock of a journal without a process; None when there is one, or when this is no journal."""
    try:
        lock = os.open(entry / _ABOUT, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        _sweep_unfinished(entry)
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _sweep_unfinished(entry: Path) -> None:
    """A process that was killed while it made the folder has left no frames in it."""
    with contextlib.suppress(OSError):
        if entry.name.startswith(".") and time.time() - entry.stat().st_mtime > _UNFINISHED_S:
            entry.rmdir()


def _recover(entry: Path, replays_dir: Path) -> Path | None:
    found = read_journal(entry)
    path = None
    if found is not None and found[0].frame_count:
        recording, header = found
        changed = max(one.stat().st_mtime for one in entry.iterdir())
        path = (
            replays_dir / f"recovered-{time.strftime('%Y%m%d-%H%M%S', time.localtime(changed))}-{entry.name[-6:]}.json"
        )
        write_json(recording, path, metadata={**header.metadata, "recovered": True})
        log.warning(
            "a server was killed while it recorded %r: %d frames are kept as %s",
            recording.name,
            recording.frame_count,
            path,
        )
    shutil.rmtree(entry, ignore_errors=True)
    return path


def read_journal(entry: Path) -> tuple[Recording, JournalHeader] | None:
    """The recording in a journal's folder, as far as it is whole; None when it does not say what it is."""
    header = _read_header(entry / _ABOUT)
    if header is None:
        return None
    blocks: list[FloatArray] = []
    following = 0
    for path in sorted(entry.glob("*.frames")):
        for first, block in _read_segment(path, header.columns):
            fresh = block[max(following - first, 0) :] if blocks else block
            blocks.append(fresh)
            following = max(following, first + len(block))
    frames = np.concatenate(blocks) if blocks else np.empty((0, header.columns))
    if len(frames):
        frames = frames[np.searchsorted(frames[:, 1], frames[-1, 1] - header.window_s * WINDOW_SLACK) :]
    nq, nv = sum(one.qpos_dim for one in header.joints), sum(one.qvel_dim for one in header.joints)
    ends = np.cumsum([2, nq, nv, len(header.signals.controls)])
    _, *states = np.split(frames, ends, axis=1)
    qpos, qvel, ctrl, sensordata = states
    return Recording(header.name, header.joints, frames[:, 0], qpos, qvel, header.signals, ctrl, sensordata), header


def _read_header(path: Path) -> JournalHeader | None:
    try:
        about = json.loads(path.read_bytes())
        joints = tuple(RecordedJoint(str(name), int(nq), int(nv)) for name, nq, nv in about["joints"])
        sensors = tuple((str(name), int(dim)) for name, dim in about.get("sensors", ()))
        signals = RecordedSignals(tuple(str(name) for name in about.get("controls", ())), sensors)
        return JournalHeader(str(about["name"]), joints, float(about["window_s"]), dict(about["metadata"]), signals)
    except (OSError, ValueError, KeyError, TypeError):
        log.warning("the journal %s cannot be read and is taken away", path.parent)
        return None


def _read_segment(path: Path, columns: int) -> Iterator[tuple[int, FloatArray]]:
    """The whole blocks of a segment; a block that was half written, or does not fit its checksum, ends it."""
    data, start = path.read_bytes(), 0
    while start + _BLOCK.size <= len(data):
        mark, rows, first, checksum = _BLOCK.unpack_from(data, start)
        begin, end = start + _BLOCK.size, start + _BLOCK.size + 8 * rows * columns
        if mark != _MARK or end > len(data) or zlib.crc32(data[begin:end]) != checksum:
            return
        yield first, np.frombuffer(data, np.float64, rows * columns, begin).reshape(rows, columns)
        start = end
