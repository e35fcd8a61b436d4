"""From a camera's frame to the numbers that picture files hold."""

import numpy as np
import numpy.typing as npt

from urlab_client import CameraFrame, CameraMode

Rgb = npt.NDArray[np.uint8]
"""(H, W, 3)."""

MM_PER_M = 1000.0
FARTHEST_MM = 65535
NOTHING_MM = 0

_WHITE_PERCENTILE = 95.0
_LEAST_WHITE_M = 0.1
_LUMA = np.array([0.2126, 0.7152, 0.0722], dtype=np.float32)


def rgb(frame: CameraFrame, white_m: float | None = None) -> Rgb:
    """A frame as people look at it: colours, or depth as grey that is white from ``white_m`` on."""
    if frame.mode is CameraMode.DEPTH:
        white_m = white_m or white_of(frame)
        share = np.clip(np.nan_to_num(frame.pixels, posinf=white_m) / white_m, 0.0, 1.0)
        grey = (255.0 * share + 0.5).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)
    order = slice(0, 3) if frame.mode is CameraMode.REAL else slice(2, None, -1)
    return np.ascontiguousarray(frame.pixels[..., order])


def white_of(frame: CameraFrame) -> float:
    """The metres of a depth frame that shall be white: nearly all that is in reach is darker."""
    reached = frame.pixels[np.isfinite(frame.pixels)]
    return max(_LEAST_WHITE_M, float(np.percentile(reached, _WHITE_PERCENTILE))) if reached.size else _LEAST_WHITE_M


def millimetres(frame: CameraFrame) -> npt.NDArray[np.uint16]:
    """Depth (H, W) in mm, `FARTHEST_MM` for that and more; `NOTHING_MM` where nothing is in reach."""
    far = FARTHEST_MM / MM_PER_M
    metres = np.clip(np.nan_to_num(frame.pixels, posinf=0.0, neginf=0.0), 0.0, far)
    rounded: npt.NDArray[np.uint16] = np.rint(MM_PER_M * metres.astype(np.float64)).astype(np.uint16)
    return rounded


def brightness(frame: CameraFrame) -> float:
    """Mean brightness of a colour picture within 0 (black) and 1 (white)."""
    return float((frame.pixels[..., :3].mean(axis=(0, 1)) @ _LUMA) / 255.0)


def depth_range_m(frame: CameraFrame) -> tuple[float, float] | None:
    """The nearest and the farthest depth; None when nothing is in reach."""
    reached = frame.pixels[np.isfinite(frame.pixels)]
    return (float(reached.min()), float(reached.max())) if reached.size else None


def colours(frame: CameraFrame) -> dict[tuple[int, int, int, int], float]:
    """The colours (b, g, r, a) of a segmentation picture, each with its share of the picture, largest first."""
    words = np.ascontiguousarray(frame.pixels).view("<u4")
    found, counts = np.unique(words, return_counts=True)
    pairs = sorted(zip(counts.tolist(), found.tolist(), strict=True), reverse=True)
    return {_bgra(word): count / words.size for count, word in pairs}


def _bgra(word: int) -> tuple[int, int, int, int]:
    blue, green, red, alpha = word.to_bytes(4, "little")
    return blue, green, red, alpha
