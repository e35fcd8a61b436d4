"""One camera: what it is, and its newest frame."""

import threading
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from urlab_client.enums import CameraMode
from urlab_client.errors import URLabGoneError
from urlab_client.handles.frame import CameraFrame, Pixels, read_frame
from urlab_client.html import camera_html
from urlab_client.lookup import FixedAttributes
from urlab_wire.codec import Tree

GLOBAL = "global"
"""What stands for the owner of a camera that no articulation owns."""

LATE_S = 1.0
"""So long after an answer of the server its streams may still carry older pictures: they were under way."""


class URLabCameraView(FixedAttributes):
    """A camera of an articulation (``owner`` is its prefix) or of the scene (``owner`` is empty).

    Frames come with ``step(include_cameras=...)``, or in live mode as a stream. Each is an array of its own, never
    written again.

    One reading is always of one whole frame. Readings that belong together are taken from ``latest``, or under the
    client's ``_data_lock``, under which frames change.

    The view stays good while the running scene has this camera, as robots do; then use of it raises `URLabGoneError`.
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
        self._name = name
        self._short_name = short_name or name
        self._owner = owner
        self._received = self._frame_count = self._dropped = self._misfits = 0
        self._changed = threading.Condition(lock or threading.RLock())  # held while anything changes
        self.renew(mode, resolution, fovy, zmq_endpoint, zmq_topic)

    def renew(
        self,
        mode: CameraMode,
        resolution: tuple[int, int],
        fovy: float,
        zmq_endpoint: str | None,
        zmq_topic: str | None,
    ) -> None:
        """Become the camera of a new handshake: without a frame, and with the counts that there are."""
        with self._changed:
            self._mode, self._resolution, self._fovy = mode, resolution, fovy
            self._zmq_endpoint, self._zmq_topic = zmq_endpoint, zmq_topic
            self._wanted = True
            self._streamed = False
            self._frame: CameraFrame | None = None
            self._seen: CameraFrame | None = None
            self._answered_s = -LATE_S
            self._answered_id = -1
            self._gone = ""

    def _retire(self, reason: str) -> None:
        """The running scene does not have this camera any more: uses raise, with the reason."""
        self._gone = reason

    def __repr__(self) -> str:
        width, height = self._resolution
        words = [repr(self.full_name), self._mode.value, f"{width}x{height}", f"{self._frame_count} frames"]
        return f"URLabCameraView({', '.join([*words, *(['gone'] if self._gone else [])])})"

    def _repr_html_(self) -> str:
        return camera_html(self)

    @property
    def name(self) -> str:
        """The camera's name: of a robot's camera without the prefix, of a camera of the scene with its actor's name."""
        return self._name

    @property
    def short_name(self) -> str:
        """What its own model file calls it; enough wherever only one camera has it."""
        return self._short_name

    @property
    def owner(self) -> str:
        """The prefix of the articulation that it belongs to; empty for a camera of the scene."""
        return self._owner

    @property
    def fovy(self) -> float:
        """The vertical field of view, degrees."""
        return self._fovy

    @property
    def zmq_endpoint(self) -> str | None:
        """Where the camera streams, as the server names it; None without a stream."""
        return self._zmq_endpoint

    @property
    def zmq_topic(self) -> str | None:
        """The topic of its stream; None without a stream."""
        return self._zmq_topic

    @property
    def wanted(self) -> bool:
        """Whether this client wants its stream; ``runtime.set_camera_streaming`` changes it."""
        return self._wanted

    @property
    def streamed(self) -> bool:
        """Whether its stream has brought a frame since the handshake."""
        return self._streamed

    @property
    def received(self) -> int:
        """How many pictures came."""
        return self._received

    @property
    def frame_count(self) -> int:
        """How many pictures became ``latest_frame``."""
        return self._frame_count

    @property
    def dropped(self) -> int:
        """How many pictures were not used: they did not fit, came late, or were replaced before they were read."""
        return self._dropped

    @property
    def misfits(self) -> int:
        """How many pictures did not fit what is known of the camera."""
        return self._misfits

    @property
    def full_name(self) -> str:
        """What ops call the camera: ``owner/name``, or the bare name of a camera of the scene."""
        return f"{self.owner}/{self.name}" if self.owner else self.name

    @property
    def mode(self) -> CameraMode:
        """What the pixels mean: real, depth, semantic or instance."""
        return self._mode

    @property
    def resolution(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self._resolution

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a pixel's numbers: uint8, or float32 for depth."""
        return self._mode.pixel_format.dtype

    @property
    def latest(self) -> CameraFrame | None:
        """The newest frame with all that belongs to it; None until one arrives, after a change of mode, and after a
        handshake."""
        if self._gone:
            raise URLabGoneError(f"camera {self.full_name!r}: {self._gone}")
        frame = self._seen = self._frame
        return frame

    @property
    def latest_frame(self) -> npt.NDArray[Any] | None:
        """The newest pixels, None where ``latest`` is: (H, W, 4) uint8, RGBA for real and BGRA for segmentation, or
        (H, W) float32 metres for depth. The array is the reader's own: writing into it changes nothing else."""
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
        """K (3, 3) of the newest frame, pixels; the frame's own array."""
        return getattr(self._frame, "intrinsics", None)

    @property
    def pos_w(self) -> npt.NDArray[np.float64] | None:
        """Where the camera was (3,) when the newest frame was taken, world; the frame's own array."""
        return getattr(self._frame, "pos_w", None)

    @property
    def quat_w(self) -> npt.NDArray[np.float64] | None:
        """How the camera was turned (4,) w, x, y, z when the newest frame was taken, world; the frame's own array."""
        return getattr(self._frame, "quat_w", None)

    @property
    def streams(self) -> bool:
        """Whether frames can and shall come as a stream."""
        return bool(self._wanted and self._zmq_endpoint and self._zmq_topic)

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
            self._received += 1 + skipped
            self._dropped += skipped
            if frame is None:
                self._refuse()
            elif self._is_late(frame):
                self._dropped += 1
            else:
                self._streamed = True
                self._show(frame)

    def absorb(self, payload: Tree, sim_time: float | None) -> None:
        """Take a frame of a step reply, of the time ``sim_time`` where it tells none. The caller has seen it."""
        frame = read_frame(payload.get("data") or b"", {"sim_time": sim_time, **payload}, self._mode, self._resolution)
        with self._changed:
            self._received += 1
            if frame is None:
                self._refuse()
            else:
                self._note_answer(frame.frame_id)
                self._show(frame)
                self._seen = frame

    def follow_stream(self, wanted: bool | None, endpoint: str | None, topic: str | None) -> None:
        """The server has switched the stream, or moved it; None is what stays."""
        with self._changed:
            self._wanted = self._wanted if wanted is None else wanted
            self._zmq_endpoint = endpoint or self._zmq_endpoint
            self._zmq_topic = topic or self._zmq_topic

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
        self._dropped += self._frame is not None and self._seen is not self._frame
        self._mode, self._resolution, self._frame = frame.mode, frame.resolution, frame
        self._frame_count += 1
        self._changed.notify_all()

    def _refuse(self) -> None:
        self._misfits += 1
        self._dropped += 1

    def _is_late(self, frame: CameraFrame) -> bool:
        """Whether a picture of the stream is older than what the server has answered since.

        Only for a while: a server that was restarted begins to count anew, and another client may switch the mode.
        """
        if time.monotonic() - self._answered_s > LATE_S:
            return False
        return frame.mode is not self._mode or (frame.frame_id is not None and frame.frame_id < self._answered_id)
