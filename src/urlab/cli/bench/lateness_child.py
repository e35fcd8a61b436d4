"""Live physics in a process of its own: how late each step began. With ``--sockets`` its streams can be listened to."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab_wire.enums import StepMode

RESULT_FILE = "lateness.json"
ENDPOINTS_FILE = "endpoints.json"
_SOCKETS = "--sockets"
_SETTLE_S = 1.0
"""For subscribers to come, and for the first pictures to be drawn."""

_MS_PER_S = 1000


def main(seconds: float, words: list[str], folder: Path) -> None:
    """Run live for a while, then write the lateness of the steps, milliseconds, and the real-time factor."""
    targets = [word for word in words if word != _SOCKETS]
    config = replace(ServerConfig(), project=folder / "project", step_mode=StepMode.LIVE, ports=Ports.any())
    server = Server(config, targets)
    server.begin()
    if _SOCKETS in words:
        server.open_sockets()
        _write(folder / ENDPOINTS_FILE, server.endpoints())
        time.sleep(_SETTLE_S)
    found = _watch(server, seconds)
    server.close()
    _write(folder / RESULT_FILE, found)


def _watch(server: Server, seconds: float) -> dict[str, Any]:
    engine, loop = server.play.manager.engine, server.play.manager.loop
    wall, simulated = time.perf_counter(), engine.sim_time
    loop.lateness_s.clear()
    time.sleep(seconds)
    factor = (engine.sim_time - simulated) / (time.perf_counter() - wall)
    return {"late_ms": [late * _MS_PER_S for late in list(loop.lateness_s)], "real_time_factor": factor}


def _write(path: Path, found: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.replace(path)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:-1], Path(sys.argv[-1]))
