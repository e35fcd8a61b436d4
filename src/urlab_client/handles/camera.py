"""One camera: what it is, and its newest frame."""

import threading
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from urlab_client.enums import CameraMode
from urlab_client.handles.frame import CameraFrame, Pixels, read_frame
from urlab_wire.codec import Tree

GLOBAL = "global"
"""What stands for the owner of a camera that no articulation owns."""

LATE_S = 1.0
"""So long after an answer of the server its streams may still carry older pictures: they were under way."""


class URLabCameraView:
    """A camera of an articulation (``owner`` is its prefix) or of the scene (``owner`` is empty).

    ``mode``, ``resolution`` (W, H) and ``dtype`` are those of the frames; ``fovy`` is vertical degrees. Frames come
    with ``step(include_cameras=...)``, or in live mode as a stream. ``short_name`` is what its own model file calls it:
    for a camera of the scene it lacks the actor's name, and is enough wherever only one camera has it.
    Each frame is an array of its own, never written again.

    One reading is always of one whole frame. Readings that belong together are taken from ``latest``, or under the
    client's ``_data_lock``, under which frames change. ``received`` counts the pictures that came, ``frame_count``
    those that became ``latest_frame``; ``dropped`` are those that did not fit (``misfits`` counts them by themselves)
    and those that were late or replaced before they were read.
    """

    def __init__(
        self,
        name: str,
        mode: CameraMode,
        resolution: tuple[int, int],
        fovy: float,
        owner: str = "",
        zmq_endpoint: str | None = None,
        zmq_topic: str | None = None,
        *,
        short_name: str | None = None,
        lock: "threading.RLock | None" = None,
    ) -> None:
        self.name = name
        self.short_name = short_name or name
        self.owner = owner
        self.fovy = fovy
        self.zmq_endpoint = zmq_endpoint
        self.zmq_topic = zmq_topic
        self.wanted = True
        self.received = self.frame_count = self.dropped = self.misfits = 0
        self.streamed = False
        self._mode = mode
        self._resolution = resolution
        self._frame: CameraFrame | None = None
        self._seen: CameraFrame | None = None
        self._answered_s = -LATE_S
        self._answered_id = -1
        self._changed = threading.Condition(lock or threading.RLock())  # held while anything changes

    def __repr__(self) -> str:
        return f"URLabCameraView({self.full_name!r}, mode={self._mode.value!r}, resolution={self._resolution})"

    @property
    def full_name(self) -> str:
        """What ops call the camera: ``owner/name``, or the bare name of a camera of the scene."""
        return f"{self.owner}/{self.name}" if self.owner else self.name

    @property
    def mode(self) -> CameraMode:
        """What the pixels mean."""
        return self._mode

    @property
    def resolution(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self._resolution

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a pixel's numbers."""
        return self._mode.pixel_format.dtype

    @property
    def latest(self) -> CameraFrame | None:
        """The newest frame with all that belongs to it; None until one arrives, and after a change of mode."""
        frame = self._seen = self._frame
        return frame

    @property
    def latest_frame(self) -> npt.NDArray[Any] | None:
        """The newest pixels, see `CameraFrame`; None until a frame arrives, and after a change of mode."""
        frame = self.latest
        return None if frame is None else frame.pixels

    @property
    def sim_time(self) -> float | None:
        """When the newest frame was taken, seconds of the simulation; None where the stream does not tell."""
        return getattr(self._frame, "sim_time", None)

    @property
    def frame_id(self) -> int | None:
        """Which state of the server the newest frame shows; it only grows while a server runs."""
        return getattr(self._frame, "frame_id", None)

    @property
    def intrinsics(self) -> npt.NDArray[np.float64] | None:
        """K (3, 3) of the newest frame, pixels."""
        return getattr(self._frame, "intrinsics", None)

    @property
    def pos_w(self) -> npt.NDArray[np.float64] | None:
        """Where the camera was (3,) when the newest frame was taken, world."""
        return getattr(self._frame, "pos_w", None)

    @property
    def quat_w(self) -> npt.NDArray[np.float64] | None:
        """How the camera was turned (4,) w, x, y, z when the newest frame was taken, world."""
        return getattr(self._frame, "quat_w", None)

    @property
    def streams(self) -> bool:
        """Whether frames can and shall come as a stream."""
        return bool(self.wanted and self.zmq_endpoint and self.zmq_topic)

    def wait_for_frame(self, timeout_s: float = 5.0, *, after: int | None = None) -> npt.NDArray[Any]:
        """Wait for the next frame and return its pixels: one beyond the present (or the ``after``-th) ``frame_count``.

        Raises TimeoutError. May be called from any thread; one that holds the client's data lock lets go of it
        meanwhile.
        """
        frame = self.wait_for_newer(after, timeout_s)
        if frame is None:
            how = "in live mode it streams" if self.streams else "it has no stream"
            raise TimeoutError(
                f"no frame of camera {self.full_name!r} within {timeout_s:g} s: {how}, and "
                "step(include_cameras=True) brings a frame in every mode"
            )
        return frame.pixels

    def wait_for_newer(self, count: int | None, timeout_s: float) -> CameraFrame | None:
        """The first frame beyond the ``count``-th (None: the present one); None when there is none in time."""
        with self._changed:
            past = self.frame_count if count is None else count
            self._changed.wait_for(lambda: self.frame_count > past and self._frame is not None, timeout_s)
            return self.latest if self.frame_count > past else None

    def take(self, pixels: Pixels, meta: Tree | None = None, skipped: int = 0) -> None:
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

    def absorb(self, payload: Tree, sim_time: float | None) -> None:
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

        Only for a while: a server that was restarted begins to count anew, and another client may switch the mode.
        """
        if time.monotonic() - self._answered_s > LATE_S:
            return False
        return frame.mode is not self._mode or (frame.frame_id is not None and frame.frame_id < self._answered_id)
