"""Live physics in a process of its own: how late each step began, and how often its cameras draw.

``python -m benchmarks.live_child SECONDS FOLDER TARGET...``; with ``--sockets`` its streams can be listened to.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import write_json
from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab_wire.enums import StepMode

RESULT_FILE, ENDPOINTS_FILE = "lateness.json", "endpoints.json"
_SOCKETS = "--sockets"
_SETTLE_S = 1.0
"""For subscribers to come, and for the first pictures to be drawn."""


def main(seconds: float, folder: Path, words: list[str]) -> None:
    """Run live for a while, then write the lateness of the steps, milliseconds, and the real-time factor."""
    targets = [word for word in words if word != _SOCKETS]
    config = replace(ServerConfig(), project=folder / "project", step_mode=StepMode.LIVE, ports=Ports.any())
    server = Server(config, targets)
    server.begin()
    if _SOCKETS in words:
        server.open_sockets()
        write_json(folder / ENDPOINTS_FILE, server.endpoints())
        time.sleep(_SETTLE_S)
    engine, loop = server.play.manager.engine, server.play.manager.loop
    wall, simulated = time.perf_counter(), engine.sim_time
    loop.lateness_s.clear()
    time.sleep(seconds)
    factor = (engine.sim_time - simulated) / (time.perf_counter() - wall)
    late_ms = [1000 * late for late in list(loop.lateness_s)]
    server.close()
    write_json(folder / RESULT_FILE, {"late_ms": late_ms, "real_time_factor": factor})


def lateness(late_ms: Sequence[float]) -> dict[str, Any]:
    """How long after its due time each live step began, milliseconds; ``quantiles_ms`` has percentiles 0 to 100."""
    quantiles = np.percentile(np.asarray(late_ms, dtype=np.float64), range(101)).tolist()
    return {
        "steps": len(late_ms),
        "p50_ms": quantiles[50],
        "p99_ms": quantiles[99],
        "max_ms": quantiles[100],
        "quantiles_ms": quantiles,
    }


def lateness_words(found: dict[str, Any]) -> str:
    """A line of it, for people."""
    return f"late by p50 {found['p50_ms']:.2f}, p99 {found['p99_ms']:.2f}, max {found['max_ms']:.2f} ms"


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
