import threading
from collections.abc import Iterator
from typing import Any

import pytest
import zmq

from urlab_client import StepMode, URLabClient
from urlab_client.live import Subscription
from urlab_wire.codec import encode


class Publisher:
    """An XPUB socket, which learns of subscribers."""

    def __init__(self) -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.XPUB)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.port = self.socket.bind_to_random_port("tcp://127.0.0.1")

    def await_subscriber(self) -> bytes:
        assert self.socket.poll(5000), "nobody subscribed"
        return self.socket.recv()


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    made = Publisher()
    yield made
    made.socket.close()


def test_payloads_of_the_topic_arrive_and_odd_messages_do_no_harm(publisher: Publisher):
    got: list[bytes] = []
    arrived = threading.Event()

    def on_payload(payload: bytes) -> None:
        if payload == b"bad":
            raise ValueError("cannot read this")
        got.append(payload)
        arrived.set()

    stream = Subscription(f"tcp://127.0.0.1:{publisher.port}", "state/full", on_payload)
    assert publisher.await_subscriber() == b"\x01state/full"
    publisher.socket.send_multipart([b"state/full"])
    publisher.socket.send_multipart([b"state/full", b"bad"])
    publisher.socket.send_multipart([b"state/full", b"good"])
    assert arrived.wait(5)
    stream.stop()
    assert got == [b"good"]


def test_a_stream_that_cannot_connect_keeps_trying_until_it_is_stopped(caplog: pytest.LogCaptureFixture):
    Subscription("gopher://nowhere", "x", lambda _: None).stop()
    assert "trying again" in caplog.text


def test_live_mode_keeps_the_newest_snapshot_and_direct_mode_stops_it(publisher: Publisher, zmq_peer: Any, server: Any):
    peer = zmq_peer(server.handle)
    with URLabClient("tcp://127.0.0.1", step_port=peer.port, state_port=publisher.port) as client:
        client.discover()
        publisher.await_subscriber()
        arrived = threading.Event()
        keep = client._on_state
        client._channel.transport.stop_state_stream()
        assert publisher.await_subscriber() == b"\x00state/full"
        client._channel.transport.start_state_stream(lambda snapshot: (keep(snapshot), arrived.set()))
        publisher.await_subscriber()
        publisher.socket.send_multipart([b"state/full", encode({"time": 1.5})])
        assert arrived.wait(5)
        with client._data_lock:
            assert client._latest_state_snapshot == {"time": 1.5}
            assert client._state_msg_count == 1
        assert client.runtime.set_mode("direct") is StepMode.DIRECT
        assert publisher.await_subscriber() == b"\x00state/full"
