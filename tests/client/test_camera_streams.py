"""Cameras that stream: a whole client against publishing sockets."""

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import zmq

from urlab_client import CameraMode, URLabCameraView, URLabClient
from urlab_client.handles import camera
from urlab_client.transports import zmq_streams
from urlab_wire.codec import encode

EYE = "dog/camera/eye"
ROOM = "global/camera/room"
PATIENCE_S = 30.0
PIXELS = bytes([1, 2, 3, 4, 5, 6, 7, 8])

Make = Callable[..., URLabClient]
Publish = Callable[..., Any]


@pytest.fixture
def eye_at(handshake: dict[str, Any]) -> Callable[..., None]:
    """Lets the dog's eye stream at an endpoint."""

    def put(endpoint: str, **changes: Any) -> None:
        cameras = handshake["articulations"][1]["camera_topics"]
        cameras["eye"] = {**cameras["eye"], "zmq_endpoint": endpoint, "zmq_topic": EYE, **changes}

    return put


@pytest.fixture
def publisher(publish: Publish, eye_at: Callable[..., None]) -> Any:
    """The socket of the dog's eye, which the handshake tells."""
    made = publish()
    eye_at(made.endpoint)
    return made


@pytest.fixture
def watcher(make_client: Make, publisher: Any) -> URLabClient:
    """A live client that is subscribed to the dog's eye."""
    client = make_client()
    client.discover()
    assert publisher.await_subscribers(2) == {EYE.encode(), f"meta/{EYE}".encode()}
    return client


def dogs_eye(client: URLabClient) -> URLabCameraView:
    return client.articulations["dog"].cameras["eye"]


def room_at(handshake: dict[str, Any], endpoint: str) -> None:
    cameras = handshake["global_cameras"]
    cameras["room"] = {**cameras["room"], "zmq_endpoint": endpoint, "zmq_topic": ROOM}


def camera_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "urlab-cameras"]


def lasting_threads() -> list[threading.Thread]:
    """Of the cameras' threads those that do not end; a stop waits for them a second only."""
    for thread in camera_threads():
        thread.join(PATIENCE_S)
    return camera_threads()


def test_frames_stream_into_the_view_with_all_that_belongs_to_them(watcher: URLabClient, publisher: Any):
    view = dogs_eye(watcher)
    publisher.show(EYE, PIXELS, mode="real", width=2, height=1, frame_id=4, sim_time=1.5, pos=[1, 2, 3])
    assert view.wait_for_frame(PATIENCE_S, after=0).tolist() == [[[3, 2, 1, 4], [7, 6, 5, 8]]]
    assert (view.frame_count, view.frame_id, view.sim_time) == (1, 4, 1.5)
    assert view.pos_w is not None
    assert view.pos_w.tolist() == [1, 2, 3]


def test_bare_pixels_are_enough(watcher: URLabClient, publisher: Any):
    publisher.show(EYE, PIXELS)
    assert dogs_eye(watcher).wait_for_frame(PATIENCE_S, after=0).shape == (1, 2, 4)
    assert dogs_eye(watcher).sim_time is None


def test_pixels_of_a_wrong_size_are_dropped_and_counted(watcher: URLabClient, publisher: Any):
    view = dogs_eye(watcher)
    publisher.show(EYE, PIXELS[:-1], frame_id=1)
    publisher.show(EYE, PIXELS, frame_id=2)
    view.wait_for_frame(PATIENCE_S, after=0)
    assert (view.frame_id, view.received, view.dropped, view.frame_count) == (2, 2, 1, 1)


def test_all_cameras_of_a_client_share_one_thread(
    make_client: Make, publisher: Any, publish: Publish, handshake: dict[str, Any]
):
    room = publish()
    room_at(handshake, room.endpoint)
    client = make_client(step_mode="live")
    client.discover()
    publisher.await_subscribers(2)
    room.await_subscribers(2)
    assert len(camera_threads()) == 1
    room.show(ROOM, PIXELS)
    assert client.global_cameras["room"].wait_for_frame(PATIENCE_S, after=0).shape == (1, 2, 4)
    client.close()
    assert lasting_threads() == []


@pytest.mark.parametrize("options", [{"step_mode": "direct"}, {"camera_streams": False}])
def test_the_client_does_not_listen_in_stepped_modes_or_when_told_not_to(
    make_client: Make, publisher: Any, options: dict[str, Any]
):
    make_client(**options).discover()
    assert lasting_threads() == []


def test_switching_the_step_mode_switches_the_streams(watcher: URLabClient, publisher: Any):
    watcher.runtime.set_mode("puppet")
    assert publisher.await_word()[0] == 0
    assert lasting_threads() == []
    watcher.runtime.set_mode("live")
    publisher.await_subscribers(2)
    publisher.show(EYE, PIXELS)
    dogs_eye(watcher).wait_for_frame(PATIENCE_S, after=0)
    (thread,) = camera_threads()
    watcher.runtime.set_mode("live")
    assert camera_threads() == [thread]


def test_the_end_of_the_simulation_ends_the_streams(watcher: URLabClient, server: Any):
    watcher.sim.stop()
    assert lasting_threads() == []
    watcher.sim.start(raise_on_failure=False)
    assert lasting_threads() == []


def test_a_simulation_with_other_cameras_brings_other_streams(
    watcher: URLabClient, publisher: Any, publish: Publish, server: Any, handshake: dict[str, Any]
):
    room = publish()
    handshake["articulations"].pop()
    room_at(handshake, f"tcp://*:{room.port}")
    server.replies["begin_pie"] = {"state": "ready", "handshake_payload": handshake}
    watcher.sim.start()
    room.await_subscribers(2)
    assert publisher.await_word()[0] == 0
    room.show(ROOM, PIXELS)
    assert watcher.global_cameras["room"].wait_for_frame(PATIENCE_S, after=0).shape == (1, 2, 4)


def test_a_server_that_comes_back_at_its_port_streams_on_without_a_word(
    make_client: Make, publish: Publish, eye_at: Callable[..., None], lasting_port: Callable[[], int]
):
    publisher, watcher = publish(f"tcp://127.0.0.1:{lasting_port()}"), make_client()
    eye_at(publisher.endpoint)
    watcher.discover()
    publisher.await_subscribers(2)
    view = dogs_eye(watcher)
    publisher.show(EYE, PIXELS, frame_id=1000)
    view.wait_for_frame(PATIENCE_S, after=0)
    publisher.close()
    again = publish(publisher.endpoint)
    again.await_subscribers(2)
    again.show(EYE, bytes(8), frame_id=1)
    assert not view.wait_for_frame(PATIENCE_S, after=1).any()
    assert view.frame_id == 1


def test_a_server_that_comes_back_elsewhere_is_found_by_discover(
    watcher: URLabClient, publisher: Any, publish: Publish, eye_at: Callable[..., None]
):
    publisher.close()
    elsewhere = publish()
    eye_at(elsewhere.endpoint, resolution=[1, 1])
    watcher.discover()
    elsewhere.await_subscribers(2)
    elsewhere.show(EYE, PIXELS[:4])
    assert dogs_eye(watcher).wait_for_frame(PATIENCE_S, after=0).shape == (1, 1, 4)


def test_a_server_without_a_simulation_has_no_streams(watcher: URLabClient, server: Any):
    server.replies["hello"] = {"session_id": "s", "manager_present": False, "articulations": []}
    watcher.discover()
    assert lasting_threads() == []


def test_a_switched_camera_shows_only_frames_of_the_new_mode(
    watcher: URLabClient, publisher: Any, server: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(camera, "LATE_S", PATIENCE_S)
    view = dogs_eye(watcher)
    publisher.show(EYE, PIXELS, mode="real", dtype="bgra8")
    view.wait_for_frame(PATIENCE_S, after=0)
    server.replies["set_camera_mode"] = {"camera": "dog/eye", "mode": "depth"}
    assert watcher.runtime.set_camera_mode(view, "depth") is CameraMode.DEPTH
    assert view.latest_frame is None
    publisher.show(EYE, PIXELS, mode="real", dtype="bgra8")
    publisher.show(EYE, np.array([0.5, 2.0], np.float32).tobytes(), mode="depth", dtype="float32")
    assert view.wait_for_frame(PATIENCE_S, after=1).tolist() == [[0.5, 2.0]]
    assert (view.frame_count, view.dtype, view.mode) == (2, np.float32, CameraMode.DEPTH)


def test_a_camera_that_is_switched_off_is_left_and_comes_back_where_it_then_streams(
    watcher: URLabClient, publisher: Any, publish: Publish, server: Any
):
    off = {"streaming": False, "zmq": False, "shm": False, "rate_hz": 30.0, "zmq_topic": EYE}
    server.replies["set_camera_streaming"] = {"cameras": {"dog/eye": {**off, "zmq_endpoint": publisher.endpoint}}}
    told = watcher.runtime.set_camera_streaming({"dog/eye": False, "nobody": True})
    assert (told["dog/eye"].streaming, told["dog/eye"].rate_hz) == (False, 30.0)
    assert lasting_threads() == []
    other = publish()
    on = {**off, "streaming": True, "zmq": True, "rate_hz": 5.0, "zmq_endpoint": other.endpoint}
    server.replies["set_camera_streaming"] = {"cameras": {"dog/eye": on}}
    watcher.runtime.set_camera_streaming({"dog/eye": {"rate_hz": 5.0}})
    assert lasting_threads() == []
    watcher.runtime.set_camera_streaming({"dog/eye": {"zmq": True, "rate_hz": 5.0}})
    assert server.last("set_camera_streaming")["cameras"] == {"dog/eye": {"zmq": True, "rate_hz": 5.0}}
    other.await_subscribers(2)


def test_a_live_step_reports_the_streamed_frames_and_its_own_by_name(
    watcher: URLabClient, publisher: Any, server: Any, state_reply: dict[str, Any]
):
    assert "cameras" not in watcher.step()
    own = {"width": 2, "height": 1, "dtype": "bgra8", "data": PIXELS}
    server.replies["step"] = {**state_reply, "cameras": {"wrist": own}}
    assert watcher.step(include_cameras={"wrist": "sync"})["cameras"] == {"wrist": own}
    publisher.show(EYE, PIXELS, frame_id=3)
    view = dogs_eye(watcher)
    view.wait_for_frame(PATIENCE_S, after=0)
    cameras = watcher.step(include_cameras={"wrist": "sync"})["cameras"]
    assert list(cameras) == ["dog", "wrist"]
    shown = cameras["dog"]["eye"]
    assert shown["pixels"] is view.latest_frame
    assert (shown["mode"], shown["resolution"], shown["frame_count"]) == ("real", (2, 1), 1)
    assert cameras["wrist"] == own
    with pytest.raises(KeyError, match="nose"):
        cameras["nose"]
    watcher.runtime.set_mode("direct")
    assert list(watcher.step()["cameras"]) == ["wrist"]


def test_the_colours_of_segmentation_and_the_renderer_are_told(make_client: Make, handshake: dict[str, Any]):
    client = make_client(step_mode="direct")
    assert (client.segmentation, client.rendering, client.streams) == ({}, {}, {})
    handshake["segmentation"] = {"semantic": [{"id": 1, "color": [10, 20, 30], "name": "dog"}], "instance": []}
    handshake["rendering"] = {"profile": "fast", "renderer": "llvmpipe"}
    client.discover()
    (dog,) = client.segmentation["semantic"]
    assert (dog.id, dog.color, dog.name, dog.bgra) == (1, (10, 20, 30), "dog", (30, 20, 10, 255))
    assert client.segmentation["instance"] == []
    assert client.rendering["profile"] == "fast"


class Hammer:
    """Publishes pictures as fast as it can, each of one number that its description repeats."""

    def __init__(self, publisher: Any, n_bytes: int) -> None:
        self._socket: zmq.Socket[bytes] = publisher.socket
        self._n_bytes = n_bytes
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in itertools.count():
            if self._enough.is_set():
                return
            meta = encode({"mode": "semantic", "frame_id": number, "sim_time": float(number % 256)})
            self._socket.send_multipart([f"meta/{EYE}".encode(), meta])
            self._socket.send_multipart([f"{EYE} ".encode(), bytes([number % 256]) * self._n_bytes])

    def stop(self) -> None:
        self._enough.set()
        self._thread.join()


@pytest.fixture
def hammered(make_client: Make, publish: Publish, eye_at: Callable[..., None]) -> Iterator[URLabClient]:
    publisher = publish()
    eye_at(publisher.endpoint, resolution=[64, 48])
    client = make_client()
    client.discover()
    publisher.await_subscribers(2)
    hammer = Hammer(publisher, 4 * 64 * 48)
    dogs_eye(client).wait_for_frame(PATIENCE_S)
    yield client
    hammer.stop()


def test_readers_never_see_half_a_frame_while_pictures_pour_in(hammered: URLabClient):
    view = dogs_eye(hammered)
    kept: list[tuple[float, Any]] = []
    for _ in range(100):
        number = view.frame_count
        view.wait_for_frame(PATIENCE_S, after=number)
        frame = view.latest
        assert frame is not None
        assert frame.sim_time is not None
        assert (frame.pixels == frame.sim_time).all()
        kept.append((frame.sim_time, frame.pixels))
        with hammered._data_lock:
            pixels, sim_time = view.latest_frame, view.sim_time
            assert pixels is not None
            assert pixels[0, 0, 0] == sim_time
    assert all((pixels == sim_time).all() for sim_time, pixels in kept)
    assert view.received > view.frame_count - 1
    assert view.misfits == 0


def test_counters_add_up_while_pictures_pour_in(hammered: URLabClient):
    view = dogs_eye(hammered)
    view.wait_for_frame(PATIENCE_S, after=20)
    with hammered._data_lock:
        assert view.received >= view.frame_count >= 21
        assert view.received - view.frame_count <= view.dropped < view.received


def test_closing_during_traffic_leaves_no_thread_behind(hammered: URLabClient):
    hammered.close()
    assert lasting_threads() == []
    count = dogs_eye(hammered).frame_count
    hammered.close()
    assert dogs_eye(hammered).frame_count == count


def test_closing_under_the_data_lock_does_not_hang(hammered: URLabClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(zmq_streams, "STOP_LIMIT_S", 0.05)
    threads = camera_threads()
    with hammered._data_lock:
        hammered.close()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
