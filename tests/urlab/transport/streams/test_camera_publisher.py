"""Camera streams with pictures that the test makes up."""

import socket as sockets
import threading
from pathlib import Path
from typing import Any

import pytest
import zmq

from urlab.config import Ports
from urlab.errors import ConfigError
from urlab.manager import StreamSource
from urlab.transport import StreamedCamera
from urlab_wire.stream_messages import unpack_metadata

EYE = "MyRobot/camera/eye"
PICTURE = bytes(range(256)) * 4800
METADATA = {"frame_id": 1, "sim_time": 0.5, "K": [1.0, 0.0, 0.5], "width": 640, "height": 480}


def eye_of(streams: Any) -> Any:
    return streams._cameras._topics[EYE]


def port_of(endpoint: str) -> int:
    return int(endpoint.rpartition(":")[2])


def free_ports(count: int) -> list[int]:
    """Consecutive ports that nobody has."""
    for first in range(20_000, 60_000, 100):
        opened = []
        try:
            for port in range(first, first + count):
                one = sockets.socket()
                opened.append(one)
                one.bind(("127.0.0.1", port))
        except OSError:
            continue
        finally:
            for one in opened:
                one.close()
        return list(range(first, first + count))
    raise AssertionError("no free ports")


def test_a_picture_follows_what_is_known_of_it(play: Any, stream: Any, subscribe: Any) -> None:
    streams = stream(play(paused=True), cameras=("eye",))
    socket = subscribe(eye_of(streams), b"")
    streams.publish(EYE, METADATA, PICTURE)
    topic, metadata = socket.recv_multipart()
    assert (topic, unpack_metadata(metadata)) == (b"meta/MyRobot/camera/eye", METADATA)
    assert socket.recv_multipart() == [b"MyRobot/camera/eye ", PICTURE]


@pytest.mark.parametrize("topic", [b"MyRobot/camera/eye", b"MyRobot/camera/eye ", b"MyRobot/"])
def test_whoever_wants_pixels_only_gets_two_frames_of_them(
    play: Any, stream: Any, subscribe: Any, topic: bytes
) -> None:
    streams = stream(play(paused=True), cameras=("eye",))
    socket = subscribe(eye_of(streams), topic)
    assert streams.wants(EYE)
    for shade in range(3):
        streams.publish(EYE, METADATA, bytes([shade]) * 1000)
        assert socket.recv_multipart() == [b"MyRobot/camera/eye ", bytes([shade]) * 1000]
    assert streams.counters()["cameras"] == {"eye": {"sent": 3, "dropped": 0}}


def test_a_camera_is_wanted_while_somebody_subscribes(play: Any, stream: Any, subscribe: Any, wait_until: Any) -> None:
    streams = stream(play(paused=True), cameras=("eye", "other"))
    woken = threading.Event()
    streams.on_subscriber = woken.set
    assert not streams.wants(EYE)
    streams.publish(EYE, METADATA, PICTURE)
    socket = subscribe(eye_of(streams), b"meta/")
    assert woken.wait(30)
    assert streams.wants(EYE)
    assert not streams.wants("MyRobot/camera/other")
    assert not streams.wants("MyRobot/camera/none")
    socket.close()
    wait_until(lambda: not streams.wants(EYE))
    assert streams.counters()["cameras"]["eye"]["sent"] == 0


def test_a_subscriber_that_leaves_wakes_nobody(play: Any, stream: Any, subscribe: Any, wait_until: Any) -> None:
    streams = stream(play(paused=True), cameras=("eye",))
    socket = subscribe(eye_of(streams), b"")
    calls: list[int] = []
    streams.on_subscriber = lambda: calls.append(1)
    socket.close()
    wait_until(lambda: not streams.wants(EYE))
    assert calls == []


def test_a_slow_subscriber_loses_pictures_and_another_none(
    play: Any, stream: Any, subscribe: Any, connect: Any, wait_until: Any
) -> None:
    streams = stream(play(paused=True), cameras=("eye",))
    stuck = connect("inproc://nowhere", zmq.SUB)
    for option in (zmq.RCVHWM, zmq.RCVBUF):
        stuck.setsockopt(option, 1)
    stuck.setsockopt(zmq.SUBSCRIBE, EYE.encode())
    stuck.connect(eye_of(streams).endpoint)
    wait_until(lambda: stuck.poll(0) or streams.wants(EYE))
    quick = subscribe(eye_of(streams), EYE.encode())
    for shade in range(100):
        picture = bytes([shade]) * len(PICTURE)
        streams.publish(EYE, METADATA, picture)
        assert quick.recv_multipart()[1] == picture
    assert stuck.poll(30_000)
    late = 0
    while stuck.poll(200):
        stuck.recv_multipart()
        late += 1
    assert 0 < late < 20


def test_ports_go_upward_past_those_in_use_and_those_with_another_owner(play: Any, stream: Any) -> None:
    first, taken, named, last = free_ports(4)
    with sockets.socket() as squatter:
        squatter.bind(("127.0.0.1", taken))
        squatter.listen()
        streams = stream(
            play(paused=True),
            cameras=("a", "b"),
            ports=Ports(step=0, state=0, control=0, info=named, camera=first),
        )
    assert [port_of(one) for one in streams.endpoints()["cameras"].values()] == [first, last]


def test_the_ports_stay_when_scenes_change(play: Any, stream: Any, subscribe: Any) -> None:
    first, second, third = free_ports(3)
    streams = stream(play(paused=True), cameras=("a", "b"), ports=Ports(0, 0, 0, 0, first))
    base = "tcp://127.0.0.1"
    assert streams.endpoints()["cameras"] == {"a": f"{base}:{first}", "b": f"{base}:{second}"}
    socket = subscribe(streams._cameras._names["a"], b"")
    streams.detach()
    assert streams.endpoints()["cameras"] == {}
    cameras = [StreamedCamera(name, f"MyRobot/camera/{name}", "MyRobot", name, 1000) for name in ("eye", "b", "c")]
    streams.attach(StreamSource(play(paused=True)), cameras)
    endpoints = {"eye": f"{base}:{first}", "b": f"{base}:{second}", "c": f"{base}:{third}"}
    assert streams.endpoints()["cameras"] == endpoints
    assert streams.wants(EYE)
    streams.publish(EYE, METADATA, b"pixels")
    assert socket.recv_multipart()[0] == b"meta/MyRobot/camera/eye"


def test_when_no_port_is_left_the_option_is_named(play: Any, stream: Any) -> None:
    with sockets.socket() as squatter:
        try:
            squatter.bind(("127.0.0.1", 65535))
            squatter.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        with pytest.raises(ConfigError, match="--camera-port"):
            stream(play(paused=True), cameras=("a",), ports=Ports(0, 0, 0, 0, 65535))


def test_cameras_stream_over_ipc_too(play: Any, stream: Any, subscribe: Any, short_folder: Path) -> None:
    base = f"ipc://{short_folder}/s"
    streams = stream(play(paused=True), cameras=("eye", "b"), base=base, ports=Ports(1, 2, 3, 4, 3))
    assert streams.endpoints() == {
        "state": f"{base}:2",
        "control": f"{base}:3",
        "info": f"{base}:4",
        "cameras": {"eye": f"{base}:5", "b": f"{base}:6"},
    }
    socket = subscribe(eye_of(streams), EYE.encode())
    streams.publish(EYE, METADATA, PICTURE)
    assert socket.recv_multipart() == [b"MyRobot/camera/eye ", PICTURE]
    streams.close()
    assert list(short_folder.iterdir()) == []


def test_a_picture_of_no_camera_is_ignored(play: Any, stream: Any) -> None:
    stream(play(paused=True)).publish(EYE, METADATA, PICTURE)
