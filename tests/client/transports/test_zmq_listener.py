import threading
from collections.abc import Callable
from typing import Any

import pytest
import zmq

from urlab_client import StepMode, URLabClient
from urlab_client.transports.zmq_streams import Message, StreamListener
from urlab_wire.codec import encode

PATIENCE_S = 30.0


class Words:
    """A channel that collects payloads, and what it had when it was flushed."""

    queue = 100

    def __init__(self, endpoint: str, topic: bytes = b"a") -> None:
        self.endpoint = endpoint
        self.topics: tuple[bytes, ...] = (topic,)
        self.fed: list[bytes] = []
        self.flushed = threading.Event()

    def feed(self, message: Message) -> None:
        self.fed.append(message[-1].bytes)

    def flush(self) -> None:
        self.flushed.set()
        if self.fed[-1] == b"bad":
            raise ValueError("cannot use this")


def end(listener: StreamListener) -> None:
    """Stop it, and wait for its thread, for longer than a stop does."""
    listener.stop()
    listener._thread.join(PATIENCE_S)


def test_one_thread_listens_to_many_sockets(publish: Callable[..., Any]):
    publishers = [publish() for _ in range(3)]
    channels = [Words(one.endpoint) for one in publishers]
    before = set(threading.enumerate())
    listener = StreamListener("test")
    for channel in channels:
        listener.add(channel)
    for number, publisher in enumerate(publishers):
        publisher.await_subscribers(1)
        publisher.send("a", b"%d" % number)
    assert all(channel.flushed.wait(PATIENCE_S) for channel in channels)
    assert set(threading.enumerate()) - before == {listener._thread}
    end(listener)
    assert [channel.fed for channel in channels] == [[b"0"], [b"1"], [b"2"]]
    assert set(threading.enumerate()) <= before


def test_a_callback_that_fails_ends_nothing(publish: Callable[..., Any], caplog: pytest.LogCaptureFixture):
    publisher = publish()
    channel = Words(publisher.endpoint)
    listener = StreamListener("test")
    listener.add(channel)
    publisher.await_subscribers(1)
    publisher.send("a", b"bad")
    assert channel.flushed.wait(PATIENCE_S)
    channel.flushed.clear()
    publisher.send("a", b"good")
    assert channel.flushed.wait(PATIENCE_S)
    listener.stop()
    assert channel.fed == [b"bad", b"good"]
    assert "a message could not be used" in caplog.text


def test_what_waits_is_fed_before_one_flush(publish: Callable[..., Any]):
    publisher = publish()
    busy, flushed = threading.Event(), threading.Event()

    class Slow(Words):
        def flush(self) -> None:
            if self.fed == [b"first"]:
                flushed.set()
                busy.wait(PATIENCE_S)
            elif self.fed[-1] == b"last":
                self.flushed.set()

    channel = Slow(publisher.endpoint)
    listener = StreamListener("test")
    listener.add(channel)
    publisher.await_subscribers(1)
    publisher.send("a", b"first")
    assert flushed.wait(PATIENCE_S)
    for word in (b"second", b"last"):
        publisher.send("a", word)
    busy.set()
    assert channel.flushed.wait(PATIENCE_S)
    listener.stop()
    assert channel.fed == [b"first", b"second", b"last"]


def test_a_publisher_that_comes_back_is_found_again(publish: Callable[..., Any], lasting_port: Callable[[], int]):
    first = publish(f"tcp://127.0.0.1:{lasting_port()}")
    channel = Words(first.endpoint)
    listener = StreamListener("test")
    listener.add(channel)
    first.await_subscribers(1)
    first.close()
    second = publish(first.endpoint)
    second.await_subscribers(1)
    second.send("a", b"again")
    assert channel.flushed.wait(PATIENCE_S)
    listener.stop()


def test_an_endpoint_that_is_none_is_tried_again_until_the_end(caplog: pytest.LogCaptureFixture, publish: Any):
    publisher = publish()
    listener = StreamListener("test")
    listener.add(Words("gopher://nowhere"))
    good = Words(publisher.endpoint)
    listener.add(good)
    publisher.await_subscribers(1)
    publisher.send("a", b"x")
    assert good.flushed.wait(PATIENCE_S)
    listener.stop()
    assert "gopher://nowhere" in caplog.text
    assert "trying again in 0.25 s" in caplog.text


def test_a_listener_may_be_stopped_by_its_own_callback_and_twice(publish: Callable[..., Any]):
    publisher = publish()
    listener = StreamListener("test")

    class Ender(Words):
        def flush(self) -> None:
            listener.stop()
            self.flushed.set()

    channel = Ender(publisher.endpoint)
    listener.add(channel)
    publisher.await_subscribers(1)
    publisher.send("a", b"x")
    assert channel.flushed.wait(PATIENCE_S)
    end(listener)
    listener.add(Words(publisher.endpoint))
    assert not listener._thread.is_alive()


def test_the_end_of_the_context_ends_a_listener(publish: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    publisher = publish()
    context = zmq.Context()
    monkeypatch.setattr(zmq.Context, "instance", lambda: context)
    listener = StreamListener("test")
    listener.add(Words(publisher.endpoint))
    publisher.await_subscribers(1)
    context.term()
    listener._thread.join(PATIENCE_S)
    assert not listener._thread.is_alive()
    listener.stop()


def test_live_mode_keeps_the_newest_snapshot_and_direct_mode_stops_it(
    publish: Callable[..., Any], zmq_peer: Any, server: Any
):
    peer, publisher = zmq_peer(server.handle), publish()
    with URLabClient("tcp://127.0.0.1", step_port=peer.port, state_port=publisher.port) as client:
        client.discover()
        publisher.await_subscribers(1)
        arrived = threading.Event()
        keep = client._state_feed.take
        client._channel.transport.stop_state_stream()
        assert publisher.await_word() == b"\x00state/full"
        client._channel.transport.start_state_stream(lambda snapshot: (keep(snapshot), arrived.set()))
        publisher.await_subscribers(1)
        publisher.send("state/full", encode({"time": 1.5}))
        assert arrived.wait(PATIENCE_S)
        with client._data_lock:
            assert client._latest_state_snapshot == {"time": 1.5}
            assert client._state_msg_count == 1
        assert client.runtime.set_mode("direct") is StepMode.DIRECT
        assert publisher.await_word() == b"\x00state/full"
