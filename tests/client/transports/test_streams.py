import threading
from collections.abc import Callable
from typing import Any

from urlab_client import URLabClient
from urlab_client.transports.zmq_streams import StreamingTransport
from urlab_wire.codec import encode


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
    assert arrived.wait(5)
    transport.absorb_handshake({})
    assert transport.state_endpoint == first.endpoint
    transport.close()


def test_nothing_streams_where_no_endpoint_is_known_or_after_the_end():
    transport = StreamingTransport("inproc://", None)
    before = threading.active_count()
    transport.start_state_stream(lambda _: None)
    transport.close()
    transport.absorb_handshake({"streams": {"state": "tcp://127.0.0.1:1"}})
    transport.start_state_stream(lambda _: None)
    transport.start_camera_stream("arm", "eye", "tcp://127.0.0.1:1", "t", lambda *_: None)
    assert threading.active_count() == before
