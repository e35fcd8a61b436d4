"""What comes over sockets of streams, where they are found, and commands that go out and are never in the way."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zmq

from urlab_client import URLabClient
from urlab_client.transports.zmq_streams import CameraChannel, ControlSender, StateChannel, StreamingTransport
from urlab_wire.codec import encode

LIMIT_MS = 30_000


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


def test_states_come_from_the_port_that_the_handshake_tells(
    publish: Callable[..., Any], zmq_peer: Any, server: Any, handshake: dict[str, Any]
):
    publisher = publish()
    handshake["streams"] = {"state": f"tcp://*:{publisher.port}", "counters": {"state": {"sent": 3}}}
    with URLabClient("tcp://127.0.0.1", step_port=zmq_peer(server.handle).port) as client:
        client.discover()
        assert publisher.await_subscribers(1) == {b"state/full"}
        assert client.streams["counters"] == {"state": {"sent": 3}}


def test_a_port_of_the_callers_own_stays(
    publish: Callable[..., Any], zmq_peer: Any, server: Any, handshake: dict[str, Any]
):
    publisher = publish()
    handshake["streams"] = {"state": "tcp://127.0.0.1:1"}
    peer = zmq_peer(server.handle)
    with URLabClient("tcp://127.0.0.1", step_port=peer.port, state_port=publisher.port) as client:
        client.discover()
        assert publisher.await_subscribers(1) == {b"state/full"}


def test_a_state_stream_moves_when_the_server_did(publish: Callable[..., Any]):
    first, second = publish(), publish()
    arrived = threading.Event()
    transport = StreamingTransport("tcp://127.0.0.1", first.endpoint)
    transport.start_state_stream(lambda _: arrived.set())
    first.await_subscribers(1)
    transport.start_state_stream(lambda _: None)
    transport.absorb_handshake({"streams": {"state": second.endpoint}})
    transport.start_state_stream(lambda _: arrived.set())
    assert first.await_word() == b"\0state/full"
    second.await_subscribers(1)
    second.send("state/full", encode({"time": 1.0}))
    assert arrived.wait(LIMIT_MS / 1000)
    transport.absorb_handshake({})
    assert transport.state_endpoint == first.endpoint
    transport.close()


def test_nothing_streams_where_no_endpoint_is_known_or_after_the_end():
    transport = StreamingTransport("inproc://", None)
    before = set(threading.enumerate())
    transport.start_state_stream(lambda _: None)
    transport.close()
    transport.absorb_handshake({"streams": {"state": "tcp://127.0.0.1:1"}})
    transport.start_state_stream(lambda _: None)
    transport.start_camera_stream("arm", "eye", "tcp://127.0.0.1:1", "t", lambda *_: None)
    assert set(threading.enumerate()) <= before


@pytest.fixture
def reader() -> Iterator["zmq.Socket[bytes]"]:
    """What a server has at its control port."""
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.bind("tcp://127.0.0.1:*")
    yield socket
    socket.close()


def endpoint(reader: "zmq.Socket[bytes]") -> str:
    return str(reader.getsockopt_string(zmq.LAST_ENDPOINT))


@pytest.fixture
def sender(reader: "zmq.Socket[bytes]") -> Iterator[ControlSender]:
    """Connected: what it sends arrives from now on."""
    sender, sent = ControlSender(endpoint(reader)), 0
    while not reader.poll(20):
        sent += 1
        sender.send("hello", b"%d" % sent)
    while reader.recv_multipart() != [b"hello", b"%d" % sent]:
        pass
    yield sender
    sender.close()


def test_a_command_arrives_as_topic_and_payload(reader: "zmq.Socket[bytes]", sender: ControlSender):
    sender.send("arm/control ", b"\1\2")
    assert reader.poll(LIMIT_MS)
    assert reader.recv_multipart() == [b"arm/control ", b"\1\2"]


def test_many_threads_may_send_at_once(reader: "zmq.Socket[bytes]", sender: ControlSender):
    threads = [threading.Thread(target=sender.send, args=(f"t{number}", bytes([number]))) for number in range(20)]
    for thread in threads:
        thread.start()
    got = set()
    while len(got) < 20:
        assert reader.poll(LIMIT_MS), f"only {len(got)} arrived"
        got.add(tuple(reader.recv_multipart()))
    assert got == {(f"t{number}".encode(), bytes([number])) for number in range(20)}


def test_a_server_that_reads_nothing_is_not_waited_for(sender: ControlSender):
    done = threading.Event()

    def flood() -> None:
        for _ in range(5000):
            sender.send("arm/control ", bytes(10_000))
        done.set()

    threading.Thread(target=flood, daemon=True).start()
    assert done.wait(LIMIT_MS / 1000)


def test_once_closed_nothing_is_sent_and_nothing_breaks(reader: "zmq.Socket[bytes]", sender: ControlSender):
    sender.close()
    sender.close()
    sender.send("arm/control ", b"late")
    assert not reader.poll(50)


def test_a_sender_needs_no_server_that_listens():
    sender = ControlSender("tcp://127.0.0.1:1")
    sender.send("arm/control ", b"lost")
    sender.close()
