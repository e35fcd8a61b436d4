"""What is asked of a camera, and what it gives."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numpy.typing import NDArray

from urlab.cameras.lens import Matrix3
from urlab.compile.compiled_scene import CameraSlot
from urlab.geometry import Quat, Vec3
from urlab_wire.enums import CameraMode


class PixelType(StrEnum):
    """How a frame's bytes are to be read; four bytes per pixel either way."""

    BGRA8 = "bgra8"
    FLOAT32 = "float32"


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture to take: a camera of the scene and what its pixels are to mean.

    ``resolution`` (width, height) replaces the camera's own.
    """

    camera: CameraSlot
    mode: CameraMode
    resolution: tuple[int, int] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.resolution or self.camera.resolution


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture, and where and when it was taken. ``name`` is the camera's compiled name.

    ``data`` is 4 * width * height bytes, row by row from the top left, in memory that is never written to again. ``K``
    is the 3x3 intrinsic matrix in pixels, row by row (`Lens` says where pixels are). ``pos_w`` and ``quat_wxyz`` are
    the pose of the camera in the world, in MuJoCo's convention: it looks along its own -Z, +X is right and +Y is up.
    """

    name: str
    mode: CameraMode
    width: int
    height: int
    dtype: PixelType
    data: memoryview
    frame_id: int
    sim_time: float
    K: Matrix3
    pos_w: Vec3
    quat_wxyz: Quat

    def metadata(self) -> dict[str, Any]:
        """Everything but the pixels, as plain data that travels beside them."""
        return {
            "width": self.width,
            "height": self.height,
            "dtype": self.dtype.value,
            "mode": self.mode.value,
            "frame_id": self.frame_id,
            "sim_time": self.sim_time,
            "K": list(self.K),
            "pos": list(self.pos_w),
            "quat": list(self.quat_wxyz),
        }


def seal(pixels: NDArray[Any]) -> memoryview:
    """The bytes of an array that nothing else refers to. It is not copied, and cannot be written to any more."""
    pixels.flags.writeable = False
    return pixels.data.cast("B")
