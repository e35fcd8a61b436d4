import base64
import threading
from typing import Any

import numpy as np
import pytest

from urlab_client import CameraMode, URLabCameraView, URLabClient
from urlab_client.handles import camera

PIXELS = bytes([1, 2, 3, 4, 5, 6, 7, 8])


@pytest.fixture
def view() -> URLabCameraView:
    return URLabCameraView("eye", CameraMode.REAL, (2, 1), 45.0, "arm")


def test_a_camera_is_read_from_the_handshake(make_client: Any, server: Any, handshake: dict[str, Any]):
    handshake["articulations"][0]["camera_topics"] = {"d": {"mode": "depth", "resolution": [640, 480], "fovy": 60}}
    client: URLabClient = make_client()
    client.discover()
    view = client.articulations["arm"].cameras["d"]
    assert (view.mode, view.resolution, view.fovy, view.owner) == (CameraMode.DEPTH, (640, 480), 60.0, "arm")
    assert view.dtype == np.float32
    assert view.full_name == "arm/d"
    assert repr(view) == "URLabCameraView('arm/d', depth, 640x480, 0 frames)"
    assert not view.streams
    unseen = (view.latest, view.latest_frame, view.sim_time, view.frame_id, view.intrinsics, view.pos_w, view.quat_w)
    assert unseen == (None,) * 7


def test_step_frames_reach_the_cameras_by_bare_and_by_full_name(
    client: URLabClient, server: Any, state_reply: dict[str, Any]
):
    frame = {"width": 2, "height": 1, "dtype": "bgra8", "data": PIXELS}
    text = {**frame, "data": base64.b64encode(PIXELS).decode(), "mode": "semantic", "sim_time": 0.25, "frame_id": 9}
    cameras = {"wrist": frame, "dog/eye": text, "room": frame, "x": {}}
    server.replies["step"] = {**state_reply, "cameras": cameras}
    reply = client.step(include_cameras={"wrist": "sync"})
    assert server.last("step")["include_cameras"] == {"wrist": "sync"}
    assert reply["cameras"] == cameras
    wrist, eye = client.articulations["arm"].cameras["wrist"], client.articulations["dog"].cameras["eye"]
    for view in (wrist, eye, client.global_cameras["room"]):
        assert view.latest_frame is not None
        assert view.latest_frame.shape == (1, 2, 4)
        assert (view.frame_count, view.received, view.dropped) == (1, 1, 0)
    assert (wrist.sim_time, wrist.frame_id) == (0.5, None)
    assert (eye.sim_time, eye.frame_id, eye.mode) == (0.25, 9, CameraMode.SEMANTIC)
    assert client.articulations["arm"].cameras["eye"].latest_frame is None


def test_a_camera_that_is_not_there_is_a_key_error_that_lists_the_known_ones(client: URLabClient):
    with pytest.raises(KeyError, match="'arm' has no camera 'nose'; it has wrist, eye"):
        client.articulations["arm"].cameras["nose"]
    with pytest.raises(KeyError, match="there are room"):
        client.global_cameras["nose"]


def test_pictures_that_do_not_fit_are_dropped_and_counted(view: URLabCameraView):
    view.take(PIXELS[:-1])
    view.take(PIXELS, {"mode": "x-ray"})
    view.absorb({"data": b""}, 0.0)
    assert view.latest_frame is None
    assert (view.received, view.frame_count, view.dropped, view.misfits) == (3, 0, 3, 3)
    view.take(PIXELS)
    assert view.latest_frame is not None
    view.take(PIXELS[:-1])
    assert view.latest_frame is not None


def test_pictures_that_the_program_never_read_count_as_dropped(view: URLabCameraView):
    view.take(PIXELS, None, 3)
    assert (view.received, view.dropped, view.frame_count) == (4, 3, 1)
    view.take(PIXELS)
    assert (view.received, view.dropped, view.misfits) == (5, 4, 0)
    assert view.latest_frame is not None
    view.take(PIXELS)
    assert view.dropped == 4


def test_a_step_frame_was_seen_by_the_caller_of_the_step(view: URLabCameraView):
    view.absorb({"data": PIXELS}, 0.0)
    view.absorb({"data": PIXELS}, 0.1)
    assert (view.received, view.dropped, view.sim_time) == (2, 0, 0.1)


def test_frames_follow_the_mode_and_size_that_the_stream_tells(view: URLabCameraView):
    view.take(PIXELS)
    view.take(PIXELS, {"mode": "depth", "width": 1, "height": 2, "dtype": "float32"})
    assert (view.mode, view.resolution, view.dtype) == (CameraMode.DEPTH, (1, 2), np.float32)
    assert view.latest_frame is not None
    assert view.latest_frame.shape == (2, 1)


def test_after_a_switch_of_the_mode_old_pictures_under_way_are_not_shown(
    view: URLabCameraView, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(camera, "LATE_S", 60.0)
    view.take(PIXELS, {"mode": "real"})
    view.follow_mode(CameraMode.DEPTH)
    assert (view.latest_frame, view.dtype) == (None, np.float32)
    view.take(PIXELS, {"mode": "real"})
    assert (view.latest_frame, view.mode) == (None, CameraMode.DEPTH)
    view.take(PIXELS, {"mode": "depth"})
    view.follow_mode(CameraMode.DEPTH)
    assert view.latest_frame is not None
    assert view.latest_frame.dtype == np.float32
    monkeypatch.setattr(camera, "LATE_S", -1.0)
    view.take(PIXELS, {"mode": "instance"})
    assert view.mode is CameraMode.INSTANCE


def test_a_streamed_picture_does_not_replace_a_newer_one_of_a_step_until_a_server_counts_anew(
    view: URLabCameraView, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(camera, "LATE_S", 60.0)
    view.absorb({"data": PIXELS, "frame_id": 10}, 0.0)
    view.take(PIXELS, {"frame_id": 9})
    assert (view.frame_id, view.dropped) == (10, 1)
    view.take(PIXELS, {"frame_id": 11})
    assert view.frame_id == 11
    monkeypatch.setattr(camera, "LATE_S", -1.0)
    view.take(PIXELS, {"frame_id": 1})
    assert view.frame_id == 1


def test_waiting_gives_the_next_frame_even_to_one_who_holds_the_lock(view: URLabCameraView):
    view.take(PIXELS, {"frame_id": 1})
    ready = threading.Event()

    def feed() -> None:
        ready.wait(5)
        view.take(bytes(8), {"frame_id": 2})

    feeder = threading.Thread(target=feed)
    feeder.start()
    with view._changed:
        ready.set()
        assert not view.wait_for_frame(60.0).any()
        assert view.frame_id == 2
    feeder.join()
    assert view.wait_for_frame(0.0, after=1) is view.latest_frame


def test_waiting_in_vain_says_what_would_bring_a_frame(view: URLabCameraView):
    view.take(PIXELS)
    with pytest.raises(TimeoutError, match=r"no frame of camera 'arm/eye' within 0 s: it has no stream, and step"):
        view.wait_for_frame(0.0)
    view.follow_stream(None, "tcp://127.0.0.1:1", "arm/camera/eye")
    with pytest.raises(TimeoutError, match="in live mode it streams"):
        view.wait_for_frame(0.01)
