"""Live physics in a process of its own, without sockets: how late each step began."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from urlab.app import Server
from urlab.config import ServerConfig
from urlab_wire.enums import StepMode

RESULT_FILE = "lateness.json"
_MS_PER_S = 1000


def main(seconds: float, targets: list[str], folder: Path) -> None:
    """Run live for a while, then write the lateness of the last steps, milliseconds."""
    server = Server(replace(ServerConfig(), project=folder / "project", step_mode=StepMode.LIVE), targets)
    server.begin()
    time.sleep(seconds)
    late_ms = [late * _MS_PER_S for late in list(server.play.manager.loop.lateness_s)]
    server.close()
    part = folder / "lateness.part"
    part.write_text(json.dumps({"late_ms": late_ms}))
    part.replace(folder / RESULT_FILE)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:-1], Path(sys.argv[-1]))
