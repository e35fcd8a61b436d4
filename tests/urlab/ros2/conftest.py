"""A DDS backend, a participant of another vendor to talk to, and whole processes of server and bridge.

All of them stay on the loopback, in their own domain.
"""

import contextlib
import hashlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from urlab.child_process import ServerProcess
from urlab.ros2.dds import DdsBackend
from urlab_client import URLabClient

PATIENCE_S = 30.0
START_S = 60.0
"""A process may take so long to start."""

PEER_SOURCE = Path(__file__).parent / "peer" / "peer.cpp"
PEER_PACKAGES = "apt-get install g++ libfastrtps-dev"
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
DOMAINS = range(30, 100)[WORKER::WORKERS]
"""Whose ports lie below those that the system gives away; tests that run side by side have domains of their own."""

_domains = itertools.count(os.getpid())

UNSET = ("ROS_DOMAIN_ID", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "CYCLONEDDS_URI", "ROS_DISTRO")
ONLY_HERE = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}

Event = list[str]


@pytest.fixture(autouse=True)
def ros_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine's ROS settings are, nothing leaves it."""
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    for name, value in ONLY_HERE.items():
        monkeypatch.setenv(name, value)


def free_domain() -> int:
    """A domain without participants."""
    while True:
        number = DOMAINS[next(_domains) % len(DOMAINS)]
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 7400 + 250 * number + 10))
            return number


@pytest.fixture
def domain() -> int:
    """A domain without participants."""
    return free_domain()


@pytest.fixture
def backend(domain: int) -> Iterator[DdsBackend]:
    backend = DdsBackend(domain=domain)
    yield backend
    backend.close()


@pytest.fixture(scope="session")
def wait_until() -> Callable[[Callable[[], object]], None]:
    """Wait for something of which there is no event."""

    def wait(holds: Callable[[], object]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until, "it did not happen"
            time.sleep(0.002)

    return wait


@pytest.fixture(scope="session")
def peer_binary(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The peer, compiled once for this version of its source."""
    if shutil.which("g++") is None:
        pytest.skip(f"the peer of another vendor needs a compiler and Fast DDS: {PEER_PACKAGES}")
    cache: Any = getattr(pytestconfig, "cache", None)
    folder = cache.mkdir("urlab-ros2-peer") if cache else tmp_path_factory.getbasetemp()
    binary = Path(folder) / f"peer-{hashlib.sha256(PEER_SOURCE.read_bytes()).hexdigest()[:16]}"
    if not binary.exists():
        _compile(binary)
    return binary


def _compile(binary: Path) -> None:
    fresh = binary.with_suffix(f".{os.getpid()}")
    command = ["g++", "-std=c++14", str(PEER_SOURCE), "-o", str(fresh), "-lfastrtps", "-lfastcdr"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "fastdds/dds/domain/DomainParticipant.hpp: No such file" in done.stderr:
        pytest.skip(f"the peer of another vendor needs Fast DDS: {PEER_PACKAGES}")
    assert done.returncode == 0, done.stderr
    fresh.rename(binary)


class Counted(NamedTuple):
    """What a counting reader got: how many samples, how many a second, and for how long none came, at most."""

    samples: int
    rate_hz: float
    silence_s: float


class Peer:
    """The running peer: `do` gives it a command, `event` waits for a line that it said, or has said already."""

    def __init__(self, binary: Path, domain: int, folder: Path) -> None:
        self.process = subprocess.Popen(
            [binary, str(domain), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._is_leaving = self._is_closed = False
        self._folder = folder
        self._said: list[Event] = []
        self._more = threading.Condition()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self.event("ready")

    def do(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def event(self, *words: str | None, after: int = 0) -> Event:
        """The first line that begins with those words (None is any word) after that many lines like it."""
        found: list[Event] = []

        def there() -> bool:
            found[:] = [said for said in self._said if _begins(said, words)][after:]
            return bool(found)

        with self._more:
            assert self._more.wait_for(there, PATIENCE_S), f"the peer never said {words}, but {self._said}"
        return found[0]

    def has_said(self, *words: str | None) -> bool:
        return self._times(*words) > 0

    def sample(self, reader: str, after: int = 0) -> bytes:
        """The payload that this reader of the peer's got, after that many others."""
        return Path(self.event("sample", reader, after=after)[3]).read_bytes()

    def counted(self, reader: str, seconds: float) -> "Counted":
        """What this counting reader of the peer's gets from now on, for so long."""
        asked = self._times("counted", reader)
        self.do("counted", reader)
        self.event("counted", reader, after=asked)
        time.sleep(seconds)
        self.do("counted", reader)
        _, _, count, passed_s, silence_s = self.event("counted", reader, after=asked + 1)
        return Counted(int(count), int(count) / float(passed_s), float(silence_s))

    def _times(self, *words: str | None) -> int:
        with self._more:
            return sum(_begins(said, words) for said in self._said)

    def write(self, writer: str, payload: bytes) -> None:
        file = self._folder / f"{writer}-{time.monotonic_ns()}.out"
        file.write_bytes(payload)
        self.do("write", writer, file)

    def write_until(self, holds: Callable[[], object], writer: str, payload: bytes) -> None:
        """Write that until it has an effect: nothing tells when a reader of ours has matched the writer."""
        until = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until, "it had no effect"
            self.write(writer, payload)
            time.sleep(0.02)

    def leave(self) -> None:
        """Let it end, in its own time: Fast DDS takes a fifth of a second. `close` waits for that."""
        if self.process.poll() is None and not self._is_leaving:
            self._is_leaving = True
            self.process.send_signal(signal.SIGCONT)
            with contextlib.suppress(BrokenPipeError):
                self.do("quit")

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.leave()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()
            self._thread.join()
            for pipe in filter(None, (self.process.stdin, self.process.stdout)):
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._more:
                self._said.append(line.split())
                self._more.notify_all()


def _begins(said: Event, words: tuple[str | None, ...]) -> bool:
    return len(said) >= len(words) and all(word in (None, heard) for word, heard in zip(words, said, strict=False))


@pytest.fixture(scope="session")
def start_peer(peer_binary: Path) -> Iterator[Callable[[int, Path], Peer]]:
    """Starts a peer in a domain, with a folder for its files; those that still run in the end are closed."""
    started: list[Peer] = []

    def start(domain: int, folder: Path) -> Peer:
        started.append(Peer(peer_binary, domain, folder))
        return started[-1]

    yield start
    for peer in started:
        peer.close()


@pytest.fixture
def peer(start_peer: Callable[[int, Path], Peer], domain: int, tmp_path: Path) -> Iterator[Peer]:
    """Another participant in the domain of the backend; ask for it before the backend, so that it is there first."""
    peer = start_peer(domain, tmp_path)
    yield peer
    peer.leave()


class BridgeProcess:
    """A running `urlab ros2`, once a scene is bridged."""

    def __init__(self, step_port: int, domain: int, folder: Path, *options: str) -> None:
        self._log = folder / "bridge.log"
        self.ready_file = ready = folder / "bridge.json"
        command = [sys.executable, "-m", "urlab", "ros2", "--backend", "dds", "--domain", str(domain)]
        command += ["--step-port", str(step_port), "--ready-file", str(ready), *options]
        environment = {name: value for name, value in os.environ.items() if name not in UNSET} | ONLY_HERE
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        until = time.monotonic() + START_S
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                self.close()
                pytest.fail(f"no bridge: {self.said}")
            time.sleep(0.01)

    @property
    def said(self) -> str:
        """Its log, as one line: where a line is broken depends on the length of names."""
        return " ".join(self._log.read_text().split())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


class World:
    """A server in live mode, a bridge to it, and a participant of another vendor: three processes.

    ``driver`` is a client of that server, which holds the session.
    """

    def __init__(
        self,
        target: str,
        folder: Path,
        start_peer: Callable[[int, Path], Peer],
        options: tuple[str, ...],
        bridge_options: tuple[str, ...],
    ) -> None:
        self.domain = free_domain()
        self._options = (target, "--project", str(folder / "project"), *options)
        with contextlib.ExitStack() as undo:
            self.server = ServerProcess(*self._options)
            undo.callback(lambda: self.server.stop())
            self.peer = start_peer(self.domain, folder)
            undo.callback(self.peer.close)
            self.bridge = BridgeProcess(self.step_port, self.domain, folder, *bridge_options)
            undo.callback(self.bridge.close)
            self._undo = undo.pop_all()

    @property
    def step_port(self) -> int:
        return int(self.server.endpoints["step"].rpartition(":")[2])

    def connect(self, **options: Any) -> URLabClient:
        """A client that holds the session, in live mode."""
        client = URLabClient("tcp://127.0.0.1", step_port=self.step_port, step_mode="live", **options)
        self._undo.callback(client.close)
        client.discover()
        return client

    def kill_server(self) -> None:
        """End it without warning."""
        self.server.kill()
        self.server.stop()

    def start_server_again(self) -> None:
        """On the ports that it had."""
        self.server = ServerProcess(*self._options)

    def close(self) -> None:
        self._undo.close()


@pytest.fixture(scope="module")
def start_world(
    start_peer: Callable[[int, Path], Peer],
    tmp_path_factory: pytest.TempPathFactory,
    lasting_port: Callable[[], int],
) -> Iterator[Callable[..., World]]:
    """Starts worlds; each ends with the module."""
    names = ("step", "state", "control", "info", "camera")
    with contextlib.ExitStack() as undo:

        def start(target: str, *options: str, bridge: tuple[str, ...] = ()) -> World:
            ports = (word for name in names for word in (f"--{name}-port", str(lasting_port())))
            world = World(target, tmp_path_factory.mktemp("world"), start_peer, (*ports, *options), bridge)
            undo.callback(world.close)
            return world

        yield start
