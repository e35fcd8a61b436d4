"""Flat colours that say what a pixel belongs to."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.cameras.film import Film
from urlab.cameras.frame import PixelType
from urlab.cameras.lens import Lens
from urlab.cameras.modes.depth import FLAT
from urlab.cameras.modes.mode import Mode, set_flags
from urlab.cameras.modes.real import opaque
from urlab.cameras.profile import DrawSettings
from urlab.cameras.segmentation import segment
from urlab.compile.compiled_scene import CompiledScene
from urlab_wire.enums import CameraMode

_HIDDEN = -1


class _Segmented(Mode):
    """Every thing in the colour of its label, exactly; black where there is nothing. Alpha is always 255.

    MuJoCo paints a thing's segmentation id as a colour: red is its lowest byte, and one more than the id is painted.
    So ids are chosen that give the colours of the table, and nothing has to be looked up per pixel.
    """

    def __init__(self, scene: CompiledScene, settings: DrawSettings) -> None:
        super().__init__(scene, settings)
        self._ids = {
            element: [_segmentation_id(label.color) for label in labels]
            for element, labels in segment(scene).labels(self.kind).items()
        }

    def set_up(self, drawn: Any) -> None:
        """Paint what belongs to somebody; hide the rest, which is no thing of the world."""
        set_flags(drawn, FLAT)
        for geom in drawn.geoms[: drawn.ngeom]:
            ids = self._ids.get(geom.objtype)
            geom.segid = _HIDDEN if ids is None else ids[geom.objid]

    def develop(self, film: Film, lens: Lens) -> NDArray[np.uint32]:  # noqa: ARG002
        """BGRA."""
        return opaque(film)


class SemanticMode(_Segmented, kind=CameraMode.SEMANTIC, dtype=PixelType.BGRA8):
    """A colour per class."""


class InstanceMode(_Segmented, kind=CameraMode.INSTANCE, dtype=PixelType.BGRA8):
    """A colour per robot, and per body of everything else."""


def _segmentation_id(color: tuple[int, int, int]) -> int:
    red, green, blue = color
    return (red | green << 8 | blue << 16) - 1
