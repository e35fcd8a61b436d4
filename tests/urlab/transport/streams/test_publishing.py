"""Publishing sockets, their subscriptions, and the thread that owns them."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from urlab.transport.endpoint import listen
from urlab.transport.guard import ConnectionGuard
from urlab.transport.streams.publishing import PublishingThread, PubSocket, TopicPrefixes

MEGABYTE = 2**20


@pytest.fixture
def thread() -> Iterator[PublishingThread]:
    with zmq.Context() as context:
        guard = ConnectionGuard(context)
        thread = PublishingThread(guard)
        yield thread
        thread.close()
        guard.close()


@pytest.fixture
def publishing(thread: PublishingThread) -> Callable[..., PubSocket]:
    """Opens a publishing socket; ``changes`` collects what it says of its subscriptions."""

    def open_socket(
        changes: list[bool] | None = None, *, kept_messages: int = 100, kept_batches: int = 100
    ) -> PubSocket:
        one = PubSocket(
            thread.guard,
            listen("tcp://127.0.0.1", 0, option="--state-port"),
            kept_messages=kept_messages,
            kept_batches=kept_batches,
            on_change=(changes if changes is not None else []).append,
        )
        thread.add(one)
        return one

    return open_socket


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_batches_arrive_whole_and_in_order(publishing: Any, subscribe: Any) -> None:
    one = publishing()
    socket = subscribe(one, b"")
    one.offer([(b"a", b"1"), (b"b", b"2")])
    one.offer([(b"c",)])
    assert [socket.recv_multipart() for _ in range(3)] == [[b"a", b"1"], [b"b", b"2"], [b"c"]]
    assert one.counters() == {"sent": 3, "dropped": 0}


def test_a_subscriber_gets_what_it_subscribed_to(publishing: Any, subscribe: Any) -> None:
    one = publishing()
    left, right = subscribe(one, b"left/"), subscribe(one, b"right/", b"end")
    one.offer([(b"left/a", b"1"), (b"right/a", b"2"), (b"end", b"")])
    assert left.recv_multipart() == [b"left/a", b"1"]
    assert [right.recv_multipart() for _ in range(2)] == [[b"right/a", b"2"], [b"end", b""]]
    assert not left.poll(0)


def test_it_knows_who_comes_and_goes(publishing: Any, subscribe: Any, wait_until: Any) -> None:
    changes: list[bool] = []
    one = publishing(changes)
    first, second = subscribe(one, b"a"), subscribe(one, b"a")
    assert one.wants(b"a/1")
    assert changes[0] is True
    first.close()
    second.setsockopt(zmq.SUBSCRIBE, b"b")
    wait_until(lambda: one.wants(b"b"))
    assert one.wants(b"a/1")
    second.setsockopt(zmq.UNSUBSCRIBE, b"a")
    wait_until(lambda: not one.wants(b"a/1"))
    second.close()
    wait_until(lambda: not one.subscriptions)
    assert changes[-1] is False


def test_large_frames_arrive_as_they_are(publishing: Any, subscribe: Any) -> None:
    one = publishing()
    socket = subscribe(one, b"")
    pictures = [bytes([shade]) * MEGABYTE for shade in range(5)]
    for picture in pictures:
        one.offer([(b"picture", picture)])
        assert socket.recv_multipart() == [b"picture", picture]


def test_what_the_thread_cannot_keep_up_with_is_dropped_oldest_first(thread: PublishingThread) -> None:
    listener = listen("tcp://127.0.0.1", 0, option="--state-port")
    one = PubSocket(thread.guard, listener, kept_messages=9, kept_batches=2, on_change=[].append)
    for number in range(5):
        one.offer([(b"t", bytes([number])), (b"t", b"")])
    assert [batch[0][1] for batch in one._batches] == [b"\3", b"\4"]
    assert one.counters() == {"sent": 0, "dropped": 6}
    thread.add(one)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the size of this process")
def test_a_subscriber_that_never_reads_is_not_waited_for_and_costs_no_memory(
    publishing: Any, subscribe: Any, connect: Any, wait_until: Any
) -> None:
    one = publishing(kept_messages=4, kept_batches=4)
    stuck = connect("inproc://nowhere", zmq.SUB)
    for option in (zmq.RCVHWM, zmq.RCVBUF):
        stuck.setsockopt(option, 1)
    stuck.setsockopt(zmq.SUBSCRIBE, b"")
    stuck.connect(one.endpoint)
    wait_until(lambda: stuck.poll(0) or one.wants(b"picture"))
    picture = bytes(MEGABYTE)
    before = resident_bytes()
    for number in range(300):
        one.offer([(b"picture", picture[:-1] + bytes([number % 256]))])
        wait_until(lambda: one.sent == number + 1)  # noqa: B023 - it is waited for here
        # pyzmq lets go of pictures on a thread of its own.
        wait_until(lambda: resident_bytes() - before < 50 * MEGABYTE)
    assert one.dropped == 0
    healthy = subscribe(one, b"hello")
    one.offer([(b"hello", b"you")])
    assert healthy.recv_multipart() == [b"hello", b"you"]


@pytest.mark.parametrize("words", [[b"\2nonsense"], [b"\1", b"\1a"], [b"", b"\1"], [bytes(4000)], [b"\1" * 100_000]])
def test_strange_words_of_a_peer_harm_nobody(publishing: Any, connect: Any, subscribe: Any, words: list[bytes]) -> None:
    one = publishing()
    connect(one.endpoint, zmq.XSUB).send_multipart(words)
    healthy = subscribe(one, b"hello")
    one.offer([(b"hello", b"you")])
    assert healthy.recv_multipart() == [b"hello", b"you"]


def test_a_listener_that_fails_does_not_end_the_stream(
    thread: PublishingThread, subscribe: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(new: bool) -> None:
        raise RuntimeError("no ear")

    listener = listen("tcp://127.0.0.1", 0, option="--state-port")
    one = PubSocket(thread.guard, listener, kept_messages=9, kept_batches=9, on_change=fail)
    thread.add(one)
    socket = subscribe(one, b"")
    one.offer([(b"a", b"1")])
    assert socket.recv_multipart() == [b"a", b"1"]
    assert "no ear" in caplog.text


def test_a_thread_with_nothing_to_do_sleeps(thread: PublishingThread, publishing: Any, wait_until: Any) -> None:
    publishing()
    wait_until(lambda: not thread._new)
    assert thread._thread.ident is not None
    threading.Event().wait(0.05)
    clock = time.pthread_getcpuclockid(thread._thread.ident)
    before = time.clock_gettime(clock)
    threading.Event().wait(0.2)
    assert time.clock_gettime(clock) - before < 0.001


def test_offers_from_many_threads_all_arrive(publishing: Any, subscribe: Any) -> None:
    one = publishing(kept_messages=10_000, kept_batches=10_000)
    socket = subscribe(one, b"")
    threads = [
        threading.Thread(target=lambda n=n: [one.offer([(b"t", bytes((n, k)))]) for k in range(100)]) for n in range(4)
    ]
    for each in threads:
        each.start()
    received = [socket.recv_multipart()[1] for _ in range(400)]
    for each in threads:
        each.join()
    assert [[k for n, k in received if n == sender] for sender in range(4)] == [list(range(100))] * 4


def test_a_closed_thread_gives_the_ports_back() -> None:
    with zmq.Context() as context:
        guard = ConnectionGuard(context)
        thread = PublishingThread(guard)
        listener = listen("tcp://127.0.0.1", 0, option="--state-port")
        thread.add(PubSocket(guard, listener, kept_messages=1, kept_batches=1, on_change=[].append))
        thread.close()
        thread.close()
        guard.close()
    port = int(listener.endpoint.rpartition(":")[2])
    with contextlib.closing(listen("tcp://127.0.0.1", port, option="--state-port")) as again:
        assert again.endpoint == listener.endpoint


def test_a_topic_is_wanted_when_somebody_subscribed_to_its_beginning() -> None:
    subscriptions = TopicPrefixes()
    assert not subscriptions
    assert not subscriptions.wants(b"arm/joint/a")
    assert subscriptions.update([b"\1arm/"])
    assert subscriptions
    assert subscriptions.wants(b"arm/joint/a")
    assert not subscriptions.wants(b"arm")
    assert not subscriptions.wants(b"arm-2/joint/a")


def test_the_empty_prefix_wants_everything() -> None:
    subscriptions = TopicPrefixes()
    subscriptions.update([b"\1"])
    assert subscriptions.wants(b"anything")
    subscriptions.update([b"\0"])
    assert not subscriptions.wants(b"anything")


def test_only_new_prefixes_are_news() -> None:
    subscriptions = TopicPrefixes()
    assert subscriptions.update([b"\1a", b"\1b"])
    assert not subscriptions.update([b"\1a"])
    assert not subscriptions.update([b"\0a"])
    assert subscriptions.update([b"\1a"])


def test_other_words_are_ignored() -> None:
    subscriptions = TopicPrefixes()
    assert not subscriptions.update([b"", b"hello", b"\0never", b"\2a"])
    assert not subscriptions


prefixes = st.text("ab", max_size=3).map(str.encode)


@given(st.lists(st.tuples(st.booleans(), prefixes), max_size=30), prefixes)
def test_it_agrees_with_counting_the_words_of_a_socket(words: list[tuple[bool, bytes]], topic: bytes) -> None:
    """A socket speaks of a prefix when its count leaves 0 and when it comes back to 0."""
    subscriptions, counts = TopicPrefixes(), Counter[bytes]()
    for subscribes, prefix in words:
        if subscribes:
            counts[prefix] += 1
            if counts[prefix] == 1:
                subscriptions.update([b"\1" + prefix])
        elif counts[prefix]:
            counts[prefix] -= 1
            if not counts[prefix]:
                subscriptions.update([b"\0" + prefix])
    assert subscriptions.wants(topic) is any(counts[prefix] and topic.startswith(prefix) for prefix in counts)
