"""What one client may cost the others: bursts, unread replies, silence, and descriptors."""

import contextlib
import logging
import os
import resource
import socket as sockets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from urlab import access
from urlab.monitoring import watchdog
from urlab.transport.rpc import RpcLimits, zmtp

READY = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"
ANSWER = len(zmtp.GREETING + zmtp.ready_command())
KIB = b"x" * 1024


def request(body: bytes) -> bytes:
    return zmtp.reply_head(len(body), delimited=True) + body


def is_closed(socket: sockets.socket) -> bool:
    """Whether the server closes the connection, whatever it sends first."""
    try:
        while socket.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.fixture
def open_raw() -> Iterator[Callable[..., sockets.socket]]:
    """Opens TCP connections to a server: plain ones, or such that have introduced themselves."""
    with contextlib.ExitStack() as stack:

        def connect(server: Any, *, introduced: bool = True) -> sockets.socket:
            host, _, port = server.endpoint.removeprefix("tcp://").rpartition(":")
            socket = stack.enter_context(sockets.create_connection((host, int(port)), timeout=30))
            if introduced:
                socket.sendall(zmtp.GREETING + READY)
                answer = b""
                while len(answer) < ANSWER:
                    answer += socket.recv(ANSWER - len(answer))
            return socket

        yield connect


class Handler:
    """Answers with the request in capitals and notes each one; the first one waits until it is released."""

    def __init__(self, holds: bytes = b"first") -> None:
        self.served: list[bytes] = []
        self.begun, self.release = threading.Event(), threading.Event()
        self._holds = holds

    def __call__(self, frame: bytes) -> bytes:
        self.served.append(frame)
        if frame == self._holds:
            self.begun.set()
            assert self.release.wait(30)
        return frame.upper()


def test_a_client_waits_for_one_request_of_a_burst_of_another_and_no_more(serve: Any, open_raw: Any) -> None:
    handler = Handler()
    server = serve(handler)
    good, hasty = open_raw(server), open_raw(server)
    good.sendall(request(b"here"))
    assert good.recv(100)
    hasty.sendall(request(b"first") + b"".join(request(b"burst %d" % number) for number in range(500)))
    assert handler.begun.wait(30)
    good.sendall(request(b"good"))  # a plain socket: it lies at the server before the first one is released
    handler.release.set()
    assert b"GOOD" in good.recv(100)
    assert handler.served.index(b"good") <= 4  # what came before, the first one, and one more of the burst


def test_requests_of_a_client_that_has_gone_are_not_served(serve: Any, connect: Any, open_raw: Any) -> None:
    handler = Handler()
    server = serve(lambda frame: handler(frame) * (1 if frame == b"good" else 100_000))
    hasty = open_raw(server)
    hasty.sendall(request(b"first") + b"".join(request(b"burst %d" % number) for number in range(500)))
    assert handler.begun.wait(30)
    hasty.close()
    handler.release.set()
    good = connect(server.endpoint)
    for _ in range(50):
        good.send(b"good")
        assert good.recv() == b"GOOD"
    assert len([one for one in handler.served if one.startswith(b"burst")]) <= 2


def test_a_long_request_of_a_client_that_has_gone_is_not_begun(
    serve: Any, connect: Any, open_raw: Any, wait_until: Any
) -> None:
    handler = Handler(holds=b"slow")
    server = serve(handler)
    busy = [open_raw(server) for _ in range(8)]
    for socket in busy:
        socket.sendall(request(b"slow"))
    wait_until(lambda: handler.served == [b"slow"] * 8)
    gone = open_raw(server)
    gone.sendall(request(b"slow too"))
    wait_until(lambda: server._running_in_pool == 9)
    gone.close()
    wait_until(lambda: len(server._connections) == 8)
    handler.release.set()
    wait_until(lambda: server._running_in_pool == 0)
    assert b"slow too" not in handler.served


def test_a_client_that_does_not_read_its_replies_is_served_no_more_of_them_until_it_does(
    serve: Any, connect: Any, open_raw: Any
) -> None:
    count = 200
    served: list[bytes] = []

    def handle(frame: bytes) -> bytes:
        served.append(frame)
        return KIB * 1024 if frame == b"much" else frame.upper()

    server = serve(handle, limits=RpcLimits(unsent_bytes=2 << 20))
    lazy, good = open_raw(server), connect(server.endpoint)
    lazy.sendall(request(b"much") * count)
    for _ in range(2 * count):
        good.send(b"good")
        assert good.recv() == b"GOOD"
    assert served.count(b"much") < count / 2
    received, wanted = 0, count * len(request(KIB * 1024))
    while received < wanted:
        received += len(lazy.recv(1 << 20))
    assert received == wanted


def test_a_client_that_has_gone_is_noticed_although_it_was_not_read_from(
    serve: Any, connect: Any, open_raw: Any, wait_until: Any
) -> None:
    server = serve(lambda _: KIB * 1024, limits=RpcLimits(unsent_bytes=1 << 20))
    lazy = open_raw(server)
    lazy.sendall(request(b"much") * 100)
    wait_until(lambda: any(one.is_clogged for one in server._connections.values()))
    lazy.close()
    wait_until(lambda: not server._connections and server._traffic.unsent == 0)


def test_all_replies_that_are_not_read_have_one_limit_and_who_read_last_longest_ago_goes(
    serve: Any, connect: Any, open_raw: Any, wait_until: Any
) -> None:
    limits = RpcLimits(unsent_bytes=64 << 20, all_unsent_bytes=56 << 20)
    server = serve(lambda frame: KIB * 1024 * 24 if frame == b"much" else frame, limits=limits)
    first, second, third = (open_raw(server) for _ in range(3))
    first.sendall(request(b"much"))
    wait_until(lambda: server._traffic.unsent > 12 << 20)
    second.sendall(request(b"much"))
    wait_until(lambda: server._traffic.unsent > 24 << 20)
    third.sendall(request(b"much"))
    wait_until(lambda: len(server._connections) == 2)
    wait_until(lambda: server._traffic.unsent <= 56 << 20)
    assert is_closed(first)
    good = connect(server.endpoint)
    good.send(b"alive")
    assert good.recv() == b"alive"


def test_all_requests_that_are_not_whole_have_one_limit_and_the_largest_goes(
    serve: Any, connect: Any, open_raw: Any
) -> None:
    server = serve(bytes.upper, limits=RpcLimits(all_received_bytes=4 << 20))
    small, large = open_raw(server), open_raw(server)
    for socket, size in ((small, 1 << 20), (large, 2 << 20)):
        socket.sendall(zmtp.reply_head(8 << 20, delimited=True) + bytes(size))
    with contextlib.suppress(ConnectionError):
        large.sendall(bytes(2 << 20))
    assert is_closed(large)
    good = connect(server.endpoint)
    good.send(b"alive")
    assert good.recv() == b"ALIVE"


@pytest.mark.parametrize("sent", [b"", zmtp.GREETING[:10], zmtp.GREETING], ids=["nothing", "a part", "a greeting"])
def test_a_client_without_a_handshake_is_disconnected(serve: Any, open_raw: Any, sent: bytes) -> None:
    server = serve(bytes.upper, limits=RpcLimits(handshake_s=0.1))
    silent = open_raw(server, introduced=False)
    silent.sendall(sent)
    assert is_closed(silent)


def test_an_idle_client_stays(serve: Any, connect: Any, open_raw: Any) -> None:
    server = serve(bytes.upper)
    idle = connect(server.endpoint)
    idle.send(b"a")
    assert idle.recv() == b"A"
    server._limits = RpcLimits(handshake_s=0.1)  # from now on: the handshake of the first one may have taken longer
    assert is_closed(open_raw(server, introduced=False))
    idle.send(b"b")
    assert idle.recv() == b"B"


def test_silent_clients_make_room_for_others(serve: Any, connect: Any, open_raw: Any) -> None:
    server = serve(bytes.upper, limits=RpcLimits(connections=20))
    silent = [open_raw(server, introduced=False) for _ in range(40)]
    good = connect(server.endpoint)
    good.send(b"alive")
    assert good.recv() == b"ALIVE"
    assert is_closed(silent[0])


def test_one_peer_has_so_many_connections_and_no_more(serve: Any, open_raw: Any) -> None:
    server = serve(bytes.upper, limits=RpcLimits(connections_per_peer=2))
    first, second = open_raw(server), open_raw(server)
    third = open_raw(server, introduced=False)
    assert is_closed(third)
    for socket in (first, second):
        socket.sendall(request(b"a"))
        assert socket.recv(100) == request(b"A")


def test_a_peer_of_an_older_protocol_is_told_by_the_end_of_its_connection_and_the_log_by_words(
    serve: Any, open_raw: Any, caplog: Any
) -> None:
    """A ZMTP 2.0 peer sends twelve bytes, and then waits for ours."""
    server = serve(bytes.upper)
    old = open_raw(server, introduced=False)
    with caplog.at_level(logging.WARNING):
        old.sendall(b"\xff" + bytes(8) + b"\x7f\x01\x05")
        assert is_closed(old)
    assert "ZMTP 2.0" in caplog.text


def test_dead_peers_are_looked_for_by_the_system(serve: Any, open_raw: Any, wait_until: Any) -> None:
    server = serve(bytes.upper)
    open_raw(server)
    (connection,) = server._connections.values()
    assert connection.socket.getsockopt(sockets.SOL_SOCKET, sockets.SO_KEEPALIVE)
    assert connection.socket.getsockopt(sockets.IPPROTO_TCP, sockets.TCP_KEEPIDLE) <= 60


def test_bad_clients_cost_a_line_of_the_log_now_and_then_and_the_rest_is_counted(
    serve: Any, open_raw: Any, caplog: Any, monkeypatch: Any
) -> None:
    server = serve(bytes.upper)

    def come_badly() -> None:
        bad = open_raw(server, introduced=False)
        bad.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert is_closed(bad)

    def told() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.name == "urlab.access"]

    monkeypatch.setattr("urlab.access.refusals._due_s", {})
    monkeypatch.setattr("urlab.access.peers._SAID_EVERY_S", 1e9)
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            come_badly()
        assert len(told()) == 1
        monkeypatch.setattr("urlab.access.refusals._due_s", {})
        come_badly()
    assert "49 more" in told()[-1]


def test_without_descriptors_a_client_is_turned_away_and_later_ones_are_served(
    serve: Any, connect: Any, open_raw: Any
) -> None:
    server = serve(bytes.upper)
    good = connect(server.endpoint)
    good.send(b"before")
    good.recv()
    late = sockets.socket()
    late.settimeout(30)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    host, _, port = server.endpoint.removeprefix("tcp://").rpartition(":")
    with contextlib.ExitStack() as taken, late:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 200), hard))
        taken.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        with contextlib.suppress(OSError):
            while True:
                taken.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        late.connect((host, int(port)))
        assert is_closed(late)
        good.send(b"meanwhile")
        assert good.recv() == b"MEANWHILE"
    open_raw(server)


def test_a_thread_that_takes_connections_and_does_not_turn_is_named(
    serve: Any, open_raw: Any, wait_until: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(watchdog, "LATE_S", 0.05)
    go_on, uid_of = threading.Event(), access.peer_uid
    monkeypatch.setattr(access, "peer_uid", lambda socket: uid_of(socket) if go_on.wait(10) else None)

    def stalled() -> set[str]:
        watchdog._watchdog.look()
        return {one.thread for one in watchdog.stalled()}

    server = serve(bytes.upper)
    open_raw(server, introduced=False)
    wait_until(lambda: "urlab-zmq-accept" in stalled())
    go_on.set()
    wait_until(lambda: "urlab-zmq-accept" not in stalled())


# -- other users of this machine ------------------------------------------------------------------------------------


def as_another_user(endpoint: str) -> bytes:
    """What a process of another user reads from the server: its answer, or what comes before the connection ends."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            if endpoint.startswith("ipc://"):
                socket = sockets.socket(sockets.AF_UNIX)
                socket.connect(endpoint.removeprefix("ipc://"))
            else:
                host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
                socket = sockets.create_connection((host.strip("[]"), int(port)))
            socket.settimeout(30)
            answer = b""
            with contextlib.suppress(OSError):
                socket.sendall(zmtp.GREETING + READY)
            with contextlib.suppress(OSError):
                while len(answer) < ANSWER and (more := socket.recv(ANSWER)):
                    answer += more
            os.write(writer, answer or b"nothing")
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as told:
        return told.read()


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@needs_root
@pytest.mark.parametrize("base", ["tcp://127.0.0.1", "tcp://[::1]", "ipc"])
def test_another_user_of_this_machine_is_not_answered_a_byte(
    serve: Any, caplog: Any, short_folder: Any, base: str
) -> None:
    short_folder.chmod(0o755)
    server = serve(bytes.upper, base=f"ipc://{short_folder}/s" if base == "ipc" else base)
    if base == "ipc":
        Path(server.endpoint.removeprefix("ipc://")).chmod(0o777)
    with caplog.at_level(logging.WARNING):
        assert as_another_user(server.endpoint) == b"nothing"
    assert "65534" in caplog.text
    assert "--share" in caplog.text


@needs_root
def test_a_shared_server_answers_other_users_too(serve: Any) -> None:
    server = serve(bytes.upper, share=True)
    assert as_another_user(server.endpoint) == zmtp.GREETING + zmtp.ready_command()
