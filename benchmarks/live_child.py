"""Live physics in a process of its own: how late each step began, and how often its cameras draw.

``python -m benchmarks.live_child SECONDS FOLDER TARGET...``; with ``--sockets`` its streams can be listened to.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

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


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
