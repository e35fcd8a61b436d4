"""Clients that libzmq would not be: raw sockets with bad manners."""

import contextlib
import select
import socket as sockets
import struct
import threading

import pytest
import zmq

from urlab.transport.rpc import RpcLimits, zmtp

READY = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"


def shout(frame):
    return frame.upper()


@pytest.fixture
def raw(serve, request):
    """A raw TCP socket to a server, and that server; its limits may be a parameter."""
    server = serve(shout, limits=getattr(request, "param", None))
    host, _, port = server.endpoint.removeprefix("tcp://").rpartition(":")
    with sockets.create_connection((host, int(port)), timeout=30) as socket:
        yield socket, server


def introduce(socket):
    socket.sendall(zmtp.GREETING + READY)
    answer = b""
    while len(answer) < len(zmtp.GREETING + zmtp.ready_command()):
        answer += socket.recv(4096)
    assert answer == zmtp.GREETING + zmtp.ready_command()


def is_disconnected(socket):
    while True:
        try:
            if not socket.recv(4096):
                return True
        except ConnectionError:
            return True


def is_alive(server, connect):
    client = connect(server.endpoint)
    client.send(b"alive?")
    return client.recv() == b"ALIVE?"


def test_a_request_that_comes_byte_by_byte_is_answered(raw):
    socket, _ = raw
    for byte in zmtp.GREETING + READY + b"\x01\x00" + b"\x00\x05hello":
        socket.sendall(bytes([byte]))
    reply = b""
    while not reply.endswith(b"HELLO"):
        reply += socket.recv(4096)
    assert reply.endswith(b"\x01\x00\x00\x05HELLO")


@pytest.mark.parametrize("noise", [b"GET / HTTP/1.1\r\n\r\n" + bytes(64), bytes(64), b"\xff" * 64])
def test_a_stranger_is_disconnected_and_nobody_else(raw, connect, noise):
    socket, server = raw
    socket.sendall(noise)
    assert is_disconnected(socket)
    assert is_alive(server, connect)


def test_a_message_before_the_handshake_is_over_ends_the_connection(raw, connect):
    socket, server = raw
    socket.sendall(zmtp.GREETING + b"\x01\x00\x00\x02hi")
    assert is_disconnected(socket)
    assert is_alive(server, connect)


def test_a_frame_that_announces_too_much_ends_the_connection(raw, connect):
    socket, server = raw
    introduce(socket)
    socket.sendall(b"\x02" + struct.pack(">Q", 1 << 60))
    assert is_disconnected(socket)
    assert is_alive(server, connect)


@pytest.mark.parametrize("frames", [[bytes(5000)], [bytes(600), bytes(600)]])
def test_a_request_that_is_too_large_is_told_so(serve, connect, frames):
    client = connect(serve(shout, limits=RpcLimits(request_bytes=1000)).endpoint)
    client.send_multipart(frames)
    assert b"bad_request" in client.recv()
    client.send(b"small")
    assert client.recv() == b"SMALL"


def test_a_client_that_does_not_read_does_not_hold_up_others(raw, connect):
    socket, server = raw
    introduce(socket)
    big = b"x" * 200_000
    for _ in range(40):
        socket.sendall(zmtp.reply_head(len(big), delimited=True) + big)
    assert is_alive(server, connect)


def test_more_clients_than_there_is_room_for_are_turned_away(serve, connect):
    server = serve(shout, limits=RpcLimits(connections=2))
    assert is_alive(server, connect)
    assert is_alive(server, connect)
    third = connect(server.endpoint)
    third.setsockopt(zmq.RCVTIMEO, 200)
    third.send(b"hello")
    with pytest.raises(zmq.Again):
        third.recv()


def test_a_pipelining_client_is_answered_in_order(serve, connect):
    server = serve(shout)
    client = connect(server.endpoint, zmq.DEALER)
    asked = [b"slow-1", b"quick-2", b"slow-3", b"quick-4"]
    for request in asked:
        client.send_multipart([b"", request])
    assert [client.recv_multipart()[1] for _ in asked] == [request.upper() for request in asked]


@pytest.mark.parametrize("raw", [RpcLimits(frames=10)], indirect=True)
def test_a_message_of_frames_without_end_ends_the_connection(raw, connect):
    socket, server = raw
    introduce(socket)
    socket.sendall(b"\x01\x00" * 11)
    assert is_disconnected(socket)
    assert is_alive(server, connect)


@pytest.mark.parametrize("limits", [RpcLimits(ahead=3), RpcLimits(ahead_bytes=200)])
def test_a_client_far_ahead_of_its_replies_is_read_from_no_more_until_it_gets_them(serve, connect, limits):
    gate = threading.Event()

    def handle(frame):
        assert frame != b"slow" or gate.wait(10)
        return frame.upper()

    server = serve(handle, limits=limits)
    client = connect(server.endpoint, zmq.DEALER)
    asked = [b"slow", *(b"request %0100d" % number for number in range(50))]
    for request in asked:
        client.send_multipart([b"", request])
    assert is_alive(server, connect)
    gate.set()
    assert [client.recv_multipart()[1] for _ in asked] == [request.upper() for request in asked]


def test_heartbeats_are_answered_while_a_long_request_runs(serve):
    """libzmq gives up a connection that does not answer a PING in time; a REQ socket then never gets its reply."""
    begun, gate = threading.Event(), threading.Event()

    def handle(frame):
        begun.set()
        assert frame != b"slow" or gate.wait(30)
        return frame.upper()

    host, _, port = serve(handle).endpoint.removeprefix("tcp://").rpartition(":")
    with contextlib.ExitStack() as stack:
        between = stack.enter_context(sockets.create_server(("127.0.0.1", 0)))
        client = stack.enter_context(stack.enter_context(zmq.Context()).socket(zmq.REQ))
        for option, value in ((zmq.HEARTBEAT_IVL, 20), (zmq.HEARTBEAT_TIMEOUT, 60_000), (zmq.LINGER, 0)):
            client.setsockopt(option, value)
        client.connect(f"tcp://127.0.0.1:{between.getsockname()[1]}")
        client.send(b"slow")
        near = stack.enter_context(between.accept()[0])
        far = stack.enter_context(sockets.create_connection((host, int(port))))

        def pass_on():
            """What the server has said, once client and server have been given what the other one said."""
            said = b""
            for one in select.select([near, far], [], [], 0.05)[0]:
                data = one.recv(4096)
                (far if one is near else near).sendall(data)
                said += data if one is far else b""
            return said

        while not begun.is_set():
            pass_on()
        said = b""
        while said.count(b"\x04PONG") < 3:
            said += pass_on()
        gate.set()
        while not client.poll(0):
            pass_on()
        assert client.recv() == b"SLOW"
