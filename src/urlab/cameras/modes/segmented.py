"""Flat colours that say what a pixel belongs to."""

from typing import Any

from urlab.cameras.modes.render_mode import FLAT_FLAGS, RenderMode, opaque_colors, set_flags
from urlab.cameras.offscreen_buffer import Colors, OffscreenBuffer
from urlab.cameras.profile import DrawSettings
from urlab.cameras.projection import Projection
from urlab.cameras.segmentation import segment
from urlab.compile.compiled_scene import CompiledScene
from urlab_wire.enums import CameraMode

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
