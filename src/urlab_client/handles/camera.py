"""One camera: what it is, and its newest frame."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from urlab_client.enums import CameraMode, coerce

_BGRA_TO_RGBA = [2, 1, 0, 3]


@dataclass(slots=True, eq=False)
class URLabCameraView:
    """A camera of an articulation (``owner`` is its prefix) or of the scene (``owner`` is empty).

    ``resolution`` is (width, height) in pixels, ``fovy`` vertical degrees. ``latest_frame`` is (H, W, 4) uint8, RGBA
    for real and BGRA for segmentation, or (H, W) float32 metres for depth; None until one arrives. ``sim_time`` is
    that frame's, in seconds.
    """

    name: str
    mode: CameraMode
    resolution: tuple[int, int]
    fovy: float
    owner: str = ""
    zmq_endpoint: str | None = None
    zmq_topic: str | None = None
    latest_frame: npt.NDArray[Any] | None = None
    sim_time: float | None = None
    frame_count: int = 0

    @classmethod
    def from_handshake(cls, name: str, payload: Mapping[str, Any], *, owner: str = "") -> "URLabCameraView":
        """Read a camera's entry in the handshake."""
        width, height = payload.get("resolution") or (0, 0)
        return cls(
            name=name,
            mode=coerce(CameraMode, payload.get("mode"), default=CameraMode.REAL),
            resolution=(int(width), int(height)),
            fovy=float(payload.get("fovy") or 0.0),
            owner=owner,
            zmq_endpoint=payload.get("zmq_endpoint"),
            zmq_topic=payload.get("zmq_topic"),
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a pixel's numbers."""
        return np.dtype(np.float32 if self.mode is CameraMode.DEPTH else np.uint8)

    def absorb(self, payload: Mapping[str, Any], sim_time: float | None) -> None:
        """Take a frame of a step reply; one whose size does not fit is left out."""
        size = int(payload.get("width") or self.resolution[0]), int(payload.get("height") or self.resolution[1])
        frame = decode_frame(payload.get("data") or b"", self.mode, size)
        if frame is not None:
            self.latest_frame, self.sim_time = frame, payload.get("sim_time", sim_time)
            self.frame_count += 1


def decode_frame(data: bytes | str, mode: CameraMode, resolution: tuple[int, int]) -> npt.NDArray[Any] | None:
    """Pixels of one frame (raw bytes, or base64 text): see `URLabCameraView`. None when the size does not fit."""
    raw = base64.b64decode(data) if isinstance(data, str) else data
    width, height = resolution
    if len(raw) != 4 * width * height or not raw:
        return None
    if mode is CameraMode.DEPTH:
        return np.frombuffer(raw, np.float32).reshape(height, width).copy()
    pixels = np.frombuffer(raw, np.uint8).reshape(height, width, 4)
    return pixels[..., _BGRA_TO_RGBA] if mode is CameraMode.REAL else pixels.copy()
