"""What a colour camera sees."""

from typing import Any

import numpy as np

from urlab.cameras.film import Film
from urlab.cameras.frame import PixelType
from urlab.cameras.lens import Lens
from urlab.cameras.modes.mode import Mode, set_flags
from urlab_wire.enums import CameraMode

_OPAQUE = np.frombuffer(b"\x00\x00\x00\xff", dtype=np.uint32)[0]


def upright_bytes(film: Film) -> bytes:
    """The colours that were drawn, the highest row first, every pixel opaque."""
    upright = film.blank()
    np.bitwise_or(film.colors()[::-1], _OPAQUE, out=upright)
    return upright.tobytes()


class RealMode(Mode, kind=CameraMode.REAL, dtype=PixelType.BGRA8):
    """MuJoCo's own picture, as the render profile wants it. Alpha is always 255."""

    def set_up(self, drawn: Any) -> None:
        """Draw with lights and textures."""
        set_flags(drawn, self.settings.flags)

    def develop(self, film: Film, lens: Lens) -> bytes:  # noqa: ARG002
        """BGRA."""
        return upright_bytes(film)
