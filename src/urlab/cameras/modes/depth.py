"""What a depth camera measures."""

from typing import Any

import mujoco
import numpy as np

from urlab.cameras.film import Depths, Film
from urlab.cameras.frame import PixelType
from urlab.cameras.lens import Lens
from urlab.cameras.modes.mode import Mode, set_flags
from urlab_wire.enums import CameraMode

FLAT = (
    int(mujoco.mjtRndFlag.mjRND_SEGMENT),
    int(mujoco.mjtRndFlag.mjRND_IDCOLOR),
    int(mujoco.mjtRndFlag.mjRND_CULL_FACE),
)
"""No lights, no textures, and one sample per pixel whatever the profile: no value is a mixture of two."""


class DepthMode(Mode, kind=CameraMode.DEPTH, dtype=PixelType.FLOAT32):
    """Metres along the optical axis; +inf where nothing is drawn, as depth cameras say that nothing is in reach.

    `Lens` says what is near and far enough to be drawn. What is transparent counts as solid.
    """

    def set_up(self, drawn: Any) -> None:
        """Draw shapes only."""
        set_flags(drawn, FLAT)

    def develop(self, film: Film, lens: Lens) -> bytes:
        """float32."""
        buffer = film.depths()[::-1]
        metres = film.blank().view(np.float32)
        _to_metres(buffer, lens, metres)
        np.copyto(metres, np.float32(np.inf), where=buffer == 0)
        return metres.tobytes()


def _to_metres(buffer: Depths, lens: Lens, metres: Depths) -> None:
    """The inverse of what GL does: the buffer holds 1 at the near and 0 at the far plane.

    GL's matrix is of single precision, and its rounding matters far away; so the same numbers are used here.
    """
    near, far, two = np.float32(lens.near_m), np.float32(lens.far_m), np.float32(2)
    if lens.orthographic:
        np.multiply(buffer, near - far, out=metres)
        np.add(metres, far, out=metres)
        return
    scale = (far + near) / (far - near)
    offset = two * far * near / (far - near)
    np.add(buffer, (scale - np.float32(1)) / two, out=metres)
    np.divide(offset / two, metres, out=metres)
