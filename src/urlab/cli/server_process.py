"""A server in a process of its own, for commands that need one to talk to."""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from urlab.errors import ConfigError

ANY_PORTS = tuple(word for name in ("step", "state", "control", "info", "camera") for word in (f"--{name}-port", "0"))
"""Options for a server that takes free ports, whichever they are."""

_READY_LIMIT_S = 30.0
_STOP_LIMIT_S = 5.0


@dataclass
class ServerProcess:
    """A running `urlab serve`, on free ports; leaving the context ends it."""

    process: "subprocess.Popen[str]"
    endpoints: dict[str, Any]
    seconds_to_ready: float

    @classmethod
    def start(cls, target: str, *options: str) -> "ServerProcess":
        """Start a server and wait until it is ready; ConfigError carries what it said if it is not."""
        with tempfile.TemporaryDirectory(prefix="urlab-ready-") as folder:
            ready = Path(folder) / "ready.json"
            begin = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, "-m", "urlab", "serve", target, *ANY_PORTS, "--log-level", "warning",
                 "--ready-file", str(ready), *options],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            while not ready.exists():
                if process.poll() is not None or time.perf_counter() - begin > _READY_LIMIT_S:
                    process.kill()
                    raise ConfigError(f"the server did not start: {process.communicate()[1].strip()}")
                time.sleep(0.01)
            endpoints = json.loads(ready.read_text(encoding="utf-8"))
            return cls(process, endpoints, time.perf_counter() - begin)

    def stop(self) -> None:
        """End it, kindly at first."""
        self.process.terminate()
        try:
            self.process.communicate(timeout=_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()
