"""sensor_msgs/Image, CameraInfo and CompressedImage of pictures; those of one picture have one stamp and one frame.

| mode | Image | CompressedImage |
|---|---|---|
| real | bgr8, or rgb8 from a frame of the client's | JPEG |
| depth | 32FC1, metres along the optical axis; +inf where nothing is (REP-118) | 16UC1, mm, PNG (compressedDepth) |
| semantic, instance | rgb8, exact colours | PNG, exact colours |
"""

import io
import struct
import sys
from typing import Any

import numpy as np
from PIL import Image

from urlab.ros2.convert.geometry import transform_of, transform_stamped
from urlab.ros2.convert.links import WORLD
from urlab.ros2.convert.picture import BGRA, BadPicture, Picture
from urlab.ros2.convert.pose import at
from urlab.ros2.convert.stamps import header, time_of_s
from urlab.ros2.messages import make
from urlab_client import CameraMode

IMAGE = "sensor_msgs/msg/Image"
CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"

OPTICAL = at(quat_wxyz=(0.0, 1.0, 0.0, 0.0))
"""The optical frame in a camera of MuJoCo's, which looks along -z, +y up: half a turn about x."""

_DEPTH_HEADER = struct.pack("<iff", 0, 0.0, 0.0)
"""What compressedDepth puts before the PNG: how it was quantised. Millimetres need nothing of it."""

_FARTHEST_MM = 0xFFFF


def image(picture: Picture, frame_id: str) -> Any:
    """sensor_msgs/Image. Depth shares the picture's memory, colours are copied."""
    encoding = _encoding(picture)
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


def compressed(picture: Picture, frame_id: str, quality: int = 80) -> Any:
    """sensor_msgs/CompressedImage of colours: JPEG of that quality (1 to 95), or PNG where colours have a meaning."""
    if picture.is_depth:
        raise BadPicture("depth is compressed by compressed_depth(), not as a picture of colours")
    raw = "BGRX" if picture.order == BGRA else "RGBX"
    size = (picture.width, picture.height)
    colours = Image.frombuffer("RGB", size, np.ascontiguousarray(picture.pixels), "raw", raw, 0, 1)
    is_exact = picture.mode is not CameraMode.REAL
    file = io.BytesIO()
    if is_exact:
        colours.save(file, "PNG", compress_level=1)
    else:
        colours.save(file, "JPEG", quality=quality)
    format_ = f"{_encoding(picture)}; {'png' if is_exact else 'jpeg'} compressed bgr8"
    return _compressed(picture, frame_id, format_, file.getvalue())


def compressed_depth(picture: Picture, frame_id: str) -> Any:
    """sensor_msgs/CompressedImage of depth as compressedDepth has it: whole millimetres, 0 where there is nothing.

    What is farther than 65.535 m counts as nothing.
    """
    if not picture.is_depth:
        raise BadPicture(f"a picture of mode {picture.mode.value!r} has no depth: use compressed()")
    millimetres = np.rint(np.nan_to_num(picture.pixels, nan=0.0, posinf=0.0, neginf=0.0) * 1000.0)
    seen = np.where((millimetres > 0) & (millimetres <= _FARTHEST_MM), millimetres, 0).astype(np.uint16)
    file = io.BytesIO()
    Image.fromarray(seen).save(file, "PNG", compress_level=1)
    return _compressed(picture, frame_id, "16UC1; compressedDepth png", _DEPTH_HEADER + file.getvalue())


def camera_transform(picture: Picture, frame_id: str) -> Any:
    """geometry_msgs/TransformStamped of the optical frame in the world when the picture was taken.

    For cameras that follow something; `static_transforms` has the frames of all others.
    """
    if picture.pos_w is None or picture.quat_wxyz is None:
        raise BadPicture("the server told no pose of this camera")
    pose = at(picture.pos_w, picture.quat_wxyz).then(OPTICAL)
    return transform_stamped(time_of_s(picture.sim_time), WORLD, frame_id, transform_of(pose))


def _encoding(picture: Picture) -> str:
    if picture.is_depth:
        return "32FC1"
    return "bgr8" if picture.mode is CameraMode.REAL and picture.order == BGRA else "rgb8"


def _header(picture: Picture, frame_id: str) -> Any:
    return header(time_of_s(picture.sim_time), frame_id)


def _compressed(picture: Picture, frame_id: str, format_: str, data: bytes) -> Any:
    return make(COMPRESSED_IMAGE, header=_header(picture, frame_id), format=format_, data=data)
