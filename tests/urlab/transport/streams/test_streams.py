"""All streaming sockets of a server together."""

import socket as sockets
import threading
from pathlib import Path
from typing import Any

import pytest
import zmq

from urlab.config import Ports
from urlab.errors import ConfigError
from urlab.transport.streams import Streams

OURS = ("urlab-guard", "urlab-publishing", "urlab-heartbeat", "urlab-control-in")


def our_threads() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name in OURS}


def test_every_socket_has_its_endpoint_before_anything_plays(stream: Any, connect: Any) -> None:
    streams = stream(None)
    endpoints = streams.endpoints()
    assert endpoints["cameras"] == {}
    ports = [endpoints[name].rpartition(":")[2] for name in ("state", "control", "info")]
    assert len(set(ports)) == 3
    for port in ports:
        sockets.create_connection(("127.0.0.1", int(port)), 30).close()


@pytest.mark.parametrize("name", ["state", "control", "info"])
def test_a_taken_port_is_named_with_its_option_and_nothing_stays_bound(name: str) -> None:
    before = our_threads()
    with sockets.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        ports = Ports(**{**dict.fromkeys(("step", "state", "control", "info", "camera"), 0), name: port})
        with pytest.raises(ConfigError) as refused:
            Streams("tcp://127.0.0.1", ports)
    assert all(word in refused.value.message for word in (f"port {port}", f"--{name}-port", "in use"))
    assert our_threads() == before


def test_two_sockets_cannot_share_a_port(stream: Any) -> None:
    port = int(stream(None).endpoints()["state"].rpartition(":")[2])
    with pytest.raises(ConfigError, match="--info-port"):
        Streams("tcp://127.0.0.1", Ports(0, 0, 0, port, 0))


def test_closing_ends_every_thread_and_gives_the_ports_back(play: Any) -> None:
    before = our_threads()
    first = Streams("tcp://127.0.0.1", Ports(0, 0, 0, 0, 0))
    assert len(our_threads() - before) == len(OURS)
    endpoints = first.endpoints()
    first.close()
    first.close()
    assert our_threads() == before
    numbers = {name: int(endpoints[name].rpartition(":")[2]) for name in ("state", "control", "info")}
    second = Streams("tcp://127.0.0.1", Ports(step=0, camera=0, **numbers))
    assert second.endpoints() == endpoints
    second.close()


def test_a_living_servers_ipc_files_are_not_taken(stream: Any, short_folder: Path) -> None:
    base = f"ipc://{short_folder}/s"
    stream(None, base=base, ports=Ports(1, 2, 3, 4, 5))
    with pytest.raises(ConfigError, match="--state-port"):
        Streams(base, Ports(11, 2, 13, 14, 15))


def test_streams_work_on_a_version_6_address(play: Any, stream: Any, step: Any, wait_until: Any) -> None:
    try:
        sockets.create_server(("::1", 0), family=sockets.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no loopback of version 6")
    manager = play(paused=True)
    streams = stream(manager, base="tcp://[::1]")
    with zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.setsockopt(zmq.IPV6, 1)
        socket.setsockopt(zmq.RCVTIMEO, 30_000)
        socket.setsockopt(zmq.SUBSCRIBE, b"MyRobot/twist")
        socket.connect(streams.endpoints()["state"])
        wait_until(lambda: socket.poll(0) or streams._state._rows is not None)
        step(manager)
        assert socket.recv_multipart() == [b"MyRobot/twist", bytes(12)]


def test_counters_tell_of_every_stream(play: Any, stream: Any) -> None:
    counters = stream(play(paused=True), cameras=("eye",)).counters()
    assert counters.keys() == {"state", "control", "info", "cameras"}
    assert counters["state"] == counters["info"] == counters["cameras"]["eye"] == {"sent": 0, "dropped": 0}
    assert not any(counters["control"].values())


def test_subscribers_may_come_and_go_while_it_steps(play: Any, stream: Any, connect: Any, wait_until: Any) -> None:
    manager = play()
    streams = stream(manager)
    endpoint = streams.endpoints()["state"]
    for round_ in range(10):
        some = [connect(endpoint, zmq.SUB) for _ in range(5)]
        for number, socket in enumerate(some):
            socket.setsockopt(zmq.SUBSCRIBE, (b"", b"MyRobot/", b"state/full")[(number + round_) % 3])
        assert all(len(socket.recv_multipart()) == 2 for socket in some)
        for socket in some:
            socket.close()
    wait_until(lambda: not streams._state.socket.subscriptions and streams._state._rows is None)
    assert not manager.loop.paused
