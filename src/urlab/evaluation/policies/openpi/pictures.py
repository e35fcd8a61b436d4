"""Pictures as vision-language models want them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from urlab.evaluation.policies.base import Observation, PolicyError

SIDE_PX = 224

Picture = NDArray[np.uint8]


def picture_of(observation: Observation, camera: str) -> Picture:
    """What a camera sees, (224, 224, 3)."""
    views: dict[str, Any] = observation.get("camera_data") or {}
    if camera not in views:
        seen = ", ".join(sorted(views)) or "none: the server runs without cameras"
        raise PolicyError(f"this policy looks through {camera!r}, but the observation has cameras: {seen}")
    return resize_with_pad(views[camera]["rgb"])


def resize_with_pad(rgb: Picture, side_px: int = SIDE_PX) -> Picture:
    """Fit a picture (H, W, 3) into a black square, in the middle, its proportions kept."""
    height, width = rgb.shape[:2]
    scale = side_px / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = Image.fromarray(np.ascontiguousarray(rgb)).resize(size, Image.Resampling.BILINEAR)
    square = Image.new("RGB", (side_px, side_px))
    square.paste(small, ((side_px - size[0]) // 2, (side_px - size[1]) // 2))
    return np.asarray(square)
