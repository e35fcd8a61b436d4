"""What every camera mode is: how a scene is drawn, and how what was drawn becomes a frame's pixels.

A mode registers by being declared: ``class Mine(RenderMode, kind=CameraMode.MINE)``. Its word and the format of its
pixels stand in `CameraMode`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.cameras.offscreen_buffer import Colors, OffscreenBuffer
from urlab.cameras.profile import DrawSettings
from urlab.cameras.projection import Projection
from urlab.compile.compiled_scene import CompiledScene
from urlab_wire.enums import CameraMode

FLAT_FLAGS = (
    int(mujoco.mjtRndFlag.mjRND_SEGMENT),
    int(mujoco.mjtRndFlag.mjRND_IDCOLOR),
    int(mujoco.mjtRndFlag.mjRND_CULL_FACE),
)
"""No lights, no textures, and one sample per pixel whatever the profile: no value is a mixture of two."""

_OPAQUE = np.frombuffer(b"\x00\x00\x00\xff", dtype=np.uint32)[0]
_MODES: dict[CameraMode, type["RenderMode"]] = {}


class RenderMode(ABC):
    """One mode for one scene. Every method is called on the GL thread."""

    kind: ClassVar[CameraMode]

    def __init_subclass__(cls, *, kind: CameraMode | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if kind is None:
            return
        if kind in _MODES:
            raise TypeError(f"camera mode {kind.value!r} is already {_MODES[kind].__qualname__}")
        cls.kind = kind
        _MODES[kind] = cls

    def __init__(self, scene: CompiledScene, settings: DrawSettings) -> None:
        """Prepare for a scene; ``settings`` are those of the profile in force."""
        self.scene = scene
        self.settings = settings

    @abstractmethod
    def prepare(self, drawn: Any) -> None:
        """Set all render flags of an MjvScene that has just been filled, and whatever else the mode changes in it."""

    def render(self, buffer: OffscreenBuffer, drawn: Any) -> None:
        """Draw the MjvScene into the buffer."""
        buffer.render(drawn)

    @abstractmethod
    def read_pixels(self, buffer: OffscreenBuffer, projection: Projection) -> NDArray[Any]:
        """The pixels of a frame in the format of ``kind``, (height, width), from the top left, in their own memory."""


def make_mode(kind: CameraMode, scene: CompiledScene, settings: DrawSettings) -> RenderMode:
    """The mode of that kind."""
    return _MODES[kind](scene, settings)


def declared_modes() -> frozenset[CameraMode]:
    """Every kind that is declared."""
    return frozenset(_MODES)


def set_flags(drawn: Any, flags: Iterable[int]) -> None:
    """Switch on these mjtRndFlag members of an MjvScene and no others."""
    drawn.flags[:] = 0
    drawn.flags[list(flags)] = 1


def opaque_colors(buffer: OffscreenBuffer) -> Colors:
    """The colours that were drawn, BGRA, every pixel with an alpha of 255."""
    colors = buffer.read_colors()
    colors |= _OPAQUE
    return colors
