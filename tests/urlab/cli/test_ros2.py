"""`urlab ros2`, in processes of its own, as a node of a DDS graph that stays on this machine."""

import contextlib
import io
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, Group

from urlab.cli.ros2 import heading, live_table
from urlab.ros2 import messages
from urlab.ros2.dds import DdsBackend
from urlab.ros2.dds.endpoints import DdsWriter
from urlab.ros2.names import request_to_dds
from urlab.ros2.publishers import TopicStatistics
from urlab.ros2.qos import LATCHED, RELIABLE
from urlab.ros2.services.messages import PACKAGE

LIMIT_S = 60.0
END_LIMIT_S = 20.0
DOMAIN = 101
JOINT = "sensor_msgs/msg/JointState"
WITHOUT_ROSBAGS = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "rosbags":
            raise ImportError("no " + name)
sys.meta_path.insert(0, Blocker())
from urlab.cli.main import main
sys.argv = ["urlab", *sys.argv[1:]]
main()
"""


@pytest.fixture(autouse=True)
def only_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "CYCLONEDDS_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Started]:
    """Start `urlab ros2`; it is killed in the end if it is still there."""
    started: list[subprocess.Popen[str]] = []

    def start(port: str, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "urlab", "ros2", "--step-port", port, "--backend", "dds"]
        command += ["--ready-file", str(tmp_path / "bridge.json"), *arguments]
        started.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def until(holds: Callable[[], object]) -> None:
    give_up_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < give_up_s, "it did not happen"
        time.sleep(0.01)


def end(process: "subprocess.Popen[str]") -> tuple[int, str]:
    process.send_signal(signal.SIGTERM)
    try:
        said = process.communicate(timeout=END_LIMIT_S)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        pytest.fail(f"it does not end: {process.communicate()[1]}")
    return process.returncode, said


def test_what_there_would_be_is_listed(demo_server: Any, cli_here: Any):
    done = cli_here("ros2", "--step-port", demo_server.port, "--list", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["topic"]: row for row in json.loads(done.stdout)}
    assert rows["/clock"] == {"topic": "/clock", "type": "rosgraph_msgs/msg/Clock", "direction": "published"}
    assert rows["/panda/joint_states"]["type"] == JOINT
    assert rows["/panda/joint_command"]["direction"] == "heard"
    assert rows["/quadruped/odom"]["type"] == "nav_msgs/msg/Odometry"
    table = cli_here("ros2", "--step-port", demo_server.port, "--list", "--robots", "panda")
    assert "/joint_states" in table.stdout
    assert "quadruped/" not in table.stdout


def services_in(done: Any) -> bool:
    assert done.returncode == 0, done.stderr
    return "served" in {row["direction"] for row in json.loads(done.stdout)}


def test_services_are_for_this_machine_unless_they_are_asked_for(
    demo_server: Any, cli_here: Any, monkeypatch: pytest.MonkeyPatch
):
    listing = ("ros2", "--step-port", demo_server.port, "--list", "--json")
    assert services_in(cli_here(*listing))
    assert not services_in(cli_here(*listing, "--no-services"))
    assert not services_in(cli_here(*listing, "--network"))
    assert services_in(cli_here(*listing, "--network", "--services"))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")
    assert not services_in(cli_here(*listing))
    assert services_in(cli_here(*listing, "--no-network"))
    monkeypatch.delenv("ROS_AUTOMATIC_DISCOVERY_RANGE")
    assert services_in(cli_here(*listing))


@pytest.mark.usefixtures("cold_start")
def test_it_says_how_far_it_reaches(demo_server: Any, bridge: Started, monkeypatch: pytest.MonkeyPatch):
    here = bridge(demo_server.port)
    assert here.stderr is not None
    said = here.stderr.readline()
    assert "on this machine only (--network changes that), where every user can command the robots and control" in said
    assert end(here)[0] == 0
    loopback = '<NetworkInterface address="127.0.0.1"/>'  # no test opens a port to the network
    monkeypatch.setenv("CYCLONEDDS_URI", f"<General><Interfaces>{loopback}</Interfaces></General>")
    beyond = bridge(demo_server.port, "--network")
    assert beyond.stderr is not None
    said = beyond.stderr.readline()
    assert "every machine that reaches this one can command the robots; services are off (--services)" in said
    assert "WARNING" in said
    assert end(beyond)[0] == 0


def test_a_robot_that_is_not_there_is_named_with_those_that_are(demo_server: Any, cli_here: Any):
    done = cli_here("ros2", "--step-port", demo_server.port, "--list", "--robots", "cat")
    assert done.returncode == 0
    assert "there is no robot 'cat'" in done.stderr
    assert "panda" in done.stderr


def test_it_is_a_node_of_the_environment_s_domain_and_a_stuck_server_does_not_hold_up_its_end(
    halt: Any, demo_server: Any, bridge: Started, tmp_path: Path
):
    process = bridge(demo_server.port)
    ready_file = tmp_path / "bridge.json"
    until(ready_file.exists)
    ready = json.loads(ready_file.read_text())
    assert (ready["pid"], ready["backend"]) == (process.pid, "dds")
    assert {"/clock", "/tf", "/panda/joint_states"} <= set(ready["topics"])
    with caller("/get_entities", f"{PACKAGE}/srv/GetEntities") as (node, call):
        heard: dict[str, Any] = {}
        for topic, type_name, qos in (
            ("/clock", "rosgraph_msgs/msg/Clock", RELIABLE),
            ("/panda/joint_states", JOINT, RELIABLE),
            ("/panda/robot_description", "std_msgs/msg/String", LATCHED),
        ):
            node.subscription(topic, type_name, qos, lambda cdr, topic=topic: heard.update({topic: cdr}))
        until(lambda: len(heard) == 3)
        assert "joint1" in messages.deserialise(heard["/panda/joint_states"], JOINT).name
        halt(demo_server.process.pid)
        try:
            call()
            time.sleep(1.5)  # by now bridge and service have asked, and got no answer
            code, said = end(process)
        finally:
            os.kill(demo_server.process.pid, signal.SIGCONT)
    assert code == 0, said
    assert "Traceback" not in said
    assert not ready_file.exists()


def test_without_a_server_it_says_that_it_waits_and_ends_well(bridge: Started):
    process = bridge("9", "--log-level", "info")
    assert process.stderr is not None
    assert "on this machine only" in process.stderr.readline()
    assert "waiting" in process.stderr.readline()
    code, said = end(process)
    assert code == 0
    assert "waiting" not in said
    assert "Traceback" not in said


@contextlib.contextmanager
def caller(service: str, type_name: str) -> Iterator[tuple[DdsBackend, Callable[[], None]]]:
    """A node that calls a service as one on rmw_cyclonedds_cpp does, and waits for nothing."""
    kind = f"{type_name}_Request"
    request = bytes(messages.serialise(messages.make(kind), kind))
    backend = DdsBackend(domain=DOMAIN, node="caller")
    writer = DdsWriter(backend._participant, request_to_dds(service), kind, RELIABLE, "clientid=1.2.3;")
    until(lambda: writer.subscribers)
    yield backend, lambda: writer.publish(request[:4], struct.pack("<Qq", 1, 1), request[4:])
    writer.close()
    backend.close()


def test_a_missing_extra_is_answered_with_the_line_that_installs_it():
    command = [sys.executable, "-c", WITHOUT_ROSBAGS, "ros2", "--backend", "dds"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 1
    assert "pip install 'urlab-headless[ros2]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_rclpy_without_ros_says_what_to_do(cli_here: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "rclpy", None)
    done = cli_here("ros2", "--backend", "rclpy")
    assert done.returncode == 1
    assert done.stderr.count("--backend dds") == 1
    assert "Traceback" not in done.stderr


WRONG = [
    (("--address", "somewhere"), {}, 2, "write tcp://host or ipc:///path"),
    (("--domain", "300"), {}, 2, "less than or equal to 232"),
    (("--qos", "/clock"), {}, 2, "is not TOPIC=WORD"),
    ((), {"ROS_DOMAIN_ID": "mars"}, 1, "error: the ROS domain is a number from 0 to 232, not 'mars'"),
]


@pytest.mark.parametrize(("options", "environment", "code", "why"), WRONG, ids=[one[3] for one in WRONG])
def test_what_can_never_work_ends_at_once_with_the_reason(
    cli_here: Any,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    environment: dict[str, str],
    code: int,
    why: str,
):
    for name, value in (environment | {"COLUMNS": "200"}).items():
        monkeypatch.setenv(name, value)
    done = cli_here("ros2", "--backend", "dds", *options)
    assert done.returncode == code, done.stderr
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_wrong_is_said_across_the_terminal():
    told = "no server listens at tcp://127.0.0.1:9: is `urlab serve` running, and is this its port?"
    said = io.StringIO()
    Console(width=120, file=said).print(Group(heading("dds", told), live_table({})))
    assert f"urlab ros2, dds: waiting: {told}" in said.getvalue().splitlines()[0]


def test_topics_in_use_come_first_in_the_table():
    topics = {
        "/a": TopicStatistics(JOINT, 0),
        "/b": TopicStatistics(JOINT, None, refused=3),
        "/y": TopicStatistics(JOINT, None, rate_hz=5.0),
        "/z": TopicStatistics(JOINT, 1, rate_hz=200.0),
    }
    table = live_table(topics)
    assert list(table.columns[0].cells) == ["/y", "/z", "/a", "/b"]
    assert list(table.columns[3].cells) == ["heard", "1", "0", "heard"]
    assert list(table.columns[4].cells) == ["", "", "", "3"]
