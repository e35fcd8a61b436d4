"""Several clients of one server over ZeroMQ: nobody blocks, breaks or outlives anybody else."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest
import zmq

from urlab.app import Server
from urlab.config import Ports
from urlab.errors import ConfigError

LONG = 1_000_000_000


class Peer:
    """A REQ client whose request and reply are two steps."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.session_id: str | None = None

    def send(self, op: str, **fields: Any) -> None:
        self.socket.send(msgpack.packb({"op": op, "session_id": self.session_id, **fields}))

    def receive(self) -> Any:
        return msgpack.unpackb(self.socket.recv())

    @property
    def is_answered(self) -> bool:
        return bool(self.socket.poll(0))

    def ask(self, op: str, **fields: Any) -> Any:
        self.send(op, **fields)
        reply = self.receive()
        if op == "hello":
            self.session_id = reply["session_id"]
        return reply


@pytest.fixture
def peers() -> Iterator[Callable[[Server], Peer]]:
    with zmq.Context() as context, contextlib.ExitStack() as stack:

        def connect(server: Server) -> Peer:
            socket = stack.enter_context(context.socket(zmq.REQ))
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.RCVTIMEO, 60_000)
            socket.connect(server.endpoints()["step"])
            return Peer(socket)

        yield connect


@pytest.fixture
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long step is not over before the test is, however busy the machine."""
    monkeypatch.setattr("urlab.manager.manager.STEP_TIME_LIMIT_S", 100.0)


@pytest.fixture
def busy(unlimited: None, make_server: Any, peers: Any) -> Any:
    """A server in the middle of a very long step, the one who asked for it, and somebody else."""
    server = make_server("solo")
    driver, other = peers(server), peers(server)
    driver.ask("hello")
    driver.ask("set_mode", mode="direct")
    other.ask("hello", observer=True)
    begun = threading.Event()
    server.play.manager.engine.post_step.append(begun.set)
    driver.send("step", n_steps=LONG)
    assert begun.wait(20)
    return server, driver, other


def test_twenty_clients_are_served(make_server: Any, peers: Any) -> None:
    server = make_server("solo")
    crowd = [peers(server) for _ in range(20)]
    for peer in crowd:
        peer.ask("hello", observer=True)
    for _ in range(3):
        for peer in crowd:
            peer.send("pie_status")
        assert {peer.receive()["state"] for peer in crowd} == {"ready"}
    assert len({peer.session_id for peer in crowd}) == 20


def test_a_long_step_blocks_nobody_elses_reads(busy: Any, peers: Any) -> None:
    server, driver, other = busy
    assert other.ask("pie_status")["state"] == "ready"
    assert other.ask("meta")["op"] == "meta_ok"
    assert peers(server).ask("hello", observer=True)["op"] == "hello_ok"
    assert not driver.is_answered, "it was the end of the step that let them be read"
    server.close()
    assert driver.receive()["code"] == "shutting_down"


def test_a_long_step_asked_for_in_json_blocks_nobody_either(unlimited: None, make_server: Any, peers: Any) -> None:
    server = make_server("solo")
    driver, other = peers(server), peers(server)
    driver.ask("hello")
    driver.ask("set_mode", mode="direct")
    other.ask("hello", observer=True)
    request = {"op": "step", "session_id": driver.session_id, "n_steps": LONG}
    begun = threading.Event()
    server.play.manager.engine.post_step.append(begun.set)
    driver.socket.send(json.dumps(request).encode())
    assert begun.wait(20)
    assert other.ask("pie_status")["state"] == "ready"
    assert not driver.is_answered


def test_a_server_that_stops_ends_a_long_step_before_its_time_limit_does(busy: Any) -> None:
    server, driver, _ = busy
    server.close()
    reply = driver.receive()
    assert (reply["code"], "steps" in reply["message"]) == ("shutting_down", True)


def test_a_play_that_stops_ends_a_long_step_before_its_time_limit_does(busy: Any, peers: Any) -> None:
    server, driver, _ = busy
    second = peers(server)
    second.ask("hello")
    assert second.ask("stop_pie")["op"] == "stop_pie_ok"
    assert driver.receive()["code"] == "shutting_down"
    assert second.ask("begin_pie")["state"] == "ready"


def test_a_draining_server_says_so(make_server: Any, peers: Any) -> None:
    server = make_server("solo")
    peer = peers(server)
    peer.ask("hello")
    server.dispatcher.drain()
    assert {peer.ask(op)["code"] for op in ("step", "pie_status", "meta")} == {"shutting_down"}


def test_a_client_that_dies_during_its_step_leaves_the_others_in_peace(busy: Any, peers: Any) -> None:
    server, driver, other = busy
    driver.socket.close()
    assert other.ask("pie_status")["state"] == "ready"
    second = peers(server)
    second.ask("hello")
    second.ask("stop_pie")
    assert second.ask("begin_pie")["state"] == "ready"
    assert second.ask("step")["op"] == "step_ok"


def test_several_frames_are_refused_and_the_next_request_is_served(server: Server, peers: Any) -> None:
    peer = peers(server)
    peer.socket.send_multipart([msgpack.packb({"op": "meta"}), b"more"])
    assert peer.receive()["code"] == "bad_request"
    assert peer.ask("meta")["op"] == "meta_ok"


def test_a_second_server_on_the_same_port_is_told_which_option_to_change(make_server: Any, project: Any) -> None:
    port = int(make_server("solo").endpoints()["step"].rpartition(":")[2])
    with pytest.raises(ConfigError, match=rf"port {port} \(--step-port\) is in use"):
        make_server("solo", ports=Ports(step=port))


@contextlib.contextmanager
def busy_simulation(server: Server) -> Iterator[None]:
    """Another transport has the simulation, of which the socket's thread knows nothing."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with server.play.manager.engine.locked():
            taken.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(20)
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("waiting", [1, 12])
def test_clients_that_wait_for_the_simulation_do_not_hold_up_those_that_read(
    make_server: Any, peers: Any, waiting: int
) -> None:
    server = make_server("solo")
    crowd, reader = [peers(server) for _ in range(waiting)], peers(server)
    for peer in crowd:
        peer.ask("hello", operator=True)
    reader.ask("hello", observer=True)
    with busy_simulation(server):
        for peer in crowd:
            peer.send("step")
        for op in ("meta", "pie_status", "current_level", "get_contacts", "list_keyframes"):
            assert reader.ask(op)["op"] == f"{op}_ok"
        assert peers(server).ask("hello", observer=True)["op"] == "hello_ok"
        assert not any(peer.is_answered for peer in crowd)
    assert {peer.receive()["op"] for peer in crowd} == {"step_ok"}


def test_a_spawn_whose_model_takes_long_holds_up_neither_readers_nor_the_driver(make_server: Any, peers: Any) -> None:
    server = make_server("solo")
    driver, author, crowd = peers(server), peers(server), [peers(server) for _ in range(8)]
    driver.ask("hello")
    driver.ask("set_mode", mode="direct")
    author.ask("hello", operator=True)
    for peer in crowd:
        peer.ask("hello", observer=True)
    library, begun, go_on = server.world.library, threading.Event(), threading.Event()
    load = library._load

    def slowly(*arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(20)
        return load(*arguments)

    library._load = slowly
    author.send("spawn_actor", blueprint="box", actor_id="heavy")
    try:
        assert begun.wait(10)
        for peer in crowd:
            peer.send("current_level")
        assert driver.ask("step")["op"] == "step_ok"
        assert {peer.receive()["op"] for peer in crowd} == {"current_level_ok"}
        assert not author.is_answered
    finally:
        go_on.set()
    assert author.receive()["op"] == "spawn_actor_ok"


def test_a_request_that_is_sent_again_with_its_id_is_served_once(make_server: Any, peers: Any) -> None:
    server = make_server("solo")
    driver = peers(server)
    driver.ask("hello")
    driver.ask("set_mode", mode="direct")
    driver.ask("reset")
    replies = [driver.ask("step", n_steps=10, request_id=1)]
    for _ in range(2):
        again = peers(server)  # another connection, as after a break
        again.session_id = driver.session_id
        replies.append(again.ask("step", n_steps=10, request_id=1))
    assert [reply["step"] for reply in replies] == [10, 10, 10]
    assert replies[1] == replies[0]
    assert driver.ask("step", n_steps=10, request_id=2)["step"] == 20
    assert driver.ask("step", n_steps=10)["step"] == 30
    assert driver.ask("step", n_steps=10)["step"] == 40, "without an id the same bytes are another request"


def test_heartbeats_of_libzmq_are_answered_idle_and_during_a_long_step(busy: Any) -> None:
    server, _, _ = busy
    with zmq.Context() as context, context.socket(zmq.REQ) as client:
        for option, value in ((zmq.HEARTBEAT_IVL, 300), (zmq.HEARTBEAT_TIMEOUT, 3000), (zmq.LINGER, 0)):
            client.setsockopt(option, value)
        client.setsockopt(zmq.RCVTIMEO, 60_000)
        with client.get_monitor_socket(zmq.EVENT_DISCONNECTED) as monitor:
            client.connect(server.endpoints()["step"])
            client.send(msgpack.packb({"op": "hello", "observer": True}))
            assert msgpack.unpackb(client.recv())["op"] == "hello_ok"
            assert not monitor.poll(4000)
            client.disable_monitor()
