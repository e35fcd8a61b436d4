"""A bridge and subscribers as processes, in a domain of their own that does not leave this machine."""

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from urlab.cli.bench.ros2.ear_child import BEGUN_FILE, HEARD_FILE, Heard, Order
from urlab.cli.bench.spawn import Child, Server, running
from urlab.cli.complaint import CommandError

_BRIDGE = (sys.executable, "-m", "urlab", "ros2", "--backend", "dds", "--log-level", "warning")
_EAR = (sys.executable, "-m", "urlab.cli.bench.ros2.ear_child")
_OTHERS = ("ROS_DOMAIN_ID", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "CYCLONEDDS_URI")
_DOMAINS = range(30, 100)
"""Whose ports lie below those that the system gives away."""

_GRACE_S = 60.0
_HANG_AFTER_S = 0.3


@contextlib.contextmanager
def only_here() -> Iterator[None]:
    """Settings of ROS that keep everything on this machine, for this process and its children."""
    before = dict(os.environ)
    for name in _OTHERS:
        os.environ.pop(name, None)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def free_domain() -> int:
    """A domain in which nobody on this machine is."""
    first = os.getpid()
    for place in range(len(_DOMAINS)):
        number = _DOMAINS[(first + place) % len(_DOMAINS)]
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 7400 + 250 * number + 10))
            return number
    raise CommandError(f"somebody is in every ROS domain from {_DOMAINS[0]} to {_DOMAINS[-1]}")


@contextlib.contextmanager
def bridging(server: Server, domain: int) -> Iterator[Child]:
    """A bridge to that server, once it is ready."""
    with TemporaryDirectory(prefix="urlab-bench-") as folder:
        ready = Path(folder) / "bridge.json"
        port = server.step_endpoint.rpartition(":")[2]
        options = ["--step-port", port, "--domain", str(domain), "--ready-file", str(ready)]
        bridge = Child([*_BRIDGE, *options], Path(folder))
        try:
            bridge.wait_for_file(ready)
            yield bridge
        finally:
            bridge.end()


class Ear:
    """A running subscriber."""

    def __init__(self, child: Child, folder: Path, seconds: float) -> None:
        self._child = child
        self._folder = folder
        self._seconds = seconds

    def wait_until_begun(self) -> None:
        """Until every topic has been heard, and the time that is watched begins."""
        self._child.wait_for_file(self._folder / BEGUN_FILE)

    def heard(self) -> Heard:
        """What it heard, once the time is over."""
        found, _ = self._child.wait_for_file(self._folder / HEARD_FILE, limit_s=self._seconds + _GRACE_S)
        return msgspec.convert(found, Heard)


@contextlib.contextmanager
def listening(order: Order) -> Iterator[Ear]:
    """A subscriber to those topics."""
    with running([*_EAR, msgspec.json.encode(order).decode()]) as (child, folder):
        yield Ear(child, folder, order.seconds)


@contextlib.contextmanager
def hanging(order: Order) -> Iterator[None]:
    """A subscriber that got some messages of every topic and then hangs."""
    with running([*_EAR, msgspec.json.encode(order).decode()]) as (child, folder):
        child.wait_for_file(folder / BEGUN_FILE)
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(_HANG_AFTER_S)
        try:
            yield
        finally:
            os.kill(child.pid, signal.SIGCONT)
