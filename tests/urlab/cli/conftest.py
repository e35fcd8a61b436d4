"""Real processes of the command line."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from urlab.child_process import ANY_PORTS
from urlab.cli.main import main

START_LIMIT_S = 60.0
STOP_LIMIT_S = 60.0
ARM = """<mujoco model="arm">
  <worldbody><body><joint name="hinge"/><geom size=".1"/></body></worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
</mujoco>"""


@dataclass
class Serving:
    """A `urlab serve` that has written its ready file."""

    process: "subprocess.Popen[str]"
    ready_file: Path
    ready: dict[str, Any]

    @property
    def port(self) -> str:
        return str(self.ready["step"]).rpartition(":")[2]

    @property
    def project(self) -> Path:
        return Path(self.ready["project"])

    def end(self, signal_number: int) -> tuple[int, str]:
        """Send a signal; returns the exit code and what was said on stderr."""
        self.process.send_signal(signal_number)
        said = self.process.communicate(timeout=STOP_LIMIT_S)[1]
        return self.process.returncode, said


def run(*arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    command = [sys.executable, "-m", "urlab", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_LIMIT_S, check=False, **options)
    done.stderr = _without_stalls(done.stderr)
    return done


def _without_stalls(complaints: str) -> str:
    """A machine that stands still for a second is told in the log, and is no fault of a command."""
    return "".join(line for line in complaints.splitlines(keepends=True) if "urlab.watchdog" not in line)


def start(folder: Path, arguments: Sequence[str]) -> Serving:
    """Start a server on a free port, with its project and its ready file in a folder, and wait for that file."""
    ready_file = folder / "ready.json"
    options = [*ANY_PORTS, "--project", str(folder / "project"), "--ready-file", str(ready_file)]
    process = subprocess.Popen(
        [sys.executable, "-m", "urlab", "serve", *options, *arguments], stderr=subprocess.PIPE, text=True
    )
    give_up = time.monotonic() + START_LIMIT_S
    while not (said := _read(ready_file)) or said["pid"] != process.pid:
        if process.poll() is not None or time.monotonic() > give_up:
            process.kill()
            pytest.fail(f"no server: {process.communicate()[1]}")
        time.sleep(0.01)
    return Serving(process, ready_file, said)


def _read(ready_file: Path) -> dict[str, Any]:
    """What it says; nothing while there is none. A server removes the one that a killed server has left."""
    try:
        found: dict[str, Any] = json.loads(ready_file.read_text())
    except FileNotFoundError:
        found = {}
    return found


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Any]:
    """Start servers that the test may end; what is left over is killed."""
    started: list[Serving] = []

    def serve(*arguments: str) -> Serving:
        started.append(start(tmp_path, arguments))
        return started[-1]

    yield serve
    for one in started:
        one.process.kill()
        one.process.communicate()


@pytest.fixture(scope="module")
def demo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One server of the demo level, for all who only look."""
    server = start(tmp_path_factory.mktemp("demo"), ())
    yield server
    server.process.kill()
    server.process.communicate()


@pytest.fixture
def cli() -> Any:
    """Run a command to its end, in a process of its own."""
    return run


class Done(NamedTuple):
    """What a command left that ran in this process."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def cli_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run a command to its end in this process, which saves the start of one."""

    def call(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["urlab", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Done(int(ended.value.code or 0), said.out, _without_stalls(said.err))

    return call


@pytest.fixture
def arm(tmp_path: Path) -> str:
    """A model file with one joint and one actuator."""
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    return str(path)


@pytest.fixture
def broken_mujoco(tmp_path: Path) -> dict[str, str]:
    """An environment in which MuJoCo cannot be imported."""
    package = tmp_path / "broken" / "mujoco"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('half of it is missing')\n")
    return {"PYTHONPATH": str(package.parent)}
