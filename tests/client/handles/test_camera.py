import base64
from typing import Any

import numpy as np

from urlab_client import CameraMode, URLabCameraView, URLabClient
from urlab_client.handles.camera import decode_frame

PIXELS = bytes([1, 2, 3, 4, 5, 6, 7, 8])


def test_a_camera_is_read_from_the_handshake():
    view = URLabCameraView.from_handshake("d", {"mode": "depth", "resolution": [640, 480], "fovy": 60}, owner="arm")
    assert (view.mode, view.resolution, view.fovy, view.owner) == (CameraMode.DEPTH, (640, 480), 60.0, "arm")
    assert view.dtype == np.float32
    assert view.latest_frame is None


def test_real_frames_become_rgba_and_segmentation_stays_bgra():
    real = decode_frame(PIXELS, CameraMode.REAL, (2, 1))
    semantic = decode_frame(PIXELS, CameraMode.SEMANTIC, (2, 1))
    assert real is not None
    assert real.tolist() == [[[3, 2, 1, 4], [7, 6, 5, 8]]]
    assert semantic is not None
    assert semantic.tolist() == [[[1, 2, 3, 4], [5, 6, 7, 8]]]


def test_depth_frames_are_metres():
    frame = decode_frame(np.array([0.5, 2.0], np.float32).tobytes(), CameraMode.DEPTH, (2, 1))
    assert frame is not None
    assert frame.dtype == np.float32
    assert frame.tolist() == [[0.5, 2.0]]


def test_frames_of_a_wrong_size_are_left_out():
    assert decode_frame(PIXELS[:-1], CameraMode.REAL, (2, 1)) is None
    assert decode_frame(b"", CameraMode.REAL, (0, 0)) is None


def test_step_frames_reach_the_cameras_by_bare_and_by_full_name(
    client: URLabClient, server: Any, state_reply: dict[str, Any]
):
    frame = {"width": 2, "height": 1, "dtype": "bgra8", "data": PIXELS}
    text = {**frame, "data": base64.b64encode(PIXELS).decode()}
    server.replies["step"] = {**state_reply, "cameras": {"wrist": frame, "dog/eye": text, "room": frame, "x": {}}}
    client.step(include_cameras={"wrist": "sync"})
    assert server.last("step")["include_cameras"] == {"wrist": "sync"}
    views = [client.articulations["arm"].cameras["wrist"], client.articulations["dog"].cameras["eye"]]
    for view in [*views, client.global_cameras["room"]]:
        assert view.latest_frame is not None
        assert view.latest_frame.shape == (1, 2, 4)
        assert (view.sim_time, view.frame_count) == (0.5, 1)
    assert client.articulations["arm"].cameras["eye"].latest_frame is None
