"""Pictures as vision-language models want them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from urlab.evaluation.policies.base import Observation, PolicyError

SIDE_PX = 224

Picture = NDArray[np.uint8]


def picture_of(observation: Observation, camera: str, *, mirrored: bool = False) -> Picture:
    """What a camera sees, (224, 224, 3); if wanted, left and right changed over."""
    views: dict[str, Any] = observation.get("camera_data") or {}
    if camera not in views:
        seen = ", ".join(sorted(views)) or "none: the server runs without cameras"
        raise PolicyError(f"this policy looks through {camera!r}, but the observation has cameras: {seen}")
    rgb: Picture = views[camera]["rgb"]
    return resize_with_pad(rgb[:, ::-1] if mirrored else rgb)


def resize_with_pad(rgb: Picture, side_px: int = SIDE_PX) -> Picture:
    """Fit a picture (H, W, 3) into a black square, in the middle, its proportions kept, to the pixel as openpi does."""
    height, width = rgb.shape[:2]
    ratio = max(height, width) / side_px
    size = (max(1, int(width / ratio)), max(1, int(height / ratio)))
    small = Image.fromarray(np.ascontiguousarray(rgb)).resize(size, Image.Resampling.BILINEAR)
    square = Image.new("RGB", (side_px, side_px))
    square.paste(small, ((side_px - size[0]) // 2, (side_px - size[1]) // 2))
    return np.asarray(square)
