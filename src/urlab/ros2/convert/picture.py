"""A picture of a camera, however it came: from a stream's bytes, or from the client's view of the camera."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.ros2.convert.pose import Array
from urlab_client import CameraFrame, CameraMode

Bytes = NDArray[np.uint8]

BGRA, RGBA = "bgra", "rgba"


class BadPicture(ValueError):
    """Pixels and their description do not fit together, or something is missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Pixels and what is known of them. Nobody writes into it.

    ``pixels`` are (H, W, 4) uint8 in the ``order`` of channels "bgra" or "rgba", or (H, W) float32 metres of depth.
    ``K`` (3, 3) is in pixels, the first pixel's middle at (0.5, 0.5), as the server counts. ``pos_w`` (3,) and
    ``quat_wxyz`` (4,) are the camera's pose in the world as MuJoCo has it, None where nobody told.
    """

    mode: CameraMode
    pixels: NDArray[Any]
    order: str
    sim_time: float
    K: Array
    pos_w: Array | None = None
    quat_wxyz: Array | None = None

    @property
    def width(self) -> int:
        """Pixels in a row."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Rows."""
        return int(self.pixels.shape[0])

    @property
    def is_depth(self) -> bool:
        """Whether the pixels are metres."""
        return self.mode is CameraMode.DEPTH

    @classmethod
    def of_wire(cls, data: bytes | memoryview, meta: Mapping[str, Any]) -> "Picture":
        """What a stream carries: raw pixels, which are not copied, and the metadata that goes before them."""
        try:
            mode, size = CameraMode(meta["mode"]), (int(meta["height"]), int(meta["width"]))
            intrinsics, sim_time = np.array(meta["K"], np.float64).reshape(3, 3), float(meta["sim_time"])
            pixels = _shaped(data, mode, size)
        except (KeyError, TypeError, ValueError) as broken:
            told = {key: value for key, value in meta.items() if key != "data"}
            raise BadPicture(f"{len(data)} bytes do not fit {told}: {broken!r}") from broken
        return cls(mode, pixels, BGRA, sim_time, intrinsics, _numbers(meta.get("pos")), _numbers(meta.get("quat")))

    @classmethod
    def of_frame(cls, frame: CameraFrame) -> "Picture":
        """A frame of the client's, which turns real pictures into RGBA."""
        if frame.sim_time is None or frame.intrinsics is None:
            missing = "sim_time" if frame.sim_time is None else "K"
            raise BadPicture(f"the server told no {missing} of this frame, and ROS wants a stamp and the intrinsics")
        order = RGBA if frame.mode is CameraMode.REAL else BGRA
        return cls(frame.mode, frame.pixels, order, frame.sim_time, frame.intrinsics, frame.pos_w, frame.quat_w)

    def channels(self, wanted: str) -> Bytes:
        """The colours (H, W, 3) in the order "rgb" or "bgr", in memory of their own."""
        colours = np.empty((self.height, self.width, 3), np.uint8)
        for place, channel in enumerate(wanted):  # a strided copy per channel is five times faster than all at once
            colours[..., place] = self.pixels[..., self.order.index(channel)]
        return colours


def _shaped(data: bytes | memoryview, mode: CameraMode, size: tuple[int, int]) -> NDArray[Any]:
    if mode is CameraMode.DEPTH:
        return np.frombuffer(data, np.float32).reshape(size)
    return np.frombuffer(data, np.uint8).reshape(*size, 4)


def _numbers(values: Any) -> Array | None:
    return None if values is None else np.array(values, np.float64)
