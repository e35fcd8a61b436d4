"""The shapes that task files can name."""

from urlab.evaluation.tasks.shapes.containers import Bin, Bowl, Cup, Tray
from urlab.evaluation.tasks.shapes.furniture import DoorCabinet, DrawerCabinet
from urlab.evaluation.tasks.shapes.shape import Shape
from urlab.evaluation.tasks.shapes.solids import Box, Capsule, Cylinder, HandledBlock, Plate, Sphere

_ALL: tuple[type[Shape], ...] = (
    Box,
    Cylinder,
    Sphere,
    Capsule,
    Plate,
    HandledBlock,
    Bin,
    Tray,
    Bowl,
    Cup,
    DrawerCabinet,
    DoorCabinet,
)

SHAPES: dict[str, type[Shape]] = {str(shape.__struct_config__.tag): shape for shape in _ALL}

__all__ = ["SHAPES", "Shape"]
