"""The newest frame of a camera, written by one thread and read by others."""

import threading
import time
from collections.abc import Mapping
from typing import Any

from urlab_client.enums import CameraMode
from urlab_client.handles.frame import CameraFrame, Pixels, read_frame

LATE_S = 1.0
"""So long after an answer of the server its streams may still carry older pictures: they were under way."""


class NewestFrame:
    """Holds one frame, and counts those that came and went.

    A frame is replaced whole and never written again, so one reading needs no lock. ``lock`` (reentrant) is held
    while anything changes; whoever holds it reads several things of one frame.
    """

    __slots__ = (
        "_answered_id",
        "_answered_s",
        "_changed",
        "_frame",
        "_mode",
        "_resolution",
        "_seen",
        "dropped",
        "frame_count",
        "misfits",
        "received",
        "streamed",
    )

    def __init__(self, mode: CameraMode, resolution: tuple[int, int], lock: Any = None) -> None:
        self.received = self.frame_count = self.dropped = self.misfits = 0
        self.streamed = False
        self._mode = mode
        self._resolution = resolution
        self._frame: CameraFrame | None = None
        self._seen: CameraFrame | None = None
        self._answered_s = -LATE_S
        self._answered_id = -1
        self._changed = threading.Condition(lock or threading.RLock())

    @property
    def latest(self) -> CameraFrame | None:
        """The newest frame with all that belongs to it; None until one arrives, and after a change of mode."""
        frame = self._seen = self._frame
        return frame

    def wait_for_newer(self, count: int | None, timeout_s: float) -> CameraFrame | None:
        """The first frame beyond the ``count``-th (None: the present one); None when there is none in time."""
        with self._changed:
            past = self.frame_count if count is None else count
            self._changed.wait_for(lambda: self.frame_count > past and self._frame is not None, timeout_s)
            return self.latest if self.frame_count > past else None

    def take(self, pixels: Pixels, meta: Mapping[str, Any] | None = None, skipped: int = 0) -> None:
        """Take a picture of the stream, which superseded ``skipped`` others; any thread."""
        frame = read_frame(pixels, meta or {}, self._mode, self._resolution)
        with self._changed:
            self.received += 1 + skipped
            self.dropped += skipped
            if frame is None:
                self._refuse()
            elif self._is_late(frame):
                self.dropped += 1
            else:
                self.streamed = True
                self._show(frame)

    def absorb(self, payload: Mapping[str, Any], sim_time: float | None) -> None:
        """Take a frame of a step reply, of the time ``sim_time`` where it tells none. The caller has seen it."""
        frame = read_frame(payload.get("data") or b"", {"sim_time": sim_time, **payload}, self._mode, self._resolution)
        with self._changed:
            self.received += 1
            if frame is None:
                self._refuse()
            else:
                self._note_answer(frame.frame_id)
                self._show(frame)
                self._seen = frame

    def follow_mode(self, mode: CameraMode) -> None:
        """The server has switched the camera: the frame of the old mode goes, and those under way will be dropped."""
        with self._changed:
            if mode is not self._mode:
                self._mode, self._frame = mode, None
                self._note_answer(None)

    def _note_answer(self, frame_id: int | None) -> None:
        self._answered_s = time.monotonic()
        self._answered_id = -1 if frame_id is None else frame_id

    def _show(self, frame: CameraFrame) -> None:
        self.dropped += self._frame is not None and self._seen is not self._frame
        self._mode, self._resolution, self._frame = frame.mode, frame.resolution, frame
        self.frame_count += 1
        self._changed.notify_all()

    def _refuse(self) -> None:
        self.misfits += 1
        self.dropped += 1

    def _is_late(self, frame: CameraFrame) -> bool:
        """Whether a picture of the stream is older than what the server has answered since.

        Only for a while: a server that was restarted begins to count anew, and somebody else may switch the mode.
        """
        if time.monotonic() - self._answered_s > LATE_S:
            return False
        return frame.mode is not self._mode or (frame.frame_id is not None and frame.frame_id < self._answered_id)
