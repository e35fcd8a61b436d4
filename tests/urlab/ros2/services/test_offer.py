"""Which services there are, what they say when the server is away, and how they do within the bridge."""

import socket
import sys
import time
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from urlab.cli.ros2.listing import listing
from urlab.config import Ports
from urlab.ros2.bridge import Settings
from urlab.ros2.qos import CLOCK
from urlab.ros2.rclpy_backend import RclpyBackend
from urlab.ros2.services import SERVICES, SimulationServices
from urlab.ros2.simulation_messages import PACKAGE
from urlab_wire import CATALOGUE

OK, FAILED = 1, 4
_, PLAYING, PAUSED, _ = range(4)
TYPES = {one.name: one.type_name for one in SERVICES}


def test_without_a_server_every_service_says_so_in_time(offer: Any, start: Any) -> None:
    server = start()
    gone = server.port
    server.close()
    graph = offer(gone)
    begin = time.monotonic()
    for service in ("get_simulation_state", "step_simulation", "get_entities"):
        code, told = graph.refused(service)
        assert (code, "urlab serve" in told) == (FAILED, True)
    assert time.monotonic() - begin < 5
    assert graph.call("get_simulator_features").features.features.size


def test_a_server_that_says_nothing_is_given_up(offer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urlab.ros2.services.operating._PATIENCE_MS", 100)
    monkeypatch.setattr("urlab_client.rpc.GRACE_MS", 100)
    monkeypatch.setitem(CATALOGUE, "hello", msgspec.structs.replace(CATALOGUE["hello"], limit_s=0.1))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        graph = offer(mute.getsockname()[1])
        code, told = graph.refused("get_simulation_state")
    assert (code, "does not answer" in told) == (FAILED, True)


def test_a_server_that_is_restarted_is_joined_again(offer: Any, start: Any) -> None:
    server = start()
    ports = replace(Ports.any(), step=server.port)
    graph = offer(ports.step)
    assert graph.state() == PLAYING
    server.close()
    assert graph.refused("get_simulation_state")[0] == FAILED
    start(ports=ports)
    assert graph.state() == PLAYING
    assert graph.set_state(PAUSED).result == OK


def test_the_features_are_those_that_work(graph: Any) -> None:
    told = graph.call("get_simulator_features").features
    assert told.features.tolist() == [0, 1, 4, 5, 6, 8, 10, 11, 12, 14, 20, 21, 22, 23, 24, 25, 26, 31, 32]
    assert {"mjcf", "urdf"} <= set(told.spawn_formats)


def test_where_ros_lacks_the_package_there_are_no_services(
    stand_in: None, domain: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    monkeypatch.setitem(sys.modules, f"{PACKAGE}.srv", None)
    backend = RclpyBackend(domain=domain)
    services = SimulationServices(backend, "tcp://127.0.0.1", 1)
    assert services.names == []
    assert "apt install ros-$ROS_DISTRO-simulation-interfaces" in caplog.text
    services.close()
    backend.close()


@pytest.mark.parametrize("wanted", [True, False])
def test_the_list_of_the_command_names_the_services(server: Any, wanted: bool) -> None:
    rows = listing(Settings(step_port=server.port, services=wanted))
    served = {row["topic"]: row["type"] for row in rows if row["direction"] == "served"}
    assert served == ({f"/{name}": kind for name, kind in TYPES.items()} if wanted else {})
    assert {"topic": "/clock", "type": "rosgraph_msgs/msg/Clock", "direction": "published"} in rows


def test_the_bridge_tells_of_what_was_spawned(bridged: Any, wait_until: Any) -> None:
    bridge, graph = bridged
    ticks = graph.node.listen("/clock", "rosgraph_msgs/msg/Clock", CLOCK)
    wait_until(lambda: len(ticks) > 20)
    graph.ok("spawn_entity", **graph.spawn_fields("box", "parcel"))
    wait_until(lambda: "/entities/box/pose" in bridge.look())
    count = len(ticks)
    wait_until(lambda: len(ticks) > count + 20)
    times = [one.clock.sec * 10**9 + one.clock.nanosec for _, one in ticks]
    assert times == sorted(times), "the clock goes on"
