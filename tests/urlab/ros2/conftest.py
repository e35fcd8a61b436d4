"""A DDS backend and a participant of another vendor to talk to; both stay on the loopback, in their own domain."""

import contextlib
import hashlib
import itertools
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from urlab.ros2.dds import DdsBackend

PATIENCE_S = 10.0
PEER_SOURCE = Path(__file__).parent / "peer" / "peer.cpp"
PEER_PACKAGES = "apt-get install g++ libfastrtps-dev"
LOWEST_DOMAIN, DOMAINS = 30, 70
"""Whose ports lie below those that the system gives away."""

_domains = itertools.count(os.getpid() % DOMAINS)

Event = list[str]


@pytest.fixture(autouse=True)
def ros_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine's ROS settings are, nothing leaves it."""
    for name in ("ROS_DOMAIN_ID", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "CYCLONEDDS_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


@pytest.fixture
def domain() -> int:
    """A domain in which nobody is."""
    while True:
        number = LOWEST_DOMAIN + next(_domains) % DOMAINS
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 7400 + 250 * number + 10))
            return number


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


class Peer:
    """The running peer: `do` gives it a command, `event` waits for a line that it said, or has said already."""

    def __init__(self, binary: Path, domain: int, folder: Path) -> None:
        self.process = subprocess.Popen(
            [binary, str(domain), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
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
        with self._more:
            return any(_begins(said, words) for said in self._said)

    def sample(self, reader: str, after: int = 0) -> bytes:
        """The payload that this reader of the peer's got, after that many others."""
        return Path(self.event("sample", reader, after=after)[3]).read_bytes()

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

    def close(self) -> None:
        if self.process.returncode is not None:
            return
        with contextlib.suppress(BrokenPipeError):
            self.do("quit")
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()
            self._thread.join()
            for pipe in filter(None, (self.process.stdin, self.process.stdout)):
                pipe.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._more:
                self._said.append(line.split())
                self._more.notify_all()


def _begins(said: Event, words: tuple[str | None, ...]) -> bool:
    return len(said) >= len(words) and all(word in (None, heard) for word, heard in zip(words, said, strict=False))


@pytest.fixture
def peer(peer_binary: Path, domain: int, tmp_path: Path) -> Iterator[Peer]:
    """Another participant in the domain of the backend; ask for it before the backend, so that it is there first."""
    peer = Peer(peer_binary, domain, tmp_path)
    yield peer
    peer.close()
