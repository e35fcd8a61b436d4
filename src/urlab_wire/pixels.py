"""How the pixels of a camera's frame are laid out, and the conversions that readers of frames share.

Pixels travel row by row from the top left. As arrays they are (height, width, 4) uint8 or (height, width) float32.
"""

from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Metres = NDArray[np.float32]

FARTHEST_MM = 0xFFFF
"""The largest depth that 16 bits can hold."""

_WHITE_PERCENTILE = 95.0
_LEAST_WHITE_M = 0.1
_MM_PER_M = np.float32(1000.0)


class PixelFormat(Enum):
    """What a pixel is made of. ``word`` is a frame's ``dtype`` on the wire.

    ``is_exact``: each value is a label or a measure, so it must not be mixed with its neighbours, as JPEG would.
    """

    COLOR_BGRA8 = ("bgra8", np.dtype(np.uint8), 4, False)
    """Colours as the eye sees them; alpha is 255."""

    LABEL_BGRA8 = ("bgra8", np.dtype(np.uint8), 4, True)
    """Colours that each stand for an entry of a table; alpha is 255."""

    DEPTH_F32 = ("float32", np.dtype(np.float32), 1, True)
    """Metres along the optical axis, +inf where nothing is in reach."""

    def __init__(self, word: str, dtype: np.dtype[Any], channels: int, is_exact: bool) -> None:
        self.word = word
        self.dtype = dtype
        self.channels = channels
        self.is_exact = is_exact

    @property
    def bytes_per_pixel(self) -> int:
        """The size of one pixel."""
        return self.dtype.itemsize * self.channels

    def array(self, data: bytes | memoryview, width: int, height: int) -> NDArray[Any]:
        """The bytes of a frame as an array, not copied; ValueError when their number does not fit."""
        shape = (height, width) if self.channels == 1 else (height, width, self.channels)
        return np.frombuffer(data, self.dtype).reshape(shape)


MAX_BYTES_PER_PIXEL = max(one.bytes_per_pixel for one in PixelFormat)
"""Room for a pixel whatever the mode, which can be switched while frames stream."""


def swap_red_blue(pixels: Bytes) -> Bytes:
    """BGRA to RGBA and back, (height, width, 4), in memory of its own.

    Whole pixels at a time are a third faster than one channel at a time.
    """
    words: NDArray[np.uint32] = pixels.view(np.uint32)
    swapped = words >> 16
    swapped ^= words
    swapped &= 0xFF  # what red and blue differ in
    swapped *= 0x10001  # in both of their places
    swapped ^= words
    return swapped.view(np.uint8)


def pick_channels(pixels: Bytes, order: str, wanted: str = "rgb") -> Bytes:
    """Three channels, (height, width, 3), in the order ``wanted``, in memory of their own.

    ``order`` is "bgra" or "rgba", that of the pixels.
    """
    picked = np.empty((*pixels.shape[:2], len(wanted)), np.uint8)
    for place, channel in enumerate(wanted):  # a strided copy per channel is five times faster than all at once
        picked[..., place] = pixels[..., order.index(channel)]
    return picked


def grey_of_depth(metres: Metres, white_m: float | None = None) -> Bytes:
    """Depth for people to look at, (height, width, 3): black is near, white is ``white_m`` (by default `white_of`)."""
    white_m = white_m or white_of(metres)
    share = np.clip(np.nan_to_num(metres, posinf=white_m) / white_m, 0.0, 1.0)
    grey = (255.0 * share + 0.5).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=2)


def white_of(metres: Metres) -> float:
    """The depth that shall be white, so that nearly all that is in reach is darker; metres."""
    reached = metres[np.isfinite(metres)]
    return max(_LEAST_WHITE_M, float(np.percentile(reached, _WHITE_PERCENTILE))) if reached.size else _LEAST_WHITE_M


def millimetres(metres: Metres, too_far: int) -> NDArray[np.uint16]:
    """Depth in whole mm, (height, width); 0 where nothing is in reach, ``too_far`` beyond `FARTHEST_MM`."""
    rounded = np.rint(np.nan_to_num(metres, nan=0.0, posinf=0.0, neginf=0.0) * _MM_PER_M)
    rounded[rounded > FARTHEST_MM] = too_far
    whole: NDArray[np.uint16] = np.maximum(rounded, 0.0).astype(np.uint16)
    return whole
