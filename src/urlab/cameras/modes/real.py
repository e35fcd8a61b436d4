"""What a colour camera sees."""

from typing import Any

from urlab.cameras.modes.render_mode import RenderMode, opaque_colors, set_flags
from urlab.cameras.offscreen_buffer import Colors, OffscreenBuffer
from urlab.cameras.projection import Projection
from urlab_wire.enums import CameraMode


class RealMode(RenderMode, kind=CameraMode.REAL):
    """MuJoCo's own picture, as the render profile wants it."""

    def prepare(self, drawn: Any) -> None:
        """Draw with lights and textures."""
        set_flags(drawn, self.settings.flags)

    def read_pixels(self, buffer: OffscreenBuffer, projection: Projection) -> Colors:  # noqa: ARG002
        """BGRA in each element's bytes."""
        return opaque_colors(buffer)
