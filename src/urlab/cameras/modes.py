"""The camera modes: how a scene is drawn, and how what was drawn becomes a frame's pixels.

A mode registers by being declared: ``class Mine(RenderMode, kind=CameraMode.MINE)``. Its word and the format of its
pixels stand in `CameraMode`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.cameras.offscreen_buffer import Colors, Depths, OffscreenBuffer
from urlab.cameras.profile import DrawSettings
from urlab.cameras.projection import Projection
from urlab.cameras.segmentation import segment
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


class RealMode(RenderMode, kind=CameraMode.REAL):
    """MuJoCo's own picture, as the render profile wants it."""

    def prepare(self, drawn: Any) -> None:
        """Draw with lights and textures."""
        set_flags(drawn, self.settings.flags)

    def read_pixels(self, buffer: OffscreenBuffer, projection: Projection) -> Colors:  # noqa: ARG002
        """BGRA in each element's bytes."""
        return opaque_colors(buffer)


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


_HIDDEN = -1


class _Segmented(RenderMode):
    """Every thing in the colour of its label, exactly; black where there is nothing.

    MuJoCo paints a thing's segmentation id as a colour: red is its lowest byte, and one more than the id is painted.
    So ids are chosen that give the colours of the table, and nothing has to be looked up per pixel.
    """

    def __init__(self, scene: CompiledScene, settings: DrawSettings) -> None:
        super().__init__(scene, settings)
        self._ids = {
            element: [_segmentation_id(label.color) for label in labels]
            for element, labels in segment(scene).labels(self.kind).items()
        }

    def prepare(self, drawn: Any) -> None:
        """Paint what has an owner; hide the rest, which is no thing of the world."""
        set_flags(drawn, FLAT_FLAGS)
        for geom in drawn.geoms[: drawn.ngeom]:
            ids = self._ids.get(geom.objtype)
            geom.segid = _HIDDEN if ids is None else ids[geom.objid]

    def read_pixels(self, buffer: OffscreenBuffer, projection: Projection) -> Colors:  # noqa: ARG002
        """BGRA in each element's bytes."""
        return opaque_colors(buffer)


class SemanticMode(_Segmented, kind=CameraMode.SEMANTIC):
    """A colour per class."""


class InstanceMode(_Segmented, kind=CameraMode.INSTANCE):
    """A colour per robot, and per body of everything else."""


def _segmentation_id(color: tuple[int, int, int]) -> int:
    red, green, blue = color
    return (red | green << 8 | blue << 16) - 1
