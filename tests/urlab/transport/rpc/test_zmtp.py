"""Our ZMTP against its rules, and against libzmq."""

import contextlib
import socket as sockets
import struct

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from urlab.transport.rpc import zmtp

LIMIT, HARD_LIMIT = 1000, 100_000


def parser():
    return zmtp.FrameParser(LIMIT, HARD_LIMIT)


def frames(reader, stream):
    """The frames that bytes complete."""
    reader.feed(stream)
    return list(iter(reader.next_frame, None))


def head(flags, size):
    """The head of a frame, written from the protocol's text."""
    if size > 255:
        return struct.pack(">BQ", flags | 2, size)
    return struct.pack(">BB", flags, size)


@given(st.lists(st.tuples(st.sampled_from([0, 1, 4]), st.binary(max_size=600)), max_size=8), st.data())
def test_frames_come_out_as_they_went_in_however_the_bytes_are_cut(sent, data):
    stream = b"".join(head(flags, len(body)) + body for flags, body in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    reader, found = parser(), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += frames(reader, stream[begin:end])
    assert [(flags & ~zmtp.LONG, body) for flags, body in found] == sent


@given(st.binary(max_size=700), st.sampled_from([0, 1, 4]))
def test_a_frame_is_written_as_the_protocol_says(body, flags):
    assert zmtp.frame(body, flags) == head(flags, len(body)) + body


@given(st.binary(max_size=700))
def test_a_reply_has_the_envelope_of_its_request(body):
    assert zmtp.reply_head(len(body), delimited=False) + body == head(0, len(body)) + body
    assert zmtp.reply_head(len(body), delimited=True) + body == head(1, 0) + head(0, len(body)) + body


@pytest.mark.parametrize("size", [LIMIT + 1, 50_000])
def test_a_body_beyond_the_limit_is_counted_but_not_kept(size):
    reader = parser()
    stream = head(0, size) + bytes(size) + head(0, 2) + b"ok"
    found = [one for start in range(0, len(stream), 700) for one in frames(reader, stream[start : start + 700])]
    assert [body for _, body in found] == [None, b"ok"]


def test_a_body_beyond_the_hard_limit_is_refused_at_once():
    with pytest.raises(zmtp.ProtocolError, match="100001"):
        frames(parser(), head(0, HARD_LIMIT + 1))


@given(st.binary(max_size=300))
def test_whatever_comes_is_frames_or_a_protocol_error(noise):
    with contextlib.suppress(zmtp.ProtocolError):
        frames(parser(), noise)


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (b"GET / HTTP/1.1".ljust(64, b"\0"), "ZeroMQ"),
        (b"G", "ZeroMQ"),
        (b"\xff" + bytes(8) + b"\x7f\x01", "2.0"),
        (b"\xff" + bytes(8) + b"\x7f\x01" + bytes(53), "2.0"),
        (b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"CURVE".ljust(20, b"\0") + bytes(32), "CURVE"),
    ],
)
def test_a_greeting_that_cannot_be_answered_says_why(greeting, reason):
    with pytest.raises(zmtp.ProtocolError, match=reason):
        zmtp.check_greeting(greeting)


def test_libzmqs_own_greeting_is_accepted():
    with sockets.create_server(("127.0.0.1", 0)) as listener, zmq.Context() as context:
        with context.socket(zmq.REQ) as client:
            client.setsockopt(zmq.LINGER, 0)
            client.connect(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
            peer, _ = listener.accept()
            with peer:
                peer.sendall(zmtp.GREETING)
                greeting = b""
                while len(greeting) < zmtp.GREETING_BYTES:
                    greeting += peer.recv(zmtp.GREETING_BYTES - len(greeting))
                zmtp.check_greeting(greeting)
                (flags, body), *_ = frames(parser(), peer.recv(4096))
                assert flags & zmtp.COMMAND
                zmtp.check_ready(body)


@given(st.binary(max_size=700))
def test_a_lone_request_is_recognised_as_the_parser_would_read_it(body):
    stream = head(1, 0) + head(0, len(body)) + body
    assert zmtp.lone_request(stream) == body
    assert [one for _, one in frames(parser(), stream)] == [b"", body]


@given(st.binary(max_size=60), st.data())
def test_anything_but_a_lone_request_is_left_to_the_parser(body, data):
    whole = head(1, 0) + head(0, len(body)) + body
    cut = data.draw(st.integers(0, len(whole) - 1))
    assert zmtp.lone_request(whole[:cut]) is None
    assert zmtp.lone_request(whole + b"\x00") is None
    assert zmtp.lone_request(head(1, 0) + head(1, len(body)) + body) is None


def test_a_ping_is_answered_with_its_context():
    (flags, body), *_ = frames(parser(), zmtp.answer_to_ping(b"\x04PING\x00\x0aMy context"))
    assert (flags, body) == (zmtp.COMMAND, b"\x04PONGMy context")
    assert zmtp.answer_to_ping(b"\x05READY") is None
    with pytest.raises(zmtp.ProtocolError, match="17 bytes"):
        zmtp.answer_to_ping(b"\x04PING\x00\x0a" + bytes(17))


def test_a_command_that_is_too_large_is_refused_at_once():
    with pytest.raises(zmtp.ProtocolError, match="70000"):
        frames(parser(), head(zmtp.COMMAND, 70_000))
