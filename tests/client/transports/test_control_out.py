"""Commands over the control stream: sent, dropped, never in the way."""

import threading
from collections.abc import Iterator

import pytest
import zmq

from urlab_client.transports.zmq_streams import ControlSender

LIMIT_MS = 5000


@pytest.fixture
def server() -> Iterator["zmq.Socket[bytes]"]:
    """What a server has at its control port."""
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.bind("tcp://127.0.0.1:*")
    yield socket
    socket.close()


def endpoint(server: "zmq.Socket[bytes]") -> str:
    return str(server.getsockopt_string(zmq.LAST_ENDPOINT))


@pytest.fixture
def sender(server: "zmq.Socket[bytes]") -> Iterator[ControlSender]:
    """Connected: what it sends arrives from now on."""
    sender = ControlSender(endpoint(server))
    while not server.poll(20):
        sender.send("hello", b"")
    while server.poll(20):
        server.recv_multipart()
    yield sender
    sender.close()


def test_a_command_arrives_as_topic_and_payload(server: "zmq.Socket[bytes]", sender: ControlSender):
    sender.send("arm/control ", b"\1\2")
    assert server.poll(LIMIT_MS)
    assert server.recv_multipart() == [b"arm/control ", b"\1\2"]


def test_many_threads_may_send_at_once(server: "zmq.Socket[bytes]", sender: ControlSender):
    threads = [threading.Thread(target=sender.send, args=(f"t{number}", bytes([number]))) for number in range(20)]
    for thread in threads:
        thread.start()
    got = set()
    while len(got) < 20:
        assert server.poll(LIMIT_MS), f"only {len(got)} arrived"
        got.add(tuple(server.recv_multipart()))
    assert got == {(f"t{number}".encode(), bytes([number])) for number in range(20)}


def test_a_server_that_reads_nothing_is_not_waited_for(sender: ControlSender):
    done = threading.Event()

    def flood() -> None:
        for _ in range(5000):
            sender.send("arm/control ", bytes(10_000))
        done.set()

    threading.Thread(target=flood, daemon=True).start()
    assert done.wait(LIMIT_MS / 1000)


def test_once_closed_nothing_is_sent_and_nothing_breaks(server: "zmq.Socket[bytes]", sender: ControlSender):
    sender.close()
    sender.close()
    sender.send("arm/control ", b"late")
    assert not server.poll(50)


def test_nobody_need_be_there():
    sender = ControlSender("tcp://127.0.0.1:1")
    sender.send("arm/control ", b"lost")
    sender.close()
