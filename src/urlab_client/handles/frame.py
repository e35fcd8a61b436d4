"""One picture of a camera: raw pixels and their description, read into arrays."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from urlab_client.enums import CameraMode

Pixels = bytes | memoryview | str
"""Raw bytes, or base64 text."""

FLOAT_DTYPE = "float32"


@dataclass(frozen=True, slots=True, eq=False)
class CameraFrame:
    """A picture and all that belongs to it. It never changes, and its arrays are the reader's own.

    ``pixels`` are (H, W, 4) uint8, RGBA for real and BGRA for segmentation, or (H, W) float32 metres for depth.
    ``sim_time`` is in seconds; ``intrinsics`` is the matrix K (3, 3) in pixels; ``pos_w`` (3,) and ``quat_w`` (4,)
    w, x, y, z are the camera's pose in the world, as MuJoCo has it: the camera looks along its own -Z, +Y is up. None
    is what the server did not tell.
    """

    pixels: npt.NDArray[Any]
    mode: CameraMode
    frame_id: int | None = None
    sim_time: float | None = None
    intrinsics: npt.NDArray[np.float64] | None = None
    pos_w: npt.NDArray[np.float64] | None = None
    quat_w: npt.NDArray[np.float64] | None = None

    @property
    def resolution(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.pixels.shape[1], self.pixels.shape[0]


def read_frame(
    data: Pixels, meta: Mapping[str, Any], mode: CameraMode, resolution: tuple[int, int]
) -> CameraFrame | None:
    """A picture as it travels; None when its parts do not fit together.

    ``mode`` and ``resolution`` (W, H) stand in for what ``meta`` does not tell.
    """
    shown = _mode(meta, mode)
    if shown is None:
        return None
    pixels = decode_frame(data, shown, (_size(meta, "width", resolution[0]), _size(meta, "height", resolution[1])))
    if pixels is None:
        return None
    frame_id, sim_time = meta.get("frame_id"), meta.get("sim_time")
    return CameraFrame(
        pixels,
        shown,
        frame_id if isinstance(frame_id, int) else None,
        float(sim_time) if isinstance(sim_time, int | float) else None,
        _numbers(meta.get("K"), (3, 3)),
        _numbers(meta.get("pos"), (3,)),
        _numbers(meta.get("quat"), (4,)),
    )


def decode_frame(data: Pixels, mode: CameraMode, resolution: tuple[int, int]) -> npt.NDArray[Any] | None:
    """The pixels of `CameraFrame`, in memory of their own. None when the size does not fit."""
    try:
        raw = base64.b64decode(data, validate=True) if isinstance(data, str) else data
    except binascii.Error:
        return None
    width, height = resolution
    if min(width, height) <= 0 or len(raw) != 4 * width * height:
        return None
    if mode is CameraMode.DEPTH:
        return np.frombuffer(raw, np.float32).reshape(height, width).copy()
    if mode is CameraMode.REAL:
        return _rgba(np.frombuffer(raw, np.uint32)).reshape(height, width, 4)
    return np.frombuffer(raw, np.uint8).reshape(height, width, 4).copy()


def _rgba(bgra: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """Pixels with red and blue exchanged, as bytes. Whole pixels are a third faster than one channel at a time."""
    pixels = bgra >> 16
    pixels ^= bgra
    pixels &= 0xFF  # what red and blue differ in
    pixels *= 0x10001  # in both of their places
    pixels ^= bgra
    return pixels.view(np.uint8)


def _mode(meta: Mapping[str, Any], default: CameraMode) -> CameraMode | None:
    """The mode of a picture; None for an unknown word, and for one that contradicts the type of the numbers."""
    try:
        mode = CameraMode(meta.get("mode") or default)
    except ValueError:
        return None
    fits = meta.get("dtype") is None or (meta["dtype"] == FLOAT_DTYPE) == (mode is CameraMode.DEPTH)
    return mode if fits else None


def _size(meta: Mapping[str, Any], key: str, default: int) -> int:
    told = meta.get(key)
    return told if isinstance(told, int) and told else default


def _numbers(values: Any, shape: tuple[int, ...]) -> npt.NDArray[np.float64] | None:
    try:
        return np.array(values, np.float64).reshape(shape)
    except (TypeError, ValueError):
        return None
