"""What a depth camera measures."""

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

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

    def expose(self, film: Film, drawn: Any) -> None:
        """Nobody looks at the colours."""
        film.expose_depths(drawn)

    def develop(self, film: Film, lens: Lens) -> NDArray[np.float32]:
        """float32."""
        depths = film.depths()
        is_nothing = depths == 0
        _make_metres(depths, lens)
        np.copyto(depths, np.float32(np.inf), where=is_nothing)
        return depths


def _make_metres(depths: Depths, lens: Lens) -> None:
    """The inverse of what GL does, in place: the depth buffer holds 1 at the near and 0 at the far plane.

    GL's matrix is of single precision, and its rounding matters far away; so the same numbers are used here.
    """
    near, far, two = np.float32(lens.near_m), np.float32(lens.far_m), np.float32(2)
    if lens.orthographic:
        depths *= near - far
        depths += far
        return
    scale = (far + near) / (far - near)
    offset = two * far * near / (far - near)
    depths += (scale - np.float32(1)) / two
    np.divide(offset / two, depths, out=depths)
