"""Recording straight to a file: frames go to MCAP as they come; a process that is killed loses less than a second."""

import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from urlab.errors import shortage
from urlab.files import not_writable
from urlab.paths import open_folder, why_not_replaced
from urlab.recording.mcap_file import ChunkContent, McapFile, Topic
from urlab.recording.mcap_frames import MCAP, FrameMessages, about_frames
from urlab.recording.recorder import FrameBlock, FrameChunk, Recorder, new_frames

log = logging.getLogger("urlab.recording")

PERIOD_S = 0.25
"""How often frames are appended."""

_ROWS = 2048
"""Frames of one chunk at most."""

_STOP_LIMIT_S = 30.0
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class McapStream:
    """Appends what a recorder captures to ``path``, on a thread of its own. The stepping thread never waits for it.

    Any thread may call its methods. ``problem`` says why not every frame is in the file; empty while all are.
    """

    def __init__(self, path: Path, recorder: Recorder, about: Mapping[str, Any]) -> None:
        """Begin the file, in place of one of ours; PathNotWritable when that cannot be."""
        self.path = path
        self._chunks: deque[FrameChunk] = recorder.chunks
        self._messages = FrameMessages(recorder.joints, recorder.signals)
        about = {**about, **about_frames(recorder.name, recorder.joints, recorder.signals)}
        self._raw, self._file = _begun(path, [Topic(*one) for one in self._messages.topics], about)
        self._position = 0
        self._ending = False
        self._wake = threading.Event()
        self.problem = ""
        self._thread = threading.Thread(target=self._run, name="urlab-stream", daemon=True)
        self._thread.start()

    @property
    def frame_count(self) -> int:
        """Frames that were captured so far."""
        last = self._chunks[-1] if self._chunks else None
        return last.first + last.fill if last is not None else self._position

    def finish(self) -> bool:
        """No more frames will come: write what is left, and the index; whether every frame is in the file."""
        self._ending = True
        self._wake.set()
        self._thread.join(_STOP_LIMIT_S)
        if self._thread.is_alive():
            self._warn(f"the disk takes more than {_STOP_LIMIT_S:g} s")
        return not self.problem

    # -- the stream's thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while True:
                ending = self._ending  # before the frames are looked at: what came before it is written
                self._append()
                if ending:
                    break
                self._wake.wait(PERIOD_S)
            self._file.finish()
        except OSError as refused:
            self._warn(refused.strerror or str(refused))
        except Exception as crashed:
            log.exception("the stream of %s failed", self.path)
            self._warn(shortage(crashed) or f"{type(crashed).__name__}: {crashed}")
        finally:
            self._raw.close()

    def _append(self) -> None:
        try:
            for first, frames in new_frames(self._chunks, self._position):
                if first > self._position:
                    self._warn(f"{first - self._position} frames came faster than they were written")
                count = len(frames.times)
                for begin in range(0, count, _ROWS):
                    rows = FrameBlock(*(one[begin : begin + _ROWS] for one in frames))
                    self._file.append(_chunk(self._messages, rows, first + begin))
                    self._position = first + begin + len(rows.times)
        except OSError as refused:
            self._warn(refused.strerror or str(refused))

    def _warn(self, reason: str) -> None:
        if not self.problem:
            log.warning("%s is not whole, and the recording goes on in memory: %s", self.path, reason)
            self.problem = reason


def _chunk(messages: FrameMessages, frames: FrameBlock, first: int) -> ChunkContent:
    data, log_ns, offsets = messages.encode(frames, first)
    rows = np.arange(len(log_ns), dtype=np.uint64) * np.uint64(messages.frame_bytes)
    places = {
        channel: np.stack((log_ns, rows + np.uint64(offset)), axis=1) for channel, offset in enumerate(offsets, 1)
    }
    return ChunkContent(data, int(log_ns[0]), int(log_ns[-1]), places)


def _begun(path: Path, topics: Sequence[Topic], about: Mapping[str, Any]) -> tuple[FileIO, McapFile]:
    """A new file under that name, in place of one of ours, with its beginning; links are not followed."""
    try:
        folder = open_folder(path.parent, made=[])
        try:
            reason = why_not_replaced(path.name, folder, MCAP)
            if reason:
                raise not_writable(path, reason)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=folder)
            raw = FileIO(os.open(path.name, _NEW_FILE, 0o666, dir_fd=folder), "r+b")
            try:
                return raw, McapFile(raw, topics, about)
            except BaseException:
                raw.close()
                os.unlink(path.name, dir_fd=folder)
                raise
        finally:
            os.close(folder)
    except OSError as refused:
        raise not_writable(path, refused.strerror or str(refused)) from refused
