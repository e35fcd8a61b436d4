from typing import Any

import pytest
import zmq

from urlab_client.transports.zmq_streams import CameraChannel, StateChannel
from urlab_wire.codec import encode


def frames(*parts: bytes) -> list[zmq.Frame]:
    return [zmq.Frame(part) for part in parts]


class Pictures(list[Any]):
    """Collects what a camera channel hands over."""

    def __call__(self, pixels: Any, meta: Any = None, skipped: int = 0) -> None:
        self.append((bytes(pixels), meta, skipped))


@pytest.fixture
def pictures() -> Pictures:
    return Pictures()


@pytest.fixture
def channel(pictures: Pictures) -> CameraChannel:
    return CameraChannel("tcp://127.0.0.1:1", "arm/camera/eye", pictures)


def meta(frame_id: int) -> list[zmq.Frame]:
    return frames(b"meta/arm/camera/eye", encode({"frame_id": frame_id}))


def pixels(data: bytes) -> list[zmq.Frame]:
    return frames(b"arm/camera/eye ", data)


def test_a_camera_is_subscribed_to_with_its_descriptions_first(channel: CameraChannel):
    assert channel.topics == (b"meta/arm/camera/eye", b"arm/camera/eye")
    assert CameraChannel("tcp://127.0.0.1:1", "arm/camera/eye ", Pictures()).topics == channel.topics


def test_a_description_belongs_to_the_pixels_after_it(channel: CameraChannel, pictures: Pictures):
    channel.feed(meta(1))
    channel.flush()
    channel.feed(pixels(b"one"))
    channel.flush()
    assert pictures == [(b"one", {"frame_id": 1}, 0)]


def test_pixels_whose_description_was_lost_do_not_count(channel: CameraChannel, pictures: Pictures):
    for message in (meta(1), pixels(b"one"), pixels(b"two"), meta(3), pixels(b"three")):
        channel.feed(message)
    channel.flush()
    assert pictures == [(b"three", {"frame_id": 3}, 2)]


def test_a_server_that_describes_nothing_shows_its_pictures(channel: CameraChannel, pictures: Pictures):
    channel.feed(pixels(b"one"))
    channel.flush()
    assert pictures == [(b"one", None, 0)]


def test_the_newest_picture_wins_with_its_own_description(channel: CameraChannel, pictures: Pictures):
    for message in (meta(1), pixels(b"one"), meta(2), pixels(b"two"), meta(3)):
        channel.feed(message)
    channel.flush()
    channel.feed(pixels(b"three"))
    channel.flush()
    assert pictures == [(b"two", {"frame_id": 2}, 1), (b"three", {"frame_id": 3}, 0)]


def test_a_description_whose_pixels_were_lost_gives_way_to_the_next(channel: CameraChannel, pictures: Pictures):
    for message in (meta(1), meta(2), pixels(b"two")):
        channel.feed(message)
    channel.flush()
    assert pictures == [(b"two", {"frame_id": 2}, 0)]


def test_messages_of_other_shapes_and_cameras_are_ignored(channel: CameraChannel, pictures: Pictures):
    for message in (
        frames(b"arm/camera/eye "),
        frames(b"arm/camera/eye ", b"x", b"y"),
        frames(b"arm/camera/eye2 ", b"x"),
        frames(b"meta/arm/camera/eye", b"not msgpack"),
        frames(b"arm/camera/eye", b"plain topic"),
    ):
        channel.feed(message)
    channel.flush()
    channel.flush()
    assert pictures == [(b"plain topic", None, 0)]


def test_the_newest_snapshot_counts():
    got: list[bytes] = []
    channel = StateChannel("tcp://127.0.0.1:1", got.append)
    for time in (1.0, 2.0):
        channel.feed(frames(b"state/full", encode({"time": time})))
    channel.feed(frames(b"state/fuller", b"x"))
    channel.feed(frames(b"state/full"))
    channel.flush()
    channel.flush()
    assert got == [encode({"time": 2.0})]
    channel.feed(frames(b"state/full ", b"with a space"))
    channel.flush()
    assert got[1:] == [b"with a space"]
