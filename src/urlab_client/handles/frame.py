"""One picture of a camera: raw pixels and their description, read into arrays."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from urlab_client.enums import CameraMode
from urlab_client.html import frame_html, png_of
from urlab_wire.pixels import Bytes, PixelFormat, grey_of_depth, pick_channels, swap_red_blue

Pixels = bytes | memoryview | str
"""Raw bytes, or base64 text."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        width, height = self.resolution
        when = "" if self.sim_time is None else f", sim_time={self.sim_time:.6g}"
        return f"CameraFrame({self.mode.value}, {width}x{height}{when})"

    def _repr_html_(self) -> str:
        return frame_html(self)

    def png(self) -> bytes:
        """The picture as the bytes of a PNG file, for people to look at: its colours, or depth as grey."""
        return png_of(rgb_picture(self))

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
    layout = mode.pixel_format
    if min(width, height) <= 0 or len(raw) != layout.bytes_per_pixel * width * height:
        return None
    pixels = layout.array(raw, width, height)
    return swap_red_blue(pixels) if layout is PixelFormat.COLOR_BGRA8 else pixels.copy()


def rgb_picture(frame: CameraFrame, white_m: float | None = None) -> Bytes:
    """A frame for people to look at, (H, W, 3): its colours, or depth as grey that is white from ``white_m`` on."""
    layout = frame.mode.pixel_format
    if layout is PixelFormat.DEPTH_F32:
        return grey_of_depth(frame.pixels, white_m)
    return pick_channels(frame.pixels, "rgba" if layout is PixelFormat.COLOR_BGRA8 else "bgra")


def _mode(meta: Mapping[str, Any], default: CameraMode) -> CameraMode | None:
    """The mode of a picture; None for an unknown word, and for one that contradicts the type of the numbers."""
    try:
        mode = CameraMode(meta.get("mode") or default)
    except ValueError:
        return None
    is_float = mode.pixel_format.word == PixelFormat.DEPTH_F32.word
    fits = meta.get("dtype") is None or (meta["dtype"] == PixelFormat.DEPTH_F32.word) == is_float
    return mode if fits else None


def _size(meta: Mapping[str, Any], key: str, default: int) -> int:
    given = meta.get(key)
    return given if isinstance(given, int) and given else default


def _numbers(values: Any, shape: tuple[int, ...]) -> npt.NDArray[np.float64] | None:
    try:
        return np.array(values, np.float64).reshape(shape)
    except (TypeError, ValueError):
        return None
