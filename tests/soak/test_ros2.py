"""`urlab ros2` for long: readers that hang and go, servers that are killed; it keeps its pace and does not grow."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from urlab.child_process import ServerProcess

SECONDS = 60
KILLS = 10
DOMAIN = 102
PATIENCE_S = 20.0
PICTURES = ("/panda/camera/overhead/image_raw", "sensor_msgs/msg/Image")
TOPICS = {
    "clock": ("/clock", "rosgraph_msgs/msg/Clock"),
    "joints": ("/joint_states", "sensor_msgs/msg/JointState"),
    "pictures": PICTURES,
}
READER = """
import sys, time
from urlab.ros2.dds import DdsBackend
from urlab.ros2.qos import PICTURES
backend = DdsBackend(domain=int(sys.argv[1]), node="reader")
backend.subscription(sys.argv[2], sys.argv[3], PICTURES, lambda cdr: print(len(cdr), flush=True))
time.sleep(600)
"""

dds = pytest.importorskip("urlab.ros2.dds", reason="the bridge needs the extra ros2", exc_type=ImportError)


@pytest.fixture(autouse=True)
def only_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROS_DOMAIN_ID", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "CYCLONEDDS_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


class Counts:
    """How many messages of each topic have come to this process."""

    def __init__(self) -> None:
        from urlab.ros2.qos import RELIABLE

        self._turn = threading.Lock()
        self.of = dict.fromkeys(TOPICS, 0)
        self._backend = dds.DdsBackend(domain=DOMAIN, node="counter")
        for name, (topic, type_name) in TOPICS.items():
            self._backend.subscription(topic, type_name, RELIABLE, lambda _cdr, name=name: self._count(name))

    def _count(self, name: str) -> None:
        with self._turn:
            self.of[name] += 1

    def close(self) -> None:
        self._backend.close()


@pytest.fixture
def counts() -> Iterator[Counts]:
    counts = Counts()
    yield counts
    counts.close()


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Callable[[ServerProcess], psutil.Process]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(server: ServerProcess) -> psutil.Process:
        ready, log = tmp_path / "bridge.json", tmp_path / "bridge.log"
        port = server.endpoints["step"].rpartition(":")[2]
        command = [sys.executable, "-m", "urlab", "ros2", "--backend", "dds", "--domain", str(DOMAIN)]
        with log.open("wb") as output:
            words = ["--step-port", port, "--ready-file", str(ready)]
            started.append(subprocess.Popen([*command, *words], stderr=output))
        until(ready.exists)
        assert json.loads(ready.read_text())["pid"] == started[-1].pid
        return psutil.Process(started[-1].pid)

    yield start
    for one in started:
        one.kill()
        one.wait()


def until(holds: Callable[[], object]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up_s, "it did not happen"
        time.sleep(0.02)


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_readers_that_hang_and_go_for_a_minute_change_nothing(tmp_path: Path, counts: Counts, bridge: Any) -> None:
    with ServerProcess("panda", "--project", str(tmp_path)) as server:
        process = bridge(server)
        until(lambda: all(counts.of.values()))
        begin, before, early_mb = time.monotonic(), dict(counts.of), 0.0
        while time.monotonic() - begin < SECONDS:
            hang_for(3.0)
            if not early_mb and time.monotonic() - begin > SECONDS / 3:
                early_mb = process.memory_info().rss / 1e6
        passed_s = time.monotonic() - begin
        rates = {name: (count - before[name]) / passed_s for name, count in counts.of.items()}
        late_mb = process.memory_info().rss / 1e6
    assert rates["joints"] > 180, rates
    assert rates["clock"] > 400, rates
    assert rates["pictures"] > 15, rates
    assert late_mb - early_mb < 15, f"megabytes that the bridge grew by, from {early_mb:.0f}"


def hang_for(seconds: float) -> None:
    """A subscriber of pictures that gets some, hangs, and is killed as it hangs."""
    command = [sys.executable, "-c", READER, str(DOMAIN), *PICTURES]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert int(reader.stdout.readline()) > 640 * 480 * 3
        reader.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        reader.kill()


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_servers_that_are_killed_are_found_again_each_time(tmp_path: Path, counts: Counts, bridge: Any) -> None:
    server = ServerProcess("panda", "--project", str(tmp_path))
    process = bridge(server)
    held: list[tuple[int, int]] = []
    try:
        names = ("step", "state", "control", "info")
        ports = [word for name in names for word in (f"--{name}-port", server.endpoints[name].rpartition(":")[2])]
        for _ in range(KILLS):
            until(lambda: all(counts.of.values()))
            held.append((process.num_fds(), process.num_threads()))
            os.kill(server.process.pid, signal.SIGKILL)
            server.stop()
            server = ServerProcess("panda", "--project", str(tmp_path), *ports)
            counts.of |= dict.fromkeys(TOPICS, 0)
        until(lambda: all(counts.of.values()))
    finally:
        server.stop()
    assert max(held[2:]) <= (held[1][0] + 3, held[1][1] + 1), held
