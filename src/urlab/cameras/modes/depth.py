"""What a depth camera measures."""

from typing import Any

import numpy as np

from urlab.cameras.modes.render_mode import FLAT_FLAGS, RenderMode, set_flags
from urlab.cameras.offscreen_buffer import Depths, OffscreenBuffer
from urlab.cameras.projection import Projection
from urlab_wire.enums import CameraMode


class DepthMode(RenderMode, kind=CameraMode.DEPTH):
    """Metres along the optical axis; +inf where nothing is drawn, as depth cameras say that nothing is in reach.

    `Projection` says what is near and far enough to be drawn. What is transparent counts as solid.
    """

    def prepare(self, drawn: Any) -> None:
        """Draw shapes only."""
        set_flags(drawn, FLAT_FLAGS)

    def render(self, buffer: OffscreenBuffer, drawn: Any) -> None:
        """Draw depths only; the buffer keeps its colours."""
        buffer.render_depths(drawn)

    def read_pixels(self, buffer: OffscreenBuffer, projection: Projection) -> Depths:
        """Metres, float32."""
        depths = buffer.read_depths()
        is_nothing = depths == 0
        _make_metres(depths, projection)
        np.copyto(depths, np.float32(np.inf), where=is_nothing)
        return depths


def _make_metres(depths: Depths, projection: Projection) -> None:
    """The inverse of what GL does, in place: the depth buffer holds 1 at the near and 0 at the far plane.

    GL's matrix is of single precision, and its rounding matters far away; so the same numbers are used here.
    """
    near, far, two = np.float32(projection.near_m), np.float32(projection.far_m), np.float32(2)
    if projection.orthographic:
        depths *= near - far
        depths += far
        return
    scale = (far + near) / (far - near)
    offset = two * far * near / (far - near)
    depths += (scale - np.float32(1)) / two
    np.divide(offset / two, depths, out=depths)
