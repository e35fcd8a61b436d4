import base64
from typing import Any

import numpy as np
import pytest

from urlab_client import CameraMode
from urlab_client.handles.frame import CameraFrame, decode_frame, read_frame, rgb_picture

PIXELS = bytes([1, 2, 3, 4, 5, 6, 7, 8])
DEPTHS = np.array([0.5, 2.0], np.float32)


def test_real_frames_become_rgba_and_segmentation_stays_bgra():
    real = decode_frame(PIXELS, CameraMode.REAL, (2, 1))
    assert real is not None
    assert real.tolist() == [[[3, 2, 1, 4], [7, 6, 5, 8]]]
    for mode in (CameraMode.SEMANTIC, CameraMode.INSTANCE):
        kept = decode_frame(base64.b64encode(PIXELS).decode(), mode, (2, 1))
        assert kept is not None
        assert kept.tolist() == [[[1, 2, 3, 4], [5, 6, 7, 8]]]


def test_depth_frames_are_metres():
    frame = decode_frame(DEPTHS.tobytes(), CameraMode.DEPTH, (1, 2))
    assert frame is not None
    assert frame.dtype == np.float32
    assert frame.tolist() == [[0.5], [2.0]]


@pytest.mark.parametrize("mode", list(CameraMode))
def test_a_frame_is_the_readers_own(mode: CameraMode):
    wire = bytearray(PIXELS)
    frame = decode_frame(memoryview(wire), mode, (2, 1))
    assert frame is not None
    before = frame.tolist()
    wire[:] = bytes(8)
    assert frame.tolist() == before
    frame[0, 0] = 7
    assert not any(wire)


@pytest.mark.parametrize(
    ("data", "size"),
    [(PIXELS[:-1], (2, 1)), (b"", (0, 0)), (PIXELS[:4], (-1, -1)), (PIXELS + b"x", (2, 1)), ("!", (2, 1))],
)
def test_frames_of_a_wrong_size_are_left_out(data: Any, size: tuple[int, int]):
    assert decode_frame(data, CameraMode.REAL, size) is None


def test_the_description_says_what_a_frame_is():
    meta = {
        "width": 1, "height": 2, "dtype": "float32", "mode": "depth", "frame_id": 7, "sim_time": 2,
        "K": [1, 0, 2, 0, 3, 4, 0, 0, 1], "pos": [1, 2, 3], "quat": [1, 0, 0, 0],
    }  # fmt: skip
    frame = read_frame(DEPTHS.tobytes(), meta, CameraMode.REAL, (640, 480))
    assert frame is not None
    assert (frame.mode, frame.resolution, frame.frame_id, frame.sim_time) == (CameraMode.DEPTH, (1, 2), 7, 2.0)
    assert frame.intrinsics is not None
    assert frame.intrinsics.tolist() == [[1, 0, 2], [0, 3, 4], [0, 0, 1]]
    assert frame.pos_w is not None
    assert frame.pos_w.tolist() == [1, 2, 3]
    assert frame.quat_w is not None
    assert frame.quat_w.tolist() == [1, 0, 0, 0]


def test_without_a_description_the_camera_says_what_a_frame_is():
    frame = read_frame(PIXELS, {}, CameraMode.SEMANTIC, (2, 1))
    assert frame is not None
    assert (frame.mode, frame.resolution) == (CameraMode.SEMANTIC, (2, 1))
    assert (frame.frame_id, frame.sim_time, frame.intrinsics, frame.pos_w, frame.quat_w) == (None,) * 5


@pytest.mark.parametrize("meta", [{"mode": "x-ray"}, {"mode": "real", "dtype": "float32"}, {"width": 3}, {"mode": 5}])
def test_a_description_that_does_not_fit_loses_the_frame(meta: dict[str, Any]):
    assert read_frame(PIXELS, meta, CameraMode.REAL, (2, 1)) is None


@pytest.mark.parametrize(
    "meta", [{"K": [1.0]}, {"pos": "here", "frame_id": "x"}, {"quat": {"w": 1}, "sim_time": [1]}, {"width": "2"}]
)
def test_what_cannot_be_read_counts_as_not_told(meta: dict[str, Any]):
    frame = read_frame(PIXELS, meta, CameraMode.REAL, (2, 1))
    assert frame is not None
    assert (frame.frame_id, frame.sim_time, frame.intrinsics, frame.pos_w, frame.quat_w) == (None,) * 5


def test_a_frame_for_people_to_look_at_is_rgb_in_every_mode():
    pixels = np.array([[[1, 2, 3, 255]]], np.uint8)
    assert rgb_picture(CameraFrame(pixels, CameraMode.REAL)).tolist() == [[[1, 2, 3]]]
    assert rgb_picture(CameraFrame(pixels, CameraMode.INSTANCE)).tolist() == [[[3, 2, 1]]]
    assert rgb_picture(CameraFrame(DEPTHS[None], CameraMode.DEPTH), 2.0).tolist() == [[[64] * 3, [255] * 3]]
