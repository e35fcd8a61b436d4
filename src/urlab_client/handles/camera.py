"""One camera: what it is, and its newest frame."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from urlab_client.enums import CameraMode, coerce
from urlab_client.handles.newest_frame import NewestFrame

GLOBAL = "global"
"""What stands for the owner of a camera that no articulation owns."""


class URLabCameraView(NewestFrame):
    """A camera of an articulation (``owner`` is its prefix) or of the scene (``owner`` is empty).

    ``mode``, ``resolution`` (W, H) and ``dtype`` are those of the frames; ``fovy`` is vertical degrees. Frames come
    with ``step(include_cameras=...)``, or in live mode as a stream. Each is an array of its own, never written again.

    One reading is always of one whole frame. Readings that belong together are taken from ``latest``, or under the
    client's ``_data_lock``, under which frames change. ``received`` counts the pictures that came, ``frame_count``
    those that became ``latest_frame``; ``dropped`` are those that did not fit (``misfits`` counts them by themselves)
    and those that were late or replaced before anybody looked.
    """

    __slots__ = ("fovy", "name", "owner", "wanted", "zmq_endpoint", "zmq_topic")

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
        lock: Any = None,
    ) -> None:
        super().__init__(mode, resolution, lock)
        self.name = name
        self.owner = owner
        self.fovy = fovy
        self.zmq_endpoint = zmq_endpoint
        self.zmq_topic = zmq_topic
        self.wanted = True

    @classmethod
    def from_handshake(
        cls, name: str, payload: Mapping[str, Any], *, owner: str = "", lock: Any = None
    ) -> "URLabCameraView":
        """Read a camera's entry in the handshake; ``lock`` is the client's data lock."""
        width, height = payload.get("resolution") or (0, 0)
        return cls(
            name=name,
            mode=coerce(CameraMode, payload.get("mode"), default=CameraMode.REAL),
            resolution=(int(width), int(height)),
            fovy=float(payload.get("fovy") or 0.0),
            owner=owner,
            zmq_endpoint=payload.get("zmq_endpoint"),
            zmq_topic=payload.get("zmq_topic"),
            lock=lock,
        )

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
    def latest_frame(self) -> npt.NDArray[Any] | None:
        """The newest pixels, see `CameraFrame`; None until a frame arrives, and after a change of mode."""
        frame = self.latest
        return None if frame is None else frame.pixels

    @property
    def sim_time(self) -> float | None:
        """When the newest frame was taken, seconds of the simulation; None where the stream does not tell."""
        frame = self._frame
        return None if frame is None else frame.sim_time

    @property
    def frame_id(self) -> int | None:
        """Which state of the server the newest frame shows; it only grows while a server runs."""
        frame = self._frame
        return None if frame is None else frame.frame_id

    @property
    def intrinsics(self) -> npt.NDArray[np.float64] | None:
        """K (3, 3) of the newest frame, pixels."""
        frame = self._frame
        return None if frame is None else frame.intrinsics

    @property
    def pos_w(self) -> npt.NDArray[np.float64] | None:
        """Where the camera was (3,) when the newest frame was taken, world."""
        frame = self._frame
        return None if frame is None else frame.pos_w

    @property
    def quat_w(self) -> npt.NDArray[np.float64] | None:
        """How the camera was turned (4,) w, x, y, z when the newest frame was taken, world."""
        frame = self._frame
        return None if frame is None else frame.quat_w

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
