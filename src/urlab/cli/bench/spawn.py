"""Child processes. Each leads a process group of its own, and none outlives the block that started it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import psutil

from urlab.child_process import ANY_PORTS
from urlab.cli.complaint import CommandError

SERVE = (sys.executable, "-m", "urlab", "serve")
ECHO = (sys.executable, "-m", "urlab.cli.bench.echo_child")
SHM_ECHO = (sys.executable, "-m", "urlab.cli.bench.transports.shm_echo_child")
LATENESS = (sys.executable, "-m", "urlab.cli.bench.lateness_child")

_POLL_S = 0.002
_START_LIMIT_S = 60.0
_END_LIMIT_S = 5.0
_MB = 1e6
_HAS_CPU_CLOCKS = sys.platform == "linux"


class ChildFailed(CommandError):
    """A child process ended, or did not get ready in time; the message has what it said."""


class Child:
    """A running child process."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._name = " ".join(command[1:4])
        self._output = folder / "output.txt"
        self._spawned_at = time.perf_counter()
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self._usage = psutil.Process(self._process.pid)

    @property
    def pid(self) -> int:
        """The process id, which is also that of its group."""
        return self._process.pid

    @property
    def rss_mb(self) -> float:
        """Resident memory, MB."""
        return float(self._usage.memory_info().rss) / _MB

    @property
    def cpu_s(self) -> float:
        """CPU seconds used so far, user and system."""
        if _HAS_CPU_CLOCKS:
            return time.clock_gettime(_cpu_clock(self.pid))
        used = self._usage.cpu_times()
        return float(used.user + used.system)

    def wait_for_file(self, path: Path, limit_s: float = _START_LIMIT_S) -> tuple[dict[str, Any], float]:
        """The JSON object that the child writes to a file, and the seconds from its spawning until it was there."""
        while not path.exists():
            self._check_alive(limit_s)
            time.sleep(_POLL_S)
        took_s = time.perf_counter() - self._spawned_at
        return json.loads(path.read_bytes()), took_s

    def end(self) -> None:
        """End the whole group: politely, then not."""
        try:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_LIMIT_S)
        finally:
            self._signal(signal.SIGKILL)
            self._process.wait(_END_LIMIT_S)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _check_alive(self, limit_s: float) -> None:
        code = self._process.poll()
        late = time.perf_counter() - self._spawned_at > limit_s
        if code is None and not late:
            return
        what = f"ended with code {code}" if code is not None else f"was not ready after {limit_s:g} s"
        said = self._output.read_text(errors="replace").strip()[-2000:]
        raise ChildFailed(f"{self._name} {what}. It said: {said or 'nothing'}")


def _cpu_clock(pid: int) -> int:
    """The clock of another process's CPU time. It counts nanoseconds; psutil knows hundredths of a second only."""
    return ~pid << 3 | 2


class Server(Child):
    """A running `urlab serve` on free ports, with a project of its own."""

    def __init__(self, targets: Sequence[str], folder: Path) -> None:
        ready = folder / "ready.json"
        super().__init__(
            [*SERVE, *targets, *ANY_PORTS, "--project", str(folder / "project"), "--ready-file", str(ready)], folder
        )
        self._ready = ready
        self.step_endpoint = ""
        self.ready_s = 0.0

    def wait_until_ready(self) -> None:
        """Until its ready file is there; `ready_s` is how long that took from spawning."""
        endpoints, self.ready_s = self.wait_for_file(self._ready)
        self.step_endpoint = str(endpoints["step"])


@contextlib.contextmanager
def running(command: Sequence[str]) -> Iterator[tuple[Child, Path]]:
    """A child process and a folder for its files; both are gone afterwards."""
    with TemporaryDirectory(prefix="urlab-bench-") as folder:
        child = Child([*command, folder], Path(folder))
        try:
            yield child, Path(folder)
        finally:
            child.end()


@contextlib.contextmanager
def serving(targets: Sequence[str]) -> Iterator[Server]:
    """A server that is ready."""
    with TemporaryDirectory(prefix="urlab-bench-") as folder:
        server = Server(targets, Path(folder))
        try:
            server.wait_until_ready()
            yield server
        finally:
            server.end()


@contextlib.contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM unwinds as Ctrl-C does, so that no child is left behind."""

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a signal handler
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
