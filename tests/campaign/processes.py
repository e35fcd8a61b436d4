"""The processes that a front attacks: started with limits, watched, and asked afterwards whether they are whole."""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import psutil

from tests.campaign.outcome import Outcome, Plan

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "tests" / "compliance" / "project"
"""Small models and levels; ``arena`` has a bit of everything."""

MEMORY_LIMIT_MB = 1500
ADDRESS_SPACE_BYTES = 12 << 30
START_LIMIT_S = 90.0
LOG_BYTES_PER_S = 20_000
_WATCH_S = 0.05
_ANY_PORTS = tuple(word for name in ("step", "state", "control", "info", "camera") for word in (f"--{name}-port", "0"))
_TRACEBACK = re.compile(r"^(Traceback|\s*[\w.]*(Error|Exception):|Fatal Python error|.*internal_error).*", re.MULTILINE)


class Watched:
    """A process with limits on its memory: one that takes more is ended, and that is a loss.

    Its log (stderr) is kept in ``log``. ``peak_mb`` is the most that it and its children had at a time.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        memory_mb: float = MEMORY_LIMIT_MB,
        environment: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
    ) -> None:
        self.log = log
        self.memory_mb = memory_mb
        self.peak_mb = 0.0
        self.is_too_large = False
        self.begun_s = time.monotonic()
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                command, stdin=stdin, stdout=stdout, stderr=file, cwd=ROOT, env=_environment(environment)
            )
        with contextlib.suppress(OSError):
            resource.prlimit(self.process.pid, resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def _watch(self) -> None:
        with contextlib.suppress(psutil.Error):
            main = psutil.Process(self.pid)
            turn = 0
            children: list[psutil.Process] = []
            while self.process.poll() is None:
                if turn % 10 == 0:
                    children = main.children(recursive=True)
                turn += 1
                self._judge(sum(map(_rss_mb, (main, *children))))
                time.sleep(_WATCH_S)

    def _judge(self, now_mb: float) -> None:
        self.peak_mb = max(self.peak_mb, now_mb)
        if now_mb > self.memory_mb:
            self.is_too_large = True
            self.process.kill()

    @property
    def rss_mb(self) -> float:
        """What it has now, without its children."""
        return _rss_mb(psutil.Process(self.pid))

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def wait_for(self, path: Path) -> dict[str, Any]:
        """The JSON that it writes to a file when it is ready."""
        deadline = time.monotonic() + START_LIMIT_S
        while not path.exists():
            if not self.is_alive or time.monotonic() > deadline:
                raise RuntimeError(f"{self.process.args}: not ready: {self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.01)
        ready: dict[str, Any] = json.loads(path.read_text())
        return ready

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()

    def stop(self, limit_s: float = 20.0) -> int:
        """End it in order; its exit code."""
        if self.is_alive:
            self.process.terminate()
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def judge(self, outcome: Outcome, name: str = "server") -> None:
        """Lose what is wrong with it: it should live, have stayed small, and have logged neither traceback nor much."""
        outcome.check(not self.is_too_large, f"{name}: memory above {self.memory_mb:.0f} MB", self.log)
        if not self.is_too_large:
            outcome.check(self.is_alive, f"{name}: died", f"{self.process.poll()}: {self._last_words()}")
        text = self.log.read_text(errors="replace")
        found = [match.group(0) for match in _TRACEBACK.finditer(text)]
        outcome.check(not found, f"{name}: tracebacks or internal errors in the log", f"{len(found)}: {found[-3:]}")
        allowed = 100_000 + LOG_BYTES_PER_S * (time.monotonic() - self.begun_s)
        outcome.check(len(text) < allowed, f"{name}: an unbounded log", f"{len(text)} bytes")
        outcome.figures[f"{name}: peak MB"] = max(self.peak_mb, float(outcome.figures.get(f"{name}: peak MB", 0)))

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-300:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self.is_alive:
            self.stop()


class UrlabServer(Watched):
    """`urlab serve` on free ports, with a copy of the small project in ``folder``; ``ready`` is its ready file."""

    def __init__(
        self, folder: Path, *options: str, target: str = "arena", memory_mb: float = MEMORY_LIMIT_MB, **more: Any
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.project = folder / "project"
        if not self.project.exists():
            shutil.copytree(PROJECT, self.project)
        ready_file = folder / "ready.json"
        ready_file.unlink(missing_ok=True)
        words = ["serve", target, *_ANY_PORTS, "--project", str(self.project), "--ready-file", str(ready_file)]
        super().__init__([sys.executable, "-m", "urlab", *words, *options], folder / "log", memory_mb=memory_mb, **more)
        try:
            self.ready = self.wait_for(ready_file)
        except BaseException:
            self.process.kill()
            raise

    @property
    def endpoint(self) -> str:
        """Where requests go."""
        return str(self.ready["step"])

    @property
    def address(self) -> tuple[str, int]:
        """The same for plain sockets."""
        host, _, port = self.endpoint.removeprefix("tcp://").rpartition(":")
        return host, int(port)

    def held(self) -> dict[str, int]:
        """Descriptors, threads and child processes."""
        process = psutil.Process(self.pid)
        return {
            "descriptors": process.num_fds(),
            "threads": process.num_threads(),
            "processes": len(process.children(recursive=True)),
        }


@contextlib.contextmanager
def two_servers(
    plan: Plan, folder: Path, *options: str, target: str = "arena"
) -> Iterator[tuple[UrlabServer, UrlabServer]]:
    """The server that is attacked, and another one; in the short form they are the same."""
    with UrlabServer(folder / "here", *options, target=target) as here:
        if plan.short:
            yield here, here
        else:
            with UrlabServer(folder / "elsewhere", *options, target=target) as elsewhere:
                yield here, elsewhere


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one front; user folders of its processes are in it as well."""
    with tempfile.TemporaryDirectory(prefix="urlab-campaign-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def run_part(module: str, *words: object, folder: Path, limit_s: float, memory_mb: float = MEMORY_LIMIT_MB) -> Outcome:
    """``python -m tests.campaign.MODULE WORDS``, whose last line is an outcome; that it dies or hangs is a loss."""
    outcome = Outcome()
    log = folder / f"{module.rpartition('.')[2]}.log"
    command = [sys.executable, "-m", f"tests.campaign.{module}", *map(str, words)]
    with Watched(command, log, memory_mb=memory_mb, stdout=subprocess.PIPE) as part:
        try:
            told = part.process.communicate(timeout=limit_s)[0].decode()
        except subprocess.TimeoutExpired:
            part.kill()
            outcome.lose(f"{module}: hung", words)
            return outcome
    if part.process.returncode != 0 or not told.strip():
        reason = "took too much memory" if part.is_too_large else "died"
        outcome.lose(f"{module}: {reason}", f"{part.process.returncode}: {log.read_text(errors='replace')[-500:]}")
    else:
        outcome.add(json.loads(told.splitlines()[-1]))
    outcome.figures[f"{module}: peak MB"] = part.peak_mb
    return outcome


def settles(measure: Any, most: Mapping[str, int], limit_s: float = 60.0) -> dict[str, int]:
    """What is left above ``most`` after waiting for it to go; empty when nothing is."""
    deadline = time.monotonic() + limit_s
    while True:
        left = {name: count for name, count in measure().items() if count > most[name]}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def _rss_mb(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss) / 1e6
    except psutil.Error:
        return 0.0


def _environment(more: Mapping[str, str] | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("URLAB_")}
    source = os.pathsep.join(filter(None, (str(ROOT / "src"), kept.get("PYTHONPATH", ""))))
    return {**kept, "PYTHONPATH": source, "PYTHONUNBUFFERED": "1", **(more or {})}
