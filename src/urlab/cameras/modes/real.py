"""What a colour camera sees."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.cameras.film import Film
from urlab.cameras.frame import PixelType
from urlab.cameras.lens import Lens
from urlab.cameras.modes.mode import Mode, set_flags
from urlab_wire.enums import CameraMode

_OPAQUE = np.frombuffer(b"\x00\x00\x00\xff", dtype=np.uint32)[0]


def opaque(film: Film) -> NDArray[np.uint32]:
    """The colours that were drawn, every pixel opaque."""
    colors = film.colors()
    colors |= _OPAQUE
    return colors


class RealMode(Mode, kind=CameraMode.REAL, dtype=PixelType.BGRA8):
    """MuJoCo's own picture, as the render profile wants it. Alpha is always 255."""

    def set_up(self, drawn: Any) -> None:
        """Draw with lights and textures."""
        set_flags(drawn, self.settings.flags)

    def develop(self, film: Film, lens: Lens) -> NDArray[np.uint32]:  # noqa: ARG002
        """BGRA."""
        return opaque(film)
