import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from urlab_client import URLabClient, URLabRPCError, URLabTimeoutError, ZmqTransport
from urlab_client.transports.zmq import endpoint, is_listening

LIMIT_MS = 30_000


def test_ports_are_appended_and_localhost_is_ipv4():
    assert endpoint("tcp://localhost", 5559) == "tcp://127.0.0.1:5559"
    assert endpoint("tcp://localhost.example", 5559) == "tcp://localhost.example:5559"
    assert endpoint("ipc:///tmp/x", 5559) == "ipc:///tmp/x:5559"


def test_an_address_with_a_port_is_refused():
    with pytest.raises(ValueError, match="already has a port"):
        URLabClient("tcp://localhost:5559")


def test_a_request_gets_its_answer(zmq_peer: Callable[..., Any]):
    transport = ZmqTransport(zmq_peer(bytes.upper).endpoint)
    assert [transport.request(word, timeout_ms=LIMIT_MS) for word in (b"a", b"b")] == [b"A", b"B"]
    transport.close()


def test_an_ipc_server_is_reached(zmq_peer: Callable[..., Any], tmp_path: Path):
    zmq_peer(bytes.upper, f"ipc://{tmp_path}/s:5559")
    transport = ZmqTransport(endpoint(f"ipc://{tmp_path}/s", 5559))
    assert transport.request(b"x", timeout_ms=LIMIT_MS) == b"X"
    transport.close()


def test_a_port_without_a_server_is_told_within_the_connect_timeout(lasting_port: Callable[[], int]):
    transport = ZmqTransport(f"tcp://127.0.0.1:{lasting_port()}", connect_timeout_ms=100)
    with pytest.raises(URLabTimeoutError, match=r"no server listens at .*urlab serve") as raised:
        transport.request(b"x", timeout_ms=60_000)
    assert raised.value.timeout_s == 0.1
    transport.close()


def test_a_server_that_listens_but_is_stuck_is_not_called_absent(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as stuck, socket.socket(socket.AF_UNIX) as stuck_ipc:
        stuck_ipc.bind(f"{tmp_path}/s:1")
        stuck_ipc.listen()
        for where in (f"tcp://127.0.0.1:{stuck.getsockname()[1]}", f"ipc://{tmp_path}/s:1"):
            transport = ZmqTransport(where, connect_timeout_ms=50)
            with pytest.raises(URLabTimeoutError, match=r"no answer from .*the server listens there") as raised:
                transport.request(b"x", timeout_ms=60_000)
            assert raised.value.connected
            transport.close()


def test_a_late_answer_times_out_and_does_not_reach_the_next_request(zmq_peer: Callable[..., Any]):
    answers = {b"x": None, b"y": b"second"}
    transport = ZmqTransport(zmq_peer(lambda frame: answers[frame]).endpoint)
    with pytest.raises(URLabTimeoutError, match="no answer from"):
        transport.request(b"x", timeout_ms=50)
    assert transport.request(b"y", timeout_ms=LIMIT_MS) == b"second"
    transport.close()


def test_a_client_goes_on_when_its_server_comes_back(zmq_peer: Callable[..., Any], lasting_port: Callable[[], int]):
    first = zmq_peer(bytes.upper, f"tcp://127.0.0.1:{lasting_port()}")
    transport = ZmqTransport(first.endpoint, connect_timeout_ms=LIMIT_MS)
    assert transport.request(b"a", timeout_ms=LIMIT_MS) == b"A"
    first.close()
    while is_listening(first.endpoint):  # ZeroMQ closes the connection, and then the port
        pass
    with pytest.raises(URLabTimeoutError):
        transport.request(b"b", timeout_ms=50)
    zmq_peer(bytes.upper, first.endpoint)
    assert transport.request(b"c", timeout_ms=LIMIT_MS) == b"C"
    transport.close()


def test_an_impossible_endpoint_is_a_transport_error():
    with pytest.raises(URLabRPCError, match="cannot connect") as raised:
        ZmqTransport("gopher://x:1").request(b"x", timeout_ms=50)
    assert raised.value.code == "transport_error"


def test_threads_share_one_connection_and_get_their_own_answers(zmq_peer: Callable[..., Any]):
    transport = ZmqTransport(zmq_peer(bytes.upper).endpoint)
    got: dict[bytes, bytes] = {}
    words = [b"a", b"b", b"c", b"d"]
    threads = [
        threading.Thread(target=lambda word=word: got.update({word: transport.request(word, timeout_ms=LIMIT_MS)}))
        for word in words
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {word: word.upper() for word in words}
    transport.close()


def test_closing_twice_is_fine(zmq_peer: Callable[..., Any]):
    transport = ZmqTransport(zmq_peer(bytes.upper).endpoint, state_endpoint="tcp://127.0.0.1:1")
    transport.start_state_stream(lambda _: None)
    transport.close()
    transport.close()


def test_a_whole_session_runs_over_zmq(zmq_peer: Callable[..., Any], server: Any):
    peer = zmq_peer(server.handle)
    with URLabClient("tcp://127.0.0.1", step_port=peer.port, step_mode="direct", rcv_timeout_ms=LIMIT_MS) as client:
        client.discover()
        assert client.step(5)["step"] == 25
    assert server.ops() == ["hello", "meta", "set_mode", "step", "set_mode"]
    assert server.received[-1]["mode"] == "live"


def test_a_timeout_names_the_op():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and listens not: no other socket can
        client = URLabClient("tcp://localhost", step_port=taken.getsockname()[1], rcv_timeout_ms=50)
        with pytest.raises(URLabTimeoutError, match=r"^hello: no server listens at tcp://127.0.0.1"):
            client.discover()
        client.close()
