"""``urlab serve --supervise``: a parent process that starts the server again when it dies.

The parent imports neither MuJoCo nor the server, so that what ends the server does not end it. Each start has the same
options, the ports that the first one took, and the level that was open: the server keeps that in a `ResumeFile` for
its successor. A clean end of the server is the end of both; so is a first start that cannot work.
"""

import contextlib
import ctypes
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from urlab.child_process import how_it_ended
from urlab.cli.console import FAILED
from urlab.cli.signals import STOP_SIGNALS
from urlab.errors import UrlabError
from urlab.files import owned_name, remove_ready_file, replacing

if TYPE_CHECKING:
    from urlab.manager import Play

log = logging.getLogger("urlab.cli")

PAUSES_S = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Before the first restart, the second, ... After the last one it gives up."""

HEALTHY_S = 60.0
"""A server that was up for so long is not counted among deaths in a row."""

_WORK = "supervise-"
"""In the names of temporary folders; the next server removes those of supervisors that were killed."""

_POLL_S = 0.02
_PORTS = ("step", "state", "control", "info", "metrics")
_PR_SET_PDEATHSIG = 1


# -- the parent ---------------------------------------------------------------------------------------------------


def supervise(arguments: Sequence[str], ready_file: Path | None) -> int:
    """Run ``urlab ARGUMENTS`` (``serve`` and its options) until it ends for good; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix=f"{owned_name()}{_WORK}") as folder:
        ready = ready_file or Path(folder) / "ready.json"
        resume = Path(folder) / "resume.json"
        options = ["--no-supervise", "--ready-file", str(ready), "--resume-file", str(resume)]
        return Supervisor([sys.executable, "-m", "urlab", *arguments, *options], ready, resume).run()


class Supervisor:
    """Starts ``command``, which is up when it has written ``ready_file``, again and again. For the main thread."""

    def __init__(
        self, command: Sequence[str], ready_file: Path, resume_file: Path, pauses_s: Sequence[float] = PAUSES_S
    ) -> None:
        self._command = list(command)
        self._ready_file, self._resume_file = ready_file, resume_file
        self._pauses_s = pauses_s
        self._ports: dict[str, int] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._signal = 0

    def run(self) -> int:
        """Until the server ends cleanly, or is stopped by a signal, or dies too often; the exit code."""
        deaths = 0
        with _handled(self._forward):
            while True:
                code, up_s = self._run_once()
                if code == 0 or self._stopping.is_set() or (code > 0 and not self._ports):
                    return code if code >= 0 else 128 - code
                deaths = 1 if up_s > HEALTHY_S else deaths + 1
                if deaths > len(self._pauses_s):
                    log.critical("the server %s, %d times in a row: no more attempts", how_it_ended(code), deaths)
                    return FAILED
                pause_s = self._pauses_s[deaths - 1]
                log.error("the server %s; it is started again in %g s", how_it_ended(code), pause_s)
                if self._stopping.wait(pause_s):
                    return 0

    def _run_once(self) -> tuple[int, float]:
        """Start it, and wait for its end: the exit code, and for how many seconds it was up."""
        ending = partial(_end_with, os.getpid())
        self._child = child = subprocess.Popen([*self._command, *self._pinned_ports()], preexec_fn=ending)
        if self._signal:  # it came in between
            child.send_signal(self._signal)
        ready = self._wait_until_ready(child)
        begin_s = time.monotonic()
        code = child.wait()
        remove_ready_file(self._ready_file)
        if not ready:
            self._resume_file.unlink(missing_ok=True)  # perhaps it is the level that it cannot take
            return code, 0.0
        return code, time.monotonic() - begin_s

    def _wait_until_ready(self, child: "subprocess.Popen[bytes]") -> bool:
        while child.poll() is None:
            with contextlib.suppress(OSError, ValueError):
                ready = json.loads(self._ready_file.read_bytes())
                if ready["pid"] == child.pid:
                    self._ports = _ports_of(ready)
                    return True
            time.sleep(_POLL_S)
        return False

    def _pinned_ports(self) -> list[str]:
        """Options for the ports of the first start: clients come back to the same ones."""
        return [word for name, port in self._ports.items() for word in (f"--{name}-port", str(port))]

    def _forward(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of handlers
        self._signal = number
        self._stopping.set()
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)


def _ports_of(ready: dict[str, Any]) -> dict[str, int]:
    """The ports in a ready file; those of cameras go upward from the lowest."""
    ports = {name: _port(ready[name]) for name in _PORTS if ready.get(name)}
    cameras = [_port(one) for one in (ready.get("cameras") or {}).values()]
    return {**ports, "camera": min(cameras)} if cameras else ports


def _port(endpoint: str) -> int:
    return int(endpoint.rpartition(":")[2].partition("/")[0])


def _end_with(parent: int) -> None:
    """In a new process: have it ended (SIGTERM) when its parent is gone, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def _handled(handler: Any) -> Any:
    before = {one: signal.getsignal(one) for one in STOP_SIGNALS}
    for one, old in before.items():
        if old is not signal.SIG_IGN:
            signal.signal(one, handler)
    try:
        yield
    finally:
        for one, old in before.items():
            signal.signal(one, old)


# -- the server's side --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ResumeFile:
    """What a supervised server keeps for its successor: the level that it plays, and whether it plays.

    A server without a supervisor has no ``path`` for it, and keeps nothing.
    """

    path: Path | None

    def read(self, targets: Sequence[str], play: bool) -> tuple[list[str], bool]:
        """The targets and whether to play: what the predecessor kept, else what was given."""
        try:
            kept = json.loads(self.path.read_bytes()) if self.path is not None else {}
            return [str(kept["target"])], bool(kept["play"])
        except (OSError, ValueError, KeyError, TypeError):
            return list(targets), play

    def follow(self, play: "Play") -> None:
        """Keep what is played from now on."""
        path = self.path
        if path is not None:
            play.on_start.append(lambda _: _keep(path, play, playing=True))
            play.on_stop.append(lambda _: _keep(path, play, playing=False))


def _keep(path: Path, play: "Play", *, playing: bool) -> None:
    """Write the level's name; one that is not as its file says, or has none, is written out beside it."""
    from urlab.scene.level_file import level_text

    level, project = play.level, play.world.project
    try:
        target = level.name if level.name in project.level_names() else ""
        if not target or project.open_level(target) != level:
            target = str(path.with_suffix(".toml"))
            with replacing(Path(target)) as file:
                file.write(level_text(level).encode())
        with replacing(path) as file:
            file.write(json.dumps({"target": target, "play": playing}).encode())
    except UrlabError as refused:
        log.warning("a restart would not find the level that plays now: %s", refused.message)
