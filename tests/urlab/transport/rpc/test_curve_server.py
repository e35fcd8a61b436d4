"""RPC for clients with keys: real sockets, real keys."""

import contextlib
import queue
import re
import socket as sockets
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest
import zmq

from urlab.access import KeyPair, KeysFolder, Role, RpcCaller
from urlab.config import Ports
from urlab.monitoring import watchdog
from urlab.transport import CurveRpcServer, Streams
from urlab.transport.guard import new_pair
from urlab.transport.repeats import RequestRegistry
from urlab.transport.rpc import KeyLimits, curve_server

Serve = Callable[..., CurveRpcServer]
Connect = Callable[..., "zmq.Socket[bytes]"]


class Call:
    """A frame; one that begins with b"slow" may take long."""

    pool = "simulation"

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.takes_long = frame.startswith(b"slow")
        self.holder = "a session" if b"hold" in frame else None


class Service:
    """Answers with who asks, and what; slow requests wait for ``go_on``."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.served: list[bytes] = []
        self.released: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.waiting = 0

    def read(self, frame: bytes) -> Call:
        return Call(frame)

    def serve(self, call: Call, caller: RpcCaller) -> bytes:
        if call.takes_long:
            self.waiting += 1
            assert self.go_on.wait(30)
        self.served.append(call.frame)
        return f"{caller.name} {caller.role} {caller.address} ".encode() + call.frame

    serve_now = serve

    def let_go(self, session_id: str) -> None:
        self.released.put(session_id)


@pytest.fixture
def keys(tmp_path: Path) -> KeysFolder:
    return KeysFolder(tmp_path / "keys")


@pytest.fixture
def pairs(keys: KeysFolder) -> dict[str, KeyPair]:
    """Keys by name; those of strangers are not in the folder."""
    made = {name: new_pair() for name in ("ada", "eve", "stranger")}
    keys.add("ada", Role.DRIVER, made["ada"].public)
    keys.add("eve", Role.OBSERVER, made["eve"].public)
    return made


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.go_on.set()


@pytest.fixture
def serve_curve(keys: KeysFolder, service: Service) -> Iterator[Serve]:
    with contextlib.ExitStack() as stack:

        def start(limits: KeyLimits | None = None, **options: Any) -> CurveRpcServer:
            server = CurveRpcServer("tcp://127.0.0.1", 0, service, keys, limits=limits, **options)
            stack.callback(server.stop)
            stack.callback(service.go_on.set)
            server.start()
            return server

        yield start


@pytest.fixture
def connect_as(keys: KeysFolder, pairs: dict[str, KeyPair]) -> Iterator[Connect]:
    """Opens a client's socket with a key; with ``server`` it believes that the server has that one."""
    with zmq.Context() as context, contextlib.ExitStack() as stack:

        def connect(
            endpoint: str, name: str | None, kind: int = zmq.REQ, server: KeyPair | None = None
        ) -> "zmq.Socket[bytes]":
            socket = stack.enter_context(context.socket(kind))
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.RCVTIMEO, 30_000)
            if name is not None:
                socket.curve_publickey = pairs[name].public.encode()
                socket.curve_secretkey = pairs[name].secret.encode()
                socket.curve_serverkey = (server or keys.server_pair(new_pair)).public.encode()
            socket.connect(endpoint)
            return socket

        yield connect


def ask(socket: "zmq.Socket[bytes]", request: bytes) -> bytes:
    socket.send(request)
    return socket.recv()


def test_a_request_has_the_name_and_the_role_of_its_key(serve_curve: Serve, connect_as: Connect) -> None:
    endpoint = serve_curve().endpoint
    assert ask(connect_as(endpoint, "ada"), b"hello") == b"ada driver 127.0.0.1 hello"
    assert ask(connect_as(endpoint, "eve"), b"hello") == b"eve observer 127.0.0.1 hello"


def test_clients_may_leave_the_delimiter_out(serve_curve: Serve, connect_as: Connect) -> None:
    dealer = connect_as(serve_curve().endpoint, "ada", zmq.DEALER)
    assert ask(dealer, b"plain") == b"ada driver 127.0.0.1 plain"
    dealer.send_multipart([b"", b"delimited"])
    assert dealer.recv_multipart() == [b"", b"ada driver 127.0.0.1 delimited"]
    dealer.send_multipart([b"a", b"b"])
    assert msgpack.unpackb(dealer.recv())["code"] == "bad_request"


@pytest.mark.parametrize(
    ("name", "wrong_server"), [(None, False), ("stranger", False), ("ada", True)], ids=["no key", "unknown", "server"]
)
def test_nothing_else_is_let_in_and_the_log_says_so(
    serve_curve: Serve,
    connect_as: Connect,
    service: Service,
    caplog: Any,
    wait_until: Any,
    name: str | None,
    wrong_server: bool,
) -> None:
    endpoint = serve_curve().endpoint
    refused = connect_as(endpoint, name, zmq.DEALER, new_pair() if wrong_server else None)
    refused.send(b"let me in", zmq.NOBLOCK)
    assert ask(connect_as(endpoint, "ada"), b"meanwhile")
    assert not refused.poll(300)
    assert service.served == [b"meanwhile"]
    reason = "its key is not known" if name == "stranger" else "it has no key"
    told = re.compile(rf"{endpoint}: a client (at 127\.0\.0\.1|that has gone meanwhile) is refused: {reason}")
    wait_until(lambda: any(map(told.fullmatch, caplog.messages)))


def test_clients_with_keys_that_come_and_go_without_a_word_are_no_refusals(
    keys: KeysFolder, connect_as: Connect, wait_until: Any, caplog: Any
) -> None:
    streams = Streams("tcp://127.0.0.1", Ports.any(), keys=keys)
    try:
        state, guarded = streams.endpoints()["state"], streams._state.socket._guarded
        for _ in range(3):
            silent = [connect_as(state, name, zmq.SUB) for name in ("ada", "eve") * 5]
            wait_until(lambda: sum(one.is_judged for one in list(guarded.connections.values())) == 10)
            for one in silent:
                one.close()
            wait_until(lambda: not guarded.connections)
        assert "refused" not in caplog.text
    finally:
        streams.close()


def test_bytes_on_the_way_are_encrypted(serve_curve: Serve, connect_as: Connect) -> None:
    """A listener between client and server never sees what is said."""
    heard: list[bytes] = []
    with sockets.create_server(("127.0.0.1", 0)) as between:
        port = int(serve_curve().endpoint.rpartition(":")[2])
        relaying = threading.Thread(target=relay, args=(between, port, heard))
        relaying.start()
        client = connect_as(f"tcp://127.0.0.1:{between.getsockname()[1]}", "ada")
        assert ask(client, b"a secret request").endswith(b"a secret request")
        client.close()
        relaying.join(10)
    assert len(heard) > 2
    assert b"secret" not in b"".join(heard)


def relay(listener: sockets.socket, port: int, heard: list[bytes]) -> None:
    def copy(source: sockets.socket, target: sockets.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                heard.append(data)
                target.sendall(data)

    with listener.accept()[0] as client, sockets.create_connection(("127.0.0.1", port)) as server:
        back = threading.Thread(target=copy, args=(server, client), daemon=True)
        back.start()
        copy(client, server)
        server.shutdown(sockets.SHUT_RDWR)
        back.join()


def test_a_long_request_holds_up_no_other_client_and_its_own_stay_in_order(
    serve_curve: Serve, connect_as: Connect, service: Service
) -> None:
    endpoint = serve_curve().endpoint
    slow, quick = connect_as(endpoint, "ada", zmq.DEALER), connect_as(endpoint, "eve")
    for request in (b"slow", b"second", b"third"):
        slow.send(request)
    assert ask(quick, b"quick").endswith(b"quick")
    assert not slow.poll(0)
    service.go_on.set()
    assert [slow.recv().rpartition(b" ")[2] for _ in range(3)] == [b"slow", b"second", b"third"]


def test_a_client_far_ahead_of_its_replies_is_disconnected(
    serve_curve: Serve, connect_as: Connect, caplog: Any, wait_until: Any
) -> None:
    endpoint = serve_curve(KeyLimits(ahead=10)).endpoint
    hasty = connect_as(endpoint, "ada", zmq.DEALER)
    for number in range(50):
        hasty.send(b"slow" if number == 0 else b"more")
    wait_until(lambda: "more than 10 requests wait" in caplog.text)
    assert ask(connect_as(endpoint, "eve"), b"still there").endswith(b"still there")


def test_a_key_that_sends_more_than_its_share_is_told_so(
    serve_curve: Serve, connect_as: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve_server, "time", SimpleNamespace(monotonic=lambda: 0.0))  # its share does not grow again
    endpoint = serve_curve(KeyLimits(requests_per_s=5)).endpoint
    first, second = connect_as(endpoint, "ada"), connect_as(endpoint, "ada")
    replies = [ask(socket, b"again") for _ in range(5) for socket in (first, second)]
    limited = [reply for reply in replies if not reply.startswith(b"ada")]
    assert len(limited) == 5
    assert msgpack.unpackb(limited[0])["code"] == "rate_limited"
    assert ask(connect_as(endpoint, "eve"), b"not me").endswith(b"not me")


def test_a_request_of_64_megabytes_passes(serve_curve: Serve, connect_as: Connect, service: Service) -> None:
    socket = connect_as(serve_curve().endpoint, "ada")
    request = bytes(64 * 2**20)
    socket.setsockopt(zmq.RCVTIMEO, 60_000)
    assert len(ask(socket, request)) > len(request)


def test_a_client_that_does_not_read_is_disconnected(
    serve_curve: Serve, connect_as: Connect, caplog: Any, wait_until: Any
) -> None:
    endpoint = serve_curve().endpoint
    deaf = connect_as("inproc://nowhere", "ada", zmq.DEALER)
    deaf.setsockopt(zmq.RCVHWM, 1)
    deaf.connect(endpoint)

    def ask_more() -> bool:
        with contextlib.suppress(zmq.Again):
            deaf.send(bytes(200_000), zmq.NOBLOCK)
        return "it does not read its replies" in caplog.text

    wait_until(ask_more)
    assert ask(connect_as(endpoint, "eve"), b"still there").endswith(b"still there")


def test_a_revoked_key_is_disconnected_and_its_role_follows_the_folder(
    serve_curve: Serve, connect_as: Connect, keys: KeysFolder, pairs: dict[str, KeyPair], caplog: Any, wait_until: Any
) -> None:
    endpoint = serve_curve().endpoint
    client = connect_as(endpoint, "eve")
    assert ask(client, b"1").startswith(b"eve observer")
    keys.revoke("eve")
    wait_until(lambda: "the key of 'eve' was revoked" in caplog.text)
    keys.add("eve", Role.OPERATOR, pairs["eve"].public)
    assert ask(connect_as(endpoint, "eve"), b"2").startswith(b"eve operator")


def test_a_key_has_so_many_connections_and_no_more(
    serve_curve: Serve, connect_as: Connect, monkeypatch: pytest.MonkeyPatch, caplog: Any, wait_until: Any
) -> None:
    monkeypatch.setattr("urlab.transport.guard.MOST_CONNECTIONS_PER_KEY", 3)
    endpoint = serve_curve().endpoint
    for _ in range(3):
        assert ask(connect_as(endpoint, "ada"), b"one more")
    one_too_many = connect_as(endpoint, "ada")
    one_too_many.send(b"and another")
    wait_until(lambda: "3 connections are the most for the key 'ada'" in caplog.text)
    assert not one_too_many.poll(300)
    assert ask(connect_as(endpoint, "eve"), b"not me")


def test_streams_ask_for_keys_too_and_control_for_an_operator_s(
    keys: KeysFolder, connect_as: Connect, wait_until: Any, caplog: Any
) -> None:
    streams = Streams("tcp://127.0.0.1", Ports.any(), keys=keys)
    try:
        state, control = streams.endpoints()["state"], streams.endpoints()["control"]
        subscribers = {name: connect_as(state, name, zmq.SUB) for name in (None, "stranger", "eve", "ada")}
        for name, socket in subscribers.items():
            socket.setsockopt(zmq.SUBSCRIBE, b"" if name in ("ada", "eve") else b"stolen")
        wait_until(lambda: b"" in streams._state.socket.subscriptions._prefixes)
        published = streams._state.socket  # which does not tell of the second one that subscribes to the same
        wait_until(lambda: published.offer([(b"stolen", b"goods")]) or subscribers["eve"].poll(0))
        assert not any(subscribers[name].poll(100) for name in (None, "stranger"))
        senders = {name: connect_as(control, name, zmq.PUB) for name in (None, "stranger", "eve", "ada")}

        def send() -> int:
            for name, socket in senders.items():
                socket.send_multipart([str(name).encode(), b""])
            return int(streams.counters()["control"]["received"])

        wait_until(lambda: send() > 20)
        topics = {text.split("'")[1] for text in caplog.messages if "a control message for" in text}
        assert topics == {"ada"}
        wait_until(lambda: "its role is observer, and operator is needed" in caplog.text)
    finally:
        streams.close()


def test_a_request_with_an_id_is_served_once_over_another_connection_and_of_another_key_again(
    serve_curve: Serve, connect_as: Connect, service: Service, wait_until: Any
) -> None:
    def registry() -> RequestRegistry:
        return RequestRegistry(identify=lambda frame: ("session", frame[-1]))

    endpoint = serve_curve(make_registry=registry).endpoint
    first, again, other = connect_as(endpoint, "ada"), connect_as(endpoint, "ada"), connect_as(endpoint, "eve")
    first.send(b"slow 1")
    wait_until(lambda: service.waiting)
    again.send(b"slow 1")
    service.go_on.set()
    assert first.recv() == again.recv() == ask(connect_as(endpoint, "ada"), b"slow 1")
    assert service.served == [b"slow 1"]
    assert ask(other, b"slow 1").startswith(b"eve")
    assert service.served == [b"slow 1"] * 2


class Stuck(Service):
    """Serves requests that it calls quick, and holds the socket's thread with one of them."""

    def serve_now(self, call: Call, caller: RpcCaller) -> bytes:
        if call.frame == b"stuck":
            assert self.go_on.wait(10)
        return self.serve(call, caller)


def test_a_thread_that_does_not_turn_is_named_until_it_does(
    keys: KeysFolder, connect_as: Connect, wait_until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "LATE_S", 0.05)

    def stalled() -> dict[str, str]:
        watchdog._watchdog.look()
        return {one.thread: one.doing for one in watchdog.stalled()}

    stuck = Stuck()
    server = CurveRpcServer("tcp://127.0.0.1", 0, stuck, keys)
    server.start()
    try:
        ada = connect_as(server.endpoint, "ada")
        assert ask(ada, b"quick")
        wait_until(lambda: "urlab-curve-rpc" not in stalled())
        ada.send(b"stuck")
        wait_until(lambda: "urlab-curve-rpc" in stalled())
        assert "_serve" in stalled()["urlab-curve-rpc"]
        stuck.go_on.set()
        assert ada.recv()
        wait_until(lambda: "urlab-curve-rpc" not in stalled())
    finally:
        stuck.go_on.set()
        server.stop()
    assert "urlab-curve-rpc" not in {one.name for one in watchdog._watchdog._watched}


def test_a_guard_that_does_not_turn_is_named_too(
    keys: KeysFolder, connect_as: Connect, service: Service, wait_until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "LATE_S", 0.05)
    go_on = threading.Event()
    server = CurveRpcServer("tcp://127.0.0.1", 0, service, keys, on_connected=lambda *_: go_on.wait(10) and None)
    server.start()

    def stalled() -> set[str]:
        watchdog._watchdog.look()
        return {one.thread for one in watchdog.stalled()}

    try:
        ada = connect_as(server.endpoint, "ada")
        ada.send(b"hello")
        wait_until(lambda: "urlab-guard" in stalled())
        go_on.set()
        assert ada.recv()
        wait_until(lambda: "urlab-guard" not in stalled())
    finally:
        go_on.set()
        server.stop()


def test_closing_leaves_no_thread_and_gives_the_port_back(serve_curve: Serve, connect_as: Connect) -> None:
    before = set(threading.enumerate())
    server = serve_curve()
    assert ask(connect_as(server.endpoint, "ada"), b"hello")
    server.stop()
    server.stop()
    assert {one.name for one in set(threading.enumerate()) - before} == set()
    with sockets.create_server(("127.0.0.1", int(server.endpoint.rpartition(":")[2]))):
        pass


@pytest.mark.parametrize("request_frame", [b"hold", b"slow hold"])
def test_what_a_client_holds_is_released_when_its_connection_is_lost(
    serve_curve: Serve, connect_as: Connect, service: Service, request_frame: bytes
) -> None:
    endpoint = serve_curve().endpoint
    client = connect_as(endpoint, "ada")
    client.send(request_frame)
    service.go_on.set()
    client.recv()
    assert service.released.empty()
    client.close()
    assert service.released.get(timeout=10) == "a session"


def test_raw_bytes_harm_no_client(serve_curve: Serve, connect_as: Connect) -> None:
    endpoint = serve_curve().endpoint
    address = ("127.0.0.1", int(endpoint.rpartition(":")[2]))
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00"
    for mechanism in (b"NULL", b"PLAIN", b"CURVE", b"?" * 20):
        for rest in (b"", b"\x04\x05HELLO", b"\x04\xc8\x05HELLO" + bytes(194), struct.pack(">BQ", 6, 1 << 62)):
            with sockets.create_connection(address, 5) as peer, contextlib.suppress(OSError):
                peer.sendall(greeting + mechanism.ljust(20, b"\0") + bytes(32) + rest)
    assert ask(connect_as(endpoint, "ada"), b"still there").endswith(b"still there")
