"""Who may connect to ZeroMQ's own sockets: real sockets, and processes of another user."""

import contextlib
import itertools
import json
import os
import socket as sockets
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from urlab.config import Ports
from urlab.transport import guard as guard_module
from urlab.transport.streams import publishing as publishing_module

STRANGER_UID = 65534
GREETING_BYTES = 64
MEGABYTE = 2**20
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")

PROGRAM = """# preloaded
import encodings.idna, json, os, socket, struct, sys
import zmq
from zmq.utils.monitor import recv_monitor_message

uid, endpoint, task = int(sys.argv[1]), sys.argv[2], sys.argv[3]
if uid:
    os.setgroups([])
    os.setuid(uid)
context = zmq.Context()

def say(word):
    print(json.dumps(word), flush=True)

def subscribe_or_send(kind):
    '''Connects again and again; ends after three refusals, with what it received.'''
    one = context.socket(kind)
    one.setsockopt(zmq.LINGER, 0)
    one.setsockopt(zmq.RECONNECT_IVL, 10)
    monitor = one.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED)
    if kind == zmq.SUB:
        one.subscribe(b"")
    one.connect(endpoint)
    refused, let_in, received = 0, 0, 0
    while refused < 3 and not received and not (let_in and kind == zmq.PUB):
        while monitor.poll(5):
            event = recv_monitor_message(monitor)["event"]
            refused += event == zmq.EVENT_DISCONNECTED
            let_in += event == zmq.EVENT_HANDSHAKE_SUCCEEDED
        if kind == zmq.SUB:
            received += bool(one.poll(5) and one.recv_multipart())
        else:
            one.send_multipart([b"MyRobot/control", struct.pack("<IIf", 1, 0, 0.5)])
    say({"refused": min(refused, 3), "let_in": let_in, "received": received})

def read_whole(raw):
    received = b""
    try:
        while part := raw.recv(4096):
            received += part
    except OSError:
        pass
    return received

def all_at_once():
    '''Handshake and messages in one write, without waiting for the other side.'''
    ready = b"\\x05READY\\x0bSocket-Type" + struct.pack(">I", 3) + b"PUB"
    greeting = b"\\xff" + bytes(8) + b"\\x7f\\x03\\x00NULL" + bytes(16) + bytes(1) + bytes(31)
    control = b"\\x01\\x0fMyRobot/control\\x00\\x0c" + struct.pack("<IIf", 1, 0, 0.5)
    host, port = endpoint.removeprefix("tcp://").split(":")
    received = []
    for _ in range(100):
        try:
            with socket.create_connection((host, int(port)), 5) as raw:
                raw.sendall(greeting + b"\\x04" + bytes([len(ready)]) + ready + control * 20)
                received.append(len(read_whole(raw)))
        except ConnectionResetError:
            received.append(0)
    say({"most_bytes": max(received)})

def many():
    '''A hundred subscribers, one after the other, each until its first message.'''
    received = 0
    for number in range(100):
        with context.socket(zmq.SUB) as one:
            one.setsockopt(zmq.LINGER, 0)
            one.subscribe(b"")
            one.connect(endpoint)
            received += bool(one.poll(10_000 if uid == 0 else 20) and one.recv_multipart())
    say({"received": received})

def open_file():
    raw = socket.socket(socket.AF_UNIX)
    try:
        raw.connect(endpoint.removeprefix("ipc://"))
        say("connected")
    except PermissionError:
        say("refused")

{"sub": lambda: subscribe_or_send(zmq.SUB), "pub": lambda: subscribe_or_send(zmq.PUB), "all_at_once": all_at_once,
 "many": many, "open_file": open_file}[task]()
"""


@contextlib.contextmanager
def process(uid: int, endpoint: str, task: str) -> Iterator["subprocess.Popen[str]"]:
    arguments = [sys.executable, "-c", PROGRAM, str(uid), endpoint, task]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def result(child: "subprocess.Popen[str]") -> Any:
    assert child.stdout is not None
    return json.loads(child.stdout.readline())


def run(uid: int, endpoint: str, task: str) -> Any:
    with process(uid, endpoint, task) as child:
        return result(child)


def endpoints_that_publish(streams: Any) -> list[str]:
    where = streams.endpoints()
    return [where["state"], where["info"], *where["cameras"].values()]


@as_root
def test_another_user_gets_nothing_of_any_stream(
    play: Any, stream: Any, subscribe: Any, wait_until: Any, caplog: pytest.LogCaptureFixture
) -> None:
    streams = stream(play(), cameras=("eye", "back"))
    own = subscribe(streams._state, b"state/full")
    for endpoint in endpoints_that_publish(streams):
        assert run(STRANGER_UID, endpoint, "sub") == {"refused": 3, "let_in": 0, "received": 0}
        message = f"{endpoint}: user {STRANGER_UID} is refused; --share lets other users of this machine in"
        wait_until(lambda: message in caplog.messages)  # noqa: B023 - it is waited for here
    refusals = [one for one in caplog.records if one.name == "urlab.access"]
    assert len(refusals) == len(endpoints_that_publish(streams)), "more than one line each"
    assert own.recv_multipart()[0] == b"state/full"
    assert b"" not in streams._state.socket.subscriptions._prefixes


@as_root
def test_another_user_gets_no_control_message_through(play: Any, stream: Any, connect: Any, wait_until: Any) -> None:
    streams = stream(play())
    endpoint = streams.endpoints()["control"]
    assert run(STRANGER_UID, endpoint, "pub") == {"refused": 3, "let_in": 0, "received": 0}
    assert run(STRANGER_UID, endpoint, "all_at_once")["most_bytes"] <= GREETING_BYTES
    sender = connect(endpoint, zmq.PUB)
    message = [b"own", b""]
    wait_until(lambda: sender.send_multipart(message) or streams.counters()["control"]["received"])
    counters = streams.counters()["control"]
    assert counters["received"] == counters["unknown_topic"], "a message of the other user was applied"


@as_root
def test_own_connections_lose_nothing_beside_those_of_another_user(play: Any, stream: Any) -> None:
    endpoint = stream(play()).endpoints()["state"]
    with contextlib.ExitStack() as stack:
        users = (0, STRANGER_UID, 0, STRANGER_UID)
        children = [stack.enter_context(process(uid, endpoint, "many")) for uid in users]
        assert [result(child)["received"] for child in children] == [100, 0, 100, 0]


@as_root
def test_share_lets_other_users_in(play: Any, stream: Any, wait_until: Any) -> None:
    streams = stream(play(), share=True)
    assert run(STRANGER_UID, streams.endpoints()["state"], "sub")["received"] == 1
    assert run(STRANGER_UID, streams.endpoints()["control"], "pub")["let_in"] == 1


@as_root
@pytest.mark.parametrize("share", [False, True])
def test_socket_files_are_for_this_user_alone_unless_shared(stream: Any, short_folder: Path, share: bool) -> None:
    short_folder.chmod(0o755)
    base = f"ipc://{short_folder}/s"
    streams = stream(None, base=base, ports=Ports(1, 2, 3, 4, 5), share=share)
    for name in ("state", "control", "info"):
        endpoint = streams.endpoints()[name]
        mode = stat.S_IMODE(Path(endpoint.removeprefix("ipc://")).stat().st_mode)
        assert mode == (0o666 if share else 0o600)
        assert run(STRANGER_UID, endpoint, "open_file") == ("connected" if share else "refused")


def test_own_connections_work_over_socket_files(play: Any, stream: Any, subscribe: Any, short_folder: Path) -> None:
    streams = stream(play(), base=f"ipc://{short_folder}/s")
    assert subscribe(streams._state, b"state/full").recv_multipart()[0] == b"state/full"


def test_a_connection_that_never_says_who_it_is_is_closed(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_module, "HANDSHAKE_MS", 200)
    endpoint = stream(None).endpoints()["state"]
    with sockets.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2])), 10) as silent:
        while silent.recv(4096):
            pass


def test_connections_beyond_the_limit_are_refused_and_there_is_room_again_when_some_go(
    stream: Any, subscribe: Any, wait_until: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guard_module, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(guard_module, "HANDSHAKE_MS", 60_000)
    streams = stream(None)
    address = ("127.0.0.1", int(streams.endpoints()["state"].rpartition(":")[2]))
    with contextlib.ExitStack() as stack:
        first = [stack.enter_context(sockets.create_connection(address, 10)) for _ in range(3)]
        assert all(one.recv(1) == b"\xff" for one in first)
        with contextlib.suppress(ConnectionError), sockets.create_connection(address, 10) as one_more:
            while one_more.recv(4096):
                pass
        wait_until(lambda: any("3 connections are the most" in text for text in caplog.messages))
    subscribe(streams._state, b"hello")


@pytest.mark.parametrize("name", ["state", "control", "info"])
def test_what_is_not_zeromq_is_refused_and_in_the_log_and_who_only_looks_is_not(
    stream: Any, wait_until: Any, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    endpoint = stream(None).endpoints()[name]
    address = ("127.0.0.1", int(endpoint.rpartition(":")[2]))
    with sockets.create_connection(address, 10):
        pass
    with sockets.create_connection(address, 10) as page, contextlib.suppress(ConnectionError):
        page.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        while page.recv(4096):
            pass
    wait_until(lambda: any(one.name == "urlab.access" for one in caplog.records))
    (line,) = (one.getMessage() for one in caplog.records if one.name == "urlab.access")
    assert line.startswith(f"{endpoint}: a client ")
    assert line.endswith(" is refused: it does not speak ZeroMQ's protocol")


def raw_peer(endpoint: str, kind: bytes) -> sockets.socket:
    """A connection that has ended ZeroMQ's handshake; what is sent on it is up to the test."""
    peer = sockets.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2])), 30)
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    peer.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48) + b"\x04" + bytes([len(ready)]) + ready)
    received = b""
    while b"READY" not in received:
        received += peer.recv(4096)
    return peer


def send_until_ended(peer: sockets.socket, parts: Iterator[bytes]) -> int:
    """How many bytes were sent before the connection was ended."""
    sent = 0
    with peer, contextlib.suppress(ConnectionError):
        for part in parts:
            peer.sendall(part)
            sent += len(part)
        while peer.recv(4096):
            pass
    return sent


def subscriptions(count: int, size: int) -> Iterator[bytes]:
    """A hundred at a time, all different from their first bytes on."""
    for first in range(0, count, 100):
        topics = [b"\x01" + number.to_bytes(8, "little") + os.urandom(size - 8) for number in range(first, first + 100)]
        yield b"".join(b"\x02" + struct.pack(">Q", len(topic)) + topic for topic in topics)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("size", [3500, 600, 60])
def test_a_subscriber_with_too_many_or_too_long_topics_is_disconnected_before_they_take_much_memory(
    stream: Any, subscribe: Any, wait_until: Any, size: int
) -> None:
    streams = stream(None)
    published = streams._state.socket
    flood = list(subscriptions(10_000, size))
    before = resident_bytes()
    for _ in range(4):
        send_until_ended(raw_peer(published.endpoint, b"SUB"), iter(flood))
        wait_until(lambda: not published.subscriptions)
    assert resident_bytes() - before < 100 * MEGABYTE
    socket = subscribe(published, b"hello")
    published.offer([(b"hello", b"you")])
    assert socket.recv_multipart() == [b"hello", b"you"]


def test_subscribers_together_have_a_limit_as_well(
    stream: Any, wait_until: Any, subscribe: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(publishing_module, "MOST_TOPICS", 250)
    streams = stream(None)
    published = streams._state.socket
    with contextlib.closing(raw_peer(published.endpoint, b"SUB")) as first:
        first.sendall(b"".join(subscriptions(200, 20)))
        wait_until(lambda: len(published.subscriptions) == 200)
        send_until_ended(raw_peer(published.endpoint, b"SUB"), subscriptions(200, 30))
        wait_until(lambda: len(published.subscriptions) == 200)
        subscribe(published, b"hello")
    wait_until(lambda: any("topics are the most" in text for text in caplog.messages))


@pytest.mark.parametrize(
    ("name", "kind", "most_bytes"),
    [("control", b"PUB", 4 * MEGABYTE), ("state", b"SUB", publishing_module._SUBSCRIPTION_BYTES_AHEAD)],
)
def test_a_message_without_end_costs_its_sender_the_connection(
    stream: Any,
    subscribe: Any,
    wait_until: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    kind: bytes,
    most_bytes: int,
) -> None:
    monkeypatch.setattr(guard_module, "MOST_UNDELIVERED_BYTES", 4 * MEGABYTE)
    streams = stream(None)
    frame = b"\x01\xc8" + bytes(200)  # more will follow
    sent = send_until_ended(raw_peer(streams.endpoints()[name], kind), itertools.repeat(frame * 100))
    assert sent > most_bytes
    wait_until(lambda: any("wait for the end of their message" in text for text in caplog.messages))
    subscribe(streams._state, b"hello")


def test_a_sender_of_many_whole_messages_stays_connected(
    play: Any, stream: Any, wait_until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard_module, "MOST_UNDELIVERED_BYTES", 2 * MEGABYTE)
    streams = stream(None)
    message = b"\x01\x03own\x00\xc8" + bytes(200)
    with contextlib.closing(raw_peer(streams.endpoints()["control"], b"PUB")) as sender:
        for _ in range(200):
            sender.sendall(message * 200)
        wait_until(lambda: streams.counters()["control"]["received"] == 200 * 200)
