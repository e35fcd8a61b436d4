"""Messages of a camera's pictures: Image, CameraInfo, CompressedImage; those of one picture have one stamp and frame.

| mode | Image | CompressedImage |
|---|---|---|
| real | bgr8 | JPEG |
| depth | 32FC1, metres along the optical axis; +inf where nothing is (REP-118) | 16UC1, mm, PNG (compressedDepth) |
| semantic, instance | rgb8, exact colours | PNG, exact colours |

This file is all that the bridge knows of camera modes.
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

IMAGE = "sensor_msgs/msg/Image"
CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"

_JPEG_QUALITY = 80
_CHANNELS = "bgra"
"""The order in which the server streams them."""

_DEPTH_HEADER = struct.pack("<iff", 0, 0.0, 0.0)
"""What compressedDepth puts before the PNG: how it was quantised. Millimetres need nothing of it."""

_FARTHEST_MM = 0xFFFF


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
            mode, size = CameraMode(meta["mode"]), (int(meta["height"]), int(meta["width"]))
            intrinsics, sim_time = np.array(meta["K"], np.float64).reshape(3, 3), float(meta["sim_time"])
            pixels = _shaped(data, mode, size)
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
        """Rows."""
        return int(self.pixels.shape[0])

    @property
    def is_depth(self) -> bool:
        """Whether the pixels are metres."""
        return self.mode is CameraMode.DEPTH

    @property
    def encoding(self) -> str:
        """What sensor_msgs/Image calls such pixels."""
        if self.is_depth:
            return "32FC1"
        return "bgr8" if self.mode is CameraMode.REAL else "rgb8"

    def channels(self, wanted: str) -> NDArray[np.uint8]:
        """The colours (H, W, 3) in the order "rgb" or "bgr", in memory of their own."""
        colours = np.empty((self.height, self.width, 3), np.uint8)
        for place, channel in enumerate(wanted):  # a strided copy per channel is five times faster than all at once
            colours[..., place] = self.pixels[..., _CHANNELS.index(channel)]
        return colours


def image(picture: Picture, frame_id: str) -> Any:
    """sensor_msgs/Image. Depth shares the picture's memory, colours are copied."""
    encoding = picture.encoding
    pixels = picture.pixels if picture.is_depth else picture.channels(encoding[:3])
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
    return "compressedDepth" if mode is CameraMode.DEPTH else "compressed"


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
    size = (picture.width, picture.height)
    colours = Image.frombuffer("RGB", size, np.ascontiguousarray(picture.pixels), "raw", "BGRX", 0, 1)
    file = io.BytesIO()
    if picture.mode is CameraMode.REAL:
        colours.save(file, "JPEG", quality=_JPEG_QUALITY)
        return f"{picture.encoding}; jpeg compressed bgr8", file.getvalue()
    colours.save(file, "PNG", compress_level=1)
    return f"{picture.encoding}; png compressed bgr8", file.getvalue()


def _compressed_depth(picture: Picture) -> tuple[str, bytes]:
    """Whole millimetres, 0 where there is nothing, which is also what is farther than 65.535 m."""
    millimetres = np.rint(np.nan_to_num(picture.pixels, nan=0.0, posinf=0.0, neginf=0.0) * 1000.0)
    seen = np.where((millimetres > 0) & (millimetres <= _FARTHEST_MM), millimetres, 0).astype(np.uint16)
    file = io.BytesIO()
    Image.fromarray(seen).save(file, "PNG", compress_level=1)
    return "16UC1; compressedDepth png", _DEPTH_HEADER + file.getvalue()


def _header(picture: Picture, frame_id: str) -> Any:
    return header(time_of_s(picture.sim_time), frame_id)


def _shaped(data: bytes | memoryview, mode: CameraMode, size: tuple[int, int]) -> NDArray[Any]:
    if mode is CameraMode.DEPTH:
        return np.frombuffer(data, np.float32).reshape(size)
    return np.frombuffer(data, np.uint8).reshape(*size, 4)


def _numbers(values: Any) -> Array | None:
    return None if values is None else np.array(values, np.float64)
