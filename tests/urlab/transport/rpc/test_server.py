import threading
import time
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
import zmq

PATIENCE_S = 30.0


def shout(frame: bytes) -> bytes:
    return frame.upper()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline


def test_a_req_client_is_answered(serve: Any, connect: Any) -> None:
    socket = connect(serve(shout).endpoint)
    for word in (b"a", b"b", b""):
        socket.send(word)
        assert socket.recv() == word.upper()


@pytest.mark.parametrize("head", [[], [b""]], ids=["bare", "with a delimiter"])
def test_a_dealer_is_answered_as_it_asks(serve: Any, connect: Any, head: list[bytes]) -> None:
    socket = connect(serve(shout).endpoint, zmq.DEALER)
    for word in (b"a", b"b"):
        socket.send_multipart([*head, word])
    assert [socket.recv_multipart() for _ in range(2)] == [[*head, b"A"], [*head, b"B"]]


@pytest.mark.parametrize("frames", [[b"a", b"b"], [b"a", b"", b"b"], [b"a"] * 100])
def test_a_request_of_several_frames_is_refused(serve: Any, connect: Any, frames: list[bytes]) -> None:
    server = serve(shout)
    socket = connect(server.endpoint)
    socket.send_multipart(frames)
    reply = msgpack.unpackb(socket.recv())
    assert (reply["op"], reply["code"]) == ("error", "bad_request")
    assert str(len(frames)) in reply["message"]
    socket.send(b"fine")
    assert socket.recv() == b"FINE"


def test_a_message_that_is_only_a_delimiter_is_refused(serve: Any, connect: Any) -> None:
    socket = connect(serve(shout).endpoint, zmq.DEALER)
    socket.send(b"")
    assert msgpack.unpackb(socket.recv_multipart()[-1])["code"] == "bad_request"


def test_twenty_clients_are_each_told_their_own_answer(serve: Any, connect: Any) -> None:
    server = serve(shout)
    sockets = [connect(server.endpoint) for _ in range(20)]
    for turn in range(5):
        for index, socket in enumerate(sockets):
            socket.send(b"client %d turn %d" % (index, turn))
        assert [socket.recv() for socket in sockets] == [
            b"CLIENT %d TURN %d" % (index, turn) for index in range(len(sockets))
        ]


@pytest.mark.parametrize("request_", [b"quick", b"slow"])
def test_a_client_that_dies_while_it_is_served_harms_nobody(serve: Any, connect: Any, request_: bytes) -> None:
    begun, gate = threading.Event(), threading.Event()

    def handle(frame: bytes) -> bytes:
        if frame == request_:
            begun.set()
            assert gate.wait(PATIENCE_S)
        return frame.upper()

    server = serve(handle)
    victim, other = connect(server.endpoint), connect(server.endpoint)
    victim.send(request_)
    assert begun.wait(PATIENCE_S)
    victim.close()
    gate.set()
    other.send(b"alive?")
    assert other.recv() == b"ALIVE?"


def test_nobody_waits_behind_a_slow_request(serve: Any, connect: Any) -> None:
    begun, gate = threading.Event(), threading.Event()

    def handle(frame: bytes) -> bytes:
        if frame == b"slow":
            begun.set()
            assert gate.wait(PATIENCE_S)
        return frame.upper()

    server = serve(handle)
    patient, hasty = connect(server.endpoint), connect(server.endpoint)
    patient.send(b"slow")
    assert begun.wait(PATIENCE_S)
    for word in (b"a", b"b"):
        hasty.send(word)
        assert hasty.recv() == word.upper()
    gate.set()
    assert patient.recv() == b"SLOW"


def test_stopping_answers_what_is_being_served_and_what_waits(serve: Any, connect: Any) -> None:
    gate = threading.Event()

    def handle(frame: bytes) -> bytes:
        assert gate.wait(PATIENCE_S)
        return frame.upper()

    server = serve(handle)
    sockets = [connect(server.endpoint) for _ in range(12)]
    for socket in sockets:
        socket.send(b"slow")
    wait_until(lambda: server._running_in_pool == len(sockets))
    threading.Timer(0.05, gate.set).start()
    server.stop()
    assert [socket.recv() for socket in sockets] == [b"SLOW"] * 12


def test_requests_that_come_while_it_stops_do_not_break_it(serve: Any, connect: Any) -> None:
    begun, gate = threading.Event(), threading.Event()

    def handle(frame: bytes) -> bytes:
        if frame == b"slow first":
            begun.set()
            assert gate.wait(PATIENCE_S)
        return frame.upper()

    server = serve(handle)
    first, late = connect(server.endpoint), connect(server.endpoint)
    first.send(b"slow first")
    assert begun.wait(PATIENCE_S)  # while it stops, its own thread would serve it
    late.send(b"hello")
    assert late.recv() == b"HELLO"
    stopper = threading.Thread(target=server.stop)
    stopper.start()
    wait_until(lambda: all(pool._shutdown for pool in server._pools.values()))
    late.send(b"late")
    assert late.recv() == b"LATE"
    gate.set()
    stopper.join(PATIENCE_S)
    assert not stopper.is_alive()
    assert first.recv() == b"SLOW FIRST"


def test_stopping_can_be_repeated(serve: Any) -> None:
    server = serve(shout)
    server.stop()
    server.stop()


def test_a_stopped_transport_gives_its_port_back(serve: Any, connect: Any) -> None:
    first = serve(shout)
    port = int(first.endpoint.rpartition(":")[2])
    first.stop()
    second = serve(shout, port=port)
    socket = connect(second.endpoint)
    socket.send(b"again")
    assert socket.recv() == b"AGAIN"
