"""Streams out of shared memory: whole states, and pictures of cameras, each on a thread of its own."""

import contextlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from urlab_client.transports.base import FrameCallback, StateCallback, description
from urlab_client.transports.shm_file import OpenedRegion, Unusable
from urlab_wire.codec import decode
from urlab_wire.shm import STATE_FILE, ShmError, camera_file, camera_meta_file
from urlab_wire.shm_wait import SequenceWaiter

IDLE_CHECK_S = 0.5
"""While nothing comes, this often it is checked whether the file is still the one that is written."""

STOP_LIMIT_S = 1.0
_MOMENT_S = 0.001
_TRIES = 5
_REOPEN_AFTER = (2, 8, 32)

_log = logging.getLogger(__name__)

HandOver = Callable[[int], object]
"""Calls back with what was read, given how many others that superseded."""


class RegionSource(Protocol):
    """What a stream reads, while a scene plays. ``news`` is the region that is written last.

    ``first_sequence`` is that of the last payload which does not count.
    """

    news: OpenedRegion
    first_sequence: int

    def read(self, sequence: int) -> tuple[int, HandOver] | None:
        """The sequence of the newest payload, and what hands it over; None if none beyond ``sequence`` is whole."""

    def close(self) -> None:
        """Let go of the memory."""


class StateRegionSource:
    """Whole-state snapshots; what stands there already counts."""

    first_sequence = 0

    def __init__(self, folder: Path, on_snapshot: StateCallback) -> None:
        """`Unusable` when there are none."""
        self.news = OpenedRegion(folder / STATE_FILE)
        self._on_snapshot = on_snapshot

    def read(self, sequence: int) -> tuple[int, HandOver] | None:
        """The newest snapshot, as a map; how many it superseded is not counted."""
        found = self.news.region.read(sequence)
        return None if found is None else (found[0], lambda _skipped: self._on_snapshot(decode(found[1])))

    def close(self) -> None:
        """Let go of the memory."""
        self.news.close()


class CameraRegionSource:
    """Pictures of one camera, with their descriptions. A picture from before does not count: it may be old.

    A server writes the description, then the pixels; those of the same number belong together.
    """

    def __init__(self, folder: Path, prefix: str, name: str, on_frame: FrameCallback) -> None:
        """`Unusable` when there are none."""
        self._on_frame = on_frame
        self._misses = 0
        self.news = OpenedRegion(folder / camera_file(prefix, name))
        try:
            self.first_sequence = self.news.region.sequence
        except ShmError as cut:
            self.news.close()
            raise Unusable(str(cut)) from cut
        self._meta: OpenedRegion | None = None
        with contextlib.suppress(Unusable):  # it is made before the pixels' file; some servers have none
            self._meta = OpenedRegion(folder / camera_meta_file(prefix, name))

    def read(self, sequence: int) -> tuple[int, HandOver] | None:
        """The newest picture. One whose description is not there yet, or not any more, is tried again a few times."""
        found = self.news.region.read(sequence)
        if found is None:
            return None
        newest, pixels = found
        meta = self._description(newest)
        if meta is None and self._meta is not None and self._misses < _TRIES:
            self._misses += 1
            return None
        if meta is not None:
            self._misses = 0
        return newest, lambda skipped: self._on_frame(pixels, description(meta), skipped)

    def close(self) -> None:
        """Let go of the memory."""
        self.news.close()
        if self._meta is not None:
            self._meta.close()

    def _description(self, sequence: int) -> bytes | None:
        """The description of that picture, if both still have that number: a write that has begun shows in neither."""
        if self._meta is None:
            return None
        found = self._meta.region.read(sequence - 1)
        if found is None or found[0] != sequence:
            return None
        return found[1] if self._meta.region.sequence == self.news.region.sequence == sequence else None


class RegionStream:
    """Follows a source on a daemon thread, from construction until `stop`.

    The files of a scene go with it, and come again with the next one; then they are opened anew.
    """

    def __init__(self, name: str, open_source: Callable[[], RegionSource]) -> None:
        """`Unusable` when there is nothing to open."""
        self._open_source = open_source
        self._turn = threading.Lock()
        self._stopping = threading.Event()
        self._sequence = 0
        self._idle_waits = 0
        self._source: RegionSource | None = None
        self._waiter: SequenceWaiter | None = None
        self._open()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it and wait for that, at most `STOP_LIMIT_S`. From a callback it only asks for the end."""
        self._stopping.set()
        with self._turn:
            if self._waiter is not None:
                self._waiter.stop()
        if self._thread is not threading.current_thread():
            self._thread.join(STOP_LIMIT_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            source, waiter = self._source, self._waiter
            if source is None or waiter is None:
                self._stopping.wait(IDLE_CHECK_S)
                self._try_to_open()
            else:
                try:
                    self._follow(source, waiter)
                except ShmError:  # the file was cut short: another may take its place
                    self._let_go()
        self._let_go()

    def _follow(self, source: RegionSource, waiter: SequenceWaiter) -> None:
        if waiter.wait(self._sequence, IDLE_CHECK_S):
            self._idle_waits = 0
            self._use(source)
        else:
            self._reopen_if_replaced(source)

    def _reopen_if_replaced(self, source: RegionSource) -> None:
        """Nothing came for a while. Open the file anew if it is another one, and also now and then if it is not: the
        server may have missed that it was opened."""
        self._idle_waits += 1
        if not source.news.is_current or self._idle_waits in _REOPEN_AFTER:
            self._let_go()
            self._try_to_open()

    def _use(self, source: RegionSource) -> None:
        found = source.read(self._sequence)
        if found is None:  # nothing that is whole and new: a server takes a moment to write for a reader that came
            self._stopping.wait(_MOMENT_S)
            return
        sequence, hand_over = found
        skipped, self._sequence = max(0, sequence - self._sequence - 1), sequence
        try:
            hand_over(skipped)
        except Exception:  # noqa: BLE001 - a bad message or a failing callback must not end the stream
            _log.exception("%s: a message could not be used", self._thread.name)

    def _try_to_open(self) -> None:
        with contextlib.suppress(Unusable):  # nothing plays, or not this
            self._open()

    def _open(self) -> None:
        source = self._open_source()
        with self._turn:
            self._source, self._sequence = source, source.first_sequence
            self._waiter = SequenceWaiter(source.news.region, spin_s=0.0)
            if self._stopping.is_set():
                self._waiter.stop()

    def _let_go(self) -> None:
        with self._turn:
            source, self._source, self._waiter = self._source, None, None
        if source is not None:
            source.close()
