"""Which services there are, what they say when the server is away, and requests in masses or without sense."""

import random
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from urlab.cli.ros2 import listing
from urlab.config import Ports
from urlab.ros2 import messages
from urlab.ros2.backend import BackendError
from urlab.ros2.bridge import BridgeSettings
from urlab.ros2.qos import RELIABLE
from urlab.ros2.services import SERVICES, SimulationServices
from urlab.ros2.services.entities import LONGEST_NAME, name_filter
from urlab.ros2.services.messages import PACKAGE, ServiceRefused
from urlab_wire import CATALOGUE

OK, FAILED = 1, 4
_, PLAYING, PAUSED, _ = range(4)
TYPES = {one.name: one.type_name for one in SERVICES}


def test_without_a_server_every_service_says_so_in_time(offer: Any, lasting_port: Any) -> None:
    graph = offer(lasting_port())
    begin = time.monotonic()
    for service in ("get_simulation_state", "step_simulation", "get_entities"):
        code, told = graph.refused(service)
        assert (code, "urlab serve" in told) == (FAILED, True)
    assert time.monotonic() - begin < 5
    assert graph.call("get_simulator_features").features.features.size


def test_a_server_that_says_nothing_is_given_up(offer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urlab_client.rpc.GRACE_MS", 100)
    monkeypatch.setitem(CATALOGUE, "hello", msgspec.structs.replace(CATALOGUE["hello"], limit_s=0.1))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        graph = offer(mute.getsockname()[1], timeout_ms=100)
        code, told = graph.refused("get_simulation_state")
    assert (code, "does not answer" in told) == (FAILED, True)


def test_a_server_that_is_restarted_is_joined_again(offer: Any, start: Any, lasting_port: Any) -> None:
    ports = replace(Ports.any(), step=lasting_port())
    server = start(ports=ports)
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


class NoServices:
    """A backend that refuses every service."""

    def service(self, name: str, type_name: str, _serve: Any) -> Any:
        raise BackendError(f"no {type_name} for {name}")


def test_where_a_backend_refuses_them_there_are_no_services_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend: Any = NoServices()
    services = SimulationServices(backend, "tcp://127.0.0.1", 1)
    assert services.names == []
    assert f"no {PACKAGE}/srv/GetSimulatorFeatures for /get_simulator_features" in caplog.text
    services.close()


@pytest.mark.parametrize("wanted", [True, False])
def test_the_list_of_the_command_names_the_services(server: Any, wanted: bool) -> None:
    rows = listing(BridgeSettings(step_port=server.port, services=wanted))
    served = {row["topic"]: row["type"] for row in rows if row["direction"] == "served"}
    assert served == ({f"/{name}": kind for name, kind in TYPES.items()} if wanted else {})
    assert {"topic": "/clock", "type": "rosgraph_msgs/msg/Clock", "direction": "published"} in rows


def test_the_bridge_tells_of_what_was_spawned(bridged: Any, wait_until: Any) -> None:
    bridge, graph = bridged
    ticks = graph.node.listen("/clock", "rosgraph_msgs/msg/Clock", RELIABLE)
    wait_until(lambda: len(ticks) > 20)
    graph.ok("spawn_entity", **graph.spawn_fields("box", "parcel"))
    wait_until(lambda: "/entities/box/pose" in bridge.statistics())
    count = len(ticks)
    wait_until(lambda: len(ticks) > count + 20)
    times = [one.clock.sec * 10**9 + one.clock.nanosec for _, one in ticks]
    assert times == sorted(times), "the clock goes on"


PATIENCE_S = 20.0
HEADER = b"\x00\x01\x00\x00"
WITH_RESULT = [one.name for one in SERVICES if one.work is not None]


def used() -> tuple[int, int]:
    """Descriptors, and threads without those of the server's pools, which come one by one up to a fixed number."""
    threads = [one for one in threading.enumerate() if not one.name.startswith("urlab-op-")]
    return len(list(Path("/proc/self/fd").iterdir())), len(threads)


def longest_silence_s(heard: list[Any]) -> float:
    return float(np.diff([at_s for at_s, _ in heard]).max())


def test_bytes_that_are_no_request_are_answered_with_what_was_expected(
    graph: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for service in WITH_RESULT:
        reply = graph.node.exchange(service, HEADER)
        told = messages.deserialise(reply, f"{TYPES[service]}_Response").result
        assert told.result == FAILED
        assert f"are no {TYPES[service]}_Request" in told.error_message
    assert not [one for one in caplog.records if one.name == "urlab.ros2"], "garbage cannot fill the log"


def test_any_bytes_get_an_answer_and_change_nothing(server: Any, graph: Any) -> None:
    graph.set_state(PAUSED)
    before = server.truth()[1]
    chance = random.Random(6)
    harmless = [name for name in WITH_RESULT if name.startswith("get_")]
    for _ in range(30):
        for service in harmless:
            graph.node.exchange(service, HEADER + chance.randbytes(chance.choice((1, 4, 9, 40, 300))))
    after = server.truth()[1]
    assert (after.time, after.qpos.tolist()) == (before.time, before.qpos.tolist())
    assert graph.state() == PAUSED


def test_clock_and_states_flow_while_requests_come_in_masses_and_nothing_is_left_behind(
    bridged: Any, wait_until: Any
) -> None:
    bridge, graph = bridged
    clock = graph.node.listen("/clock", "rosgraph_msgs/msg/Clock", RELIABLE)
    joints = graph.node.listen("/rover/joint_states", "sensor_msgs/msg/JointState", RELIABLE)
    wait_until(lambda: len(clock) > 20 and len(joints) > 20)
    for service in WITH_RESULT:
        graph.node.exchange(service, HEADER)
    graph.entities()
    graph.state()
    files, threads = used()
    begin, counts = time.monotonic(), (len(clock), len(joints))
    for number in range(100):
        graph.state()
        graph.node.exchange(WITH_RESULT[number % len(WITH_RESULT)], HEADER)
        graph.entities()
    passed_s = time.monotonic() - begin
    told = len(clock) - counts[0], len(joints) - counts[1]
    assert min(told) > 20 * passed_s, f"{told} in {passed_s} s"
    assert max(longest_silence_s(clock[counts[0] :]), longest_silence_s(joints[counts[1] :])) < 2.0
    assert bridge.is_ready
    wait_until(lambda: used()[0] <= files and used()[1] <= threads)


def test_steps_without_end_are_broken_off_when_the_bridge_ends(server: Any, bridged: Any, wait_until: Any) -> None:
    bridge, graph = bridged
    graph.set_state(PAUSED)
    before = server.truth()[1].time
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(graph.refused("step_simulation", steps=2**63)))
    asking.start()
    wait_until(lambda: server.truth()[1].time > before)
    bridge.stop()
    asking.join(PATIENCE_S)
    code, told = answers[0]
    assert (code, "the bridge ends, after" in told) == (FAILED, True)


ENDLESS = [
    "(a+)+$",
    "(.*)*x",
    "(a|aa)+$",
    "(a?){30}x",
    "a?" * 30 + "x",
    ".*" * 6 + "x",
    "(?x)(a+) +$",
    "([a-z]+)*[0-9]",
]


@pytest.mark.parametrize("text", ENDLESS)
def test_a_filter_that_could_take_for_ever_is_refused(text: str) -> None:
    with pytest.raises(ServiceRefused, match="could take too long"):
        name_filter(text)


@pytest.mark.parametrize(
    ("text", "name", "fits"),
    [
        ("", "box", True),
        ("^.o", "rover", True),
        ("(box|crate)_[0-9]+$", "crate_12", True),
        ("(box|crate)?_1", "_1", True),
        (r"\+\*\?\{", "a+*?{", True),
        ("[*+?{)(]+x", "(+x", True),
        ("[]*+)]+x", "a", False),
        (".*?robot.{2,3}$", "my_robot_12", True),
    ],
)
def test_a_filter_searches_names(text: str, name: str, fits: bool) -> None:
    assert bool(name_filter(text).search(name)) is fits


@pytest.mark.parametrize("text", [".*.*.*x", ".+?.+?.+?x", "a*a*a*b", "[ab]*[ac]*[ad]*x"])
def test_the_worst_filter_takes_no_time_to_speak_of(text: str) -> None:
    begin = time.thread_time()
    assert not name_filter(text).search("a" * LONGEST_NAME)
    assert time.thread_time() - begin < 1.0
