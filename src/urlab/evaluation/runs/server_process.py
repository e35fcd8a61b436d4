"""An evaluation server in a process of its own, for a run that has none."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Self

from urlab.evaluation.settings import RunPlan, VideoChoice

READY_LIMIT_S = 60.0
STOP_LIMIT_S = 150.0
"""Longer than the server itself gives its workers to write what they have."""

TOKEN_VARIABLE = "URLAB_EVAL_TOKEN"
_TAIL_BYTES = 4000


class ServerProcessError(Exception):
    """The server did not start, or ended by itself; the message is its own last words."""


class ServerProcess:
    """`urlab eval serve` on a free port with a secret token. Leaving the context ends it and keeps its results.

    It lives in a session of its own, so that Ctrl-C reaches the run alone, which then ends it in order. A run that dies
    in whatever way closes the child's stdin, and the child ends by itself.
    """

    def __init__(self, plan: RunPlan, run_id: str) -> None:
        self.token = secrets.token_urlsafe()
        self._folder = tempfile.TemporaryDirectory(prefix="urlab-eval-")
        self._ready = Path(self._folder.name) / "ready.json"
        self._said: IO[bytes] = (Path(self._folder.name) / "stderr").open("w+b")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "urlab", "eval", "serve", *server_options(plan, run_id, self._ready)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            env={**os.environ, TOKEN_VARIABLE: self.token},
            start_new_session=True,
        )
        try:
            self.url = self._wait()
        except BaseException:
            self.stop()
            raise

    def check(self, patience_s: float = 0.0) -> None:
        """ServerProcessError if it has ended, or does so soon: its connections break a little before it is gone."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
        if self._process.poll() is not None:
            raise ServerProcessError(f"the evaluation server ended by itself: {self._last_words()}")

    def stop(self) -> None:
        """End it, kindly at first."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._said.close()
        with contextlib.suppress(OSError):
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def _wait(self) -> str:
        give_up_s = time.monotonic() + READY_LIMIT_S
        while not self._ready.exists():
            if self._process.poll() is not None:
                raise ServerProcessError(f"the evaluation server did not start: {self._last_words()}")
            if time.monotonic() > give_up_s:
                raise ServerProcessError(f"the evaluation server was not ready within {READY_LIMIT_S:g} s")
            time.sleep(0.01)
        return str(json.loads(self._ready.read_text(encoding="utf-8"))["url"])

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read()[-_TAIL_BYTES:].decode(errors="replace").strip().splitlines()
        told = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return (told or lines or ["it said nothing"])[-1]


def server_options(plan: RunPlan, run_id: str, ready_file: Path) -> list[str]:
    """The options of `urlab eval serve` for a plan."""
    options = ["--port", "0", "--ready-file", str(ready_file), "--log-level", "warning", "--run-id", run_id]
    options += ["--end-with-stdin"]
    options += ["--tasks", ",".join(plan.tasks or ("all",)), "--episodes", str(plan.episodes)]
    options += ["--seed", str(plan.seed), "--workers", str(plan.workers), "--results", str(plan.results)]
    options += ["--cameras" if plan.cameras else "--no-cameras"]
    options += ["--videos" if plan.cameras and plan.videos is not VideoChoice.NONE else "--no-videos"]
    return options + (["--privileged"] if plan.policy.needs_privileged else [])
