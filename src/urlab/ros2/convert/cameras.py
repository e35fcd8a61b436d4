"""Messages of a camera's pictures: Image, CameraInfo, CompressedImage; those of one picture have one stamp and frame.

| pixels of the mode | Image | CompressedImage |
|---|---|---|
| colours | bgr8 | JPEG |
| depth | 32FC1, metres along the optical axis; +inf where nothing is (REP-118) | 16UC1, mm, PNG (compressedDepth) |
| labels | rgb8, exact colours | PNG, exact colours |
"""

import io
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from urlab.ros2.frames import OPTICAL, WORLD
from urlab.ros2.geometry import Array, at, header, time_of_s, transform_of, transform_stamped
from urlab.ros2.messages import make
from urlab_client import CameraMode
from urlab_wire.pixels import PixelFormat, millimetres, pick_channels

IMAGE = "sensor_msgs/msg/Image"
CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"

_JPEG_QUALITY = 80
_ENCODINGS = {PixelFormat.COLOR_BGRA8: "bgr8", PixelFormat.LABEL_BGRA8: "rgb8", PixelFormat.DEPTH_F32: "32FC1"}
_DEPTH_HEADER = struct.pack("<iff", 0, 0.0, 0.0)
"""What compressedDepth puts before the PNG: how it was quantised. Millimetres need nothing of it."""

_TOO_FAR_MM = 0
"""What is farther than 16 bits can say counts as nothing."""


class BadPicture(ValueError):
    """Pixels and their description do not fit together, or something is missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Pixels and what is known of them; not to be written into.

    ``pixels`` are (H, W, 4) uint8 blue, green, red, alpha, or (H, W) float32 metres of depth. ``K`` (3, 3) is in
    pixels, the first pixel's middle at (0.5, 0.5), as the server counts. ``pos_w`` (3,) and ``quat_wxyz`` (4,) are the
    camera's pose in the world as MuJoCo has it, None where the server does not tell.
    """

    mode: CameraMode
    pixels: NDArray[Any]
    sim_time: float
    K: Array
    pos_w: Array | None = None
    quat_wxyz: Array | None = None

    @classmethod
    def of_wire(cls, data: bytes | memoryview, meta: Mapping[str, Any]) -> "Picture":
        """What a stream carries: raw pixels, which are not copied, and the metadata that goes before them."""
        try:
            mode = CameraMode(meta["mode"])
            intrinsics, sim_time = np.array(meta["K"], np.float64).reshape(3, 3), float(meta["sim_time"])
            pixels = mode.pixel_format.array(data, int(meta["width"]), int(meta["height"]))
        except (KeyError, TypeError, ValueError) as broken:
            described = {key: value for key, value in meta.items() if key != "data"}
            raise BadPicture(f"{len(data)} bytes do not fit {described}: {broken!r}") from broken
        return cls(mode, pixels, sim_time, intrinsics, _numbers(meta.get("pos")), _numbers(meta.get("quat")))

    @property
    def width(self) -> int:
        """Pixels in a row."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """How many rows of pixels there are."""
        return int(self.pixels.shape[0])

    @property
    def is_depth(self) -> bool:
        """Whether the pixels are metres."""
        return self.mode.pixel_format is PixelFormat.DEPTH_F32

    @property
    def encoding(self) -> str:
        """What sensor_msgs/Image calls such pixels."""
        return _ENCODINGS[self.mode.pixel_format]


def image(picture: Picture, frame_id: str) -> Any:
    """sensor_msgs/Image. Depth shares the picture's memory, colours are copied."""
    encoding = picture.encoding
    pixels = picture.pixels if picture.is_depth else pick_channels(picture.pixels, "bgra", encoding[:3])
    return make(
        IMAGE,
        header=_header(picture, frame_id),
        height=picture.height,
        width=picture.width,
        encoding=encoding,
        is_bigendian=int(sys.byteorder == "big"),
        step=picture.width * (4 if picture.is_depth else 3),
        data=np.ascontiguousarray(pixels).reshape(-1).view(np.uint8),
    )


def camera_info(picture: Picture, frame_id: str) -> Any:
    """sensor_msgs/CameraInfo of a pinhole without distortion.

    ROS, as OpenCV, has the first pixel's middle at (0, 0), so the principal point is half a pixel less than in the
    server's K. A reader that takes (u, v) of a pixel to a ray gets the ray through its middle.
    """
    k = picture.K.copy()
    k[:2, 2] -= 0.5
    return make(
        CAMERA_INFO,
        header=_header(picture, frame_id),
        height=picture.height,
        width=picture.width,
        distortion_model="plumb_bob",
        d=np.zeros(5),
        k=k,
        r=np.eye(3),
        p=np.hstack([k, np.zeros((3, 1))]),
    )


def compression_name(mode: CameraMode) -> str:
    """What ROS calls the image transport of `compressed` pictures of that mode."""
    return "compressedDepth" if mode.pixel_format is PixelFormat.DEPTH_F32 else "compressed"


def compressed(picture: Picture, frame_id: str) -> Any:
    """sensor_msgs/CompressedImage: JPEG, PNG where colours have a meaning, or compressedDepth."""
    format_, data = _compressed_depth(picture) if picture.is_depth else _compressed_colours(picture)
    return make(COMPRESSED_IMAGE, header=_header(picture, frame_id), format=format_, data=data)


def camera_transform(picture: Picture, frame_id: str) -> Any:
    """geometry_msgs/TransformStamped of the optical frame in the world when the picture was taken.

    For cameras that follow something; `static_transforms` has the frames of all others.
    """
    if picture.pos_w is None or picture.quat_wxyz is None:
        raise BadPicture("the server tells no pose of this camera")
    pose = at(picture.pos_w, picture.quat_wxyz).then(OPTICAL)
    return transform_stamped(time_of_s(picture.sim_time), WORLD, frame_id, transform_of(pose))


def _compressed_colours(picture: Picture) -> tuple[str, bytes]:
    colours, file = Image.fromarray(pick_channels(picture.pixels, "bgra")), io.BytesIO()
    if picture.mode.pixel_format.is_exact:
        colours.save(file, "PNG", compress_level=1)
        return f"{picture.encoding}; png compressed bgr8", file.getvalue()
    colours.save(file, "JPEG", quality=_JPEG_QUALITY)
    return f"{picture.encoding}; jpeg compressed bgr8", file.getvalue()


def _compressed_depth(picture: Picture) -> tuple[str, bytes]:
    """Whole millimetres, 0 where there is nothing, which is also what is farther than 65.535 m."""
    file = io.BytesIO()
    Image.fromarray(millimetres(picture.pixels, _TOO_FAR_MM)).save(file, "PNG", compress_level=1)
    return "16UC1; compressedDepth png", _DEPTH_HEADER + file.getvalue()


def _header(picture: Picture, frame_id: str) -> Any:
    return header(time_of_s(picture.sim_time), frame_id)


def _numbers(values: Any) -> Array | None:
    return None if values is None else np.array(values, np.float64)
