"""Child processes: servers, far ends and bare floors. None outlives the block that started it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Self

import psutil

from benchmarks.measuring import BenchmarkError
from urlab.child_process import ANY_PORTS, ChildProcess
from urlab_client import URLabClient

ROOT = Path(__file__).resolve().parents[1]
"""The checkout that these benchmarks belong to."""

_START_LIMIT_S = 60.0
_PIPE_LIMIT_S = 30.0
_MB = 1e6


def environment(source: Path = ROOT) -> dict[str, str]:
    """The environment of a child that imports the packages of that tree, and these benchmarks."""
    return {"MUJOCO_GL": "egl", **os.environ, "PYTHONPATH": f"{source / 'src'}{os.pathsep}{ROOT}"}


class Child(ChildProcess):
    """A child process that leads a process group of its own. Leaving the context ends the group.

    ``{folder}`` in its command is a folder for its files, gone afterwards. ``source`` is the tree whose packages it
    imports, this one unless told otherwise. With a ``ready_file``, ``said`` is what it wrote there, after ``ready_s``.
    """

    def __init__(self, command: Sequence[str], *, ready_file: str | None = None, source: Path = ROOT) -> None:
        self._temporary = TemporaryDirectory(prefix="urlab-bench-")
        self.folder = Path(self._temporary.name)
        words = [word.replace("{folder}", str(self.folder)) for word in command]
        begin_s = time.perf_counter()
        super().__init__(words, environment=environment(source), own_session=True)
        self._usage = psutil.Process(self.pid)
        try:
            self.said = {} if ready_file is None else self.read_file(ready_file)
        except BaseException:
            self.stop()
            raise
        self.ready_s = time.perf_counter() - begin_s

    @property
    def rss_mb(self) -> float:
        """Resident memory, MB."""
        return float(self._usage.memory_info().rss) / _MB

    @property
    def cpu_s(self) -> float:
        """CPU seconds used so far, user and system, from the clock of that process: psutil knows hundredths only."""
        return time.clock_gettime(~self.pid << 3 | 2)

    def read_file(self, name: str, limit_s: float = _START_LIMIT_S) -> dict[str, Any]:
        """The JSON object that the child writes to a file of its folder, once it is there."""
        return self.wait_for_file(self.folder / name, limit_s)

    def stop(self, limit_s: float = 5.0) -> None:
        """End the whole group: politely, then not."""
        super().stop(limit_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._temporary.cleanup()


def write_json(path: Path, found: Mapping[str, Any]) -> None:
    """For children: the file appears whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.replace(path)


def child_module(name: str, *arguments: str) -> list[str]:
    """The command of a module of this package; ``{folder}`` in an argument becomes the child's folder."""
    return [sys.executable, "-m", f"benchmarks.{name}", *arguments]


# -- servers ------------------------------------------------------------------------------------------------------


class Server(Child):
    """A running `urlab serve` on free ports, with a project of its own."""

    def __init__(self, targets: Sequence[str], *, source: Path = ROOT) -> None:
        files = ("--project", "{folder}/project", "--ready-file", "{folder}/ready.json")
        command = [sys.executable, "-m", "urlab", "serve", *targets, *ANY_PORTS, *files]
        super().__init__(command, ready_file="ready.json", source=source)
        self.step_endpoint = str(self.said["step"])


class EvaluationServer(Child):
    """A running `urlab eval serve` with one task and a seed for each of some workers."""

    def __init__(self, task: str, workers: int, *, cameras: bool, source: Path = ROOT) -> None:
        words = ["--port", "0", "--log-level", "warning", "--no-videos", "--cameras" if cameras else "--no-cameras"]
        words += ["--tasks", task, "--episodes", str(workers), "--workers", str(workers)]
        words += ["--ready-file", "{folder}/ready.json", "--results", "{folder}/results"]
        command = [sys.executable, "-m", "urlab", "eval", "serve", *words]
        super().__init__(command, ready_file="ready.json", source=source)
        self.url = str(self.said["url"])


class Bridge(Child):
    """A running `urlab ros2` of that server over plain DDS."""

    def __init__(self, server: Server, domain: int, *, source: Path = ROOT) -> None:
        words = ["--backend", "dds", "--log-level", "warning", "--domain", str(domain)]
        words += ["--step-port", server.step_endpoint.rpartition(":")[2], "--ready-file", "{folder}/ready.json"]
        super().__init__([sys.executable, "-m", "urlab", "ros2", *words], ready_file="ready.json", source=source)


def connect(endpoint: str, step_mode: str = "direct", **options: Any) -> URLabClient:
    """A typed client of a server that was started elsewhere; ``options`` are more of the client's."""
    base, _, port = endpoint.rpartition(":")
    client = URLabClient(base, step_port=int(port), step_mode=step_mode, camera_streams=False, **options)
    try:
        client.discover()
    except BaseException:
        client.close()
        raise
    return client


# -- children that do something small each time they are told to, through a pipe -----------------------------------


class PipeChild:
    """A Python script or module that answers every line of JSON on its stdin with one on its stdout.

    Leaving the context closes its stdin, which ends it.
    """

    def __init__(self, command: Sequence[str], *, source: Path = ROOT) -> None:
        self._name = " ".join(command[1:3])
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(source)
        )

    def send(self, request: Any) -> None:
        """Ask for something; `receive` waits for the answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as gone:
            raise self._ended() from gone

    def receive(self) -> Any:
        """The answer to the oldest request."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended()
        return json.loads(line)

    def ask(self, request: Any) -> Any:
        """Both."""
        self.send(request)
        return self.receive()

    def _ended(self) -> BenchmarkError:
        return BenchmarkError(f"{self._name} ended by itself, with code {self._process.wait(_PIPE_LIMIT_S)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        try:
            self._process.communicate(timeout=_PIPE_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def ask_all(children: Sequence[PipeChild], request: Any) -> None:
    """Ask them at the same time, and wait for all."""
    for child in children:
        child.send(request)
    for child in children:
        child.receive()


# -- this process -------------------------------------------------------------------------------------------------


def own_rss_mb() -> float:
    """Resident memory of this process, MB."""
    return float(psutil.Process().memory_info().rss) / _MB


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
