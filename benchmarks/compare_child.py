"""One source tree's side of a comparison: clients of that tree, each of which makes a burst of steps when it is asked.

It runs with PYTHONPATH at the tree that is measured, and uses only what every tree has: `urlab.launch` and the public
client. ``python -P compare_child.py FOLDER`` obeys lines of JSON on stdin: ``open`` a subject, ``burst`` it, ``pause``.
"""

import json
import logging
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import urlab
from urlab_client import URLabClient

_WARM_UP = 20
_LOG: list[str] = []


class _Collected(logging.Handler):
    """A client that cannot use shared memory goes on over sockets and logs a warning: here that is an error."""

    def emit(self, record: logging.LogRecord) -> None:
        _LOG.append(record.getMessage())


def open_client(order: dict[str, Any], folder: Path) -> URLabClient:
    """An embedded server where there is no endpoint, else a client of a running one."""
    if "endpoint" not in order:
        project = folder / f"project-{order['subject']}"
        return urlab.launch(order["targets"], project=project, render_profile="fast")
    base, _, port = order["endpoint"].rpartition(":")
    # An operator changes no mode: beside the bridge physics stays live. One that says direct subscribes to nothing.
    options = {"step_mode": "direct", "operator": order["subject"] == "ros2"}
    transport = "shm" if order["subject"] == "shm" else "zmq"
    client = URLabClient(base, step_port=int(port), transport=transport, camera_streams=False, **options)
    client.discover()
    return client


def burst(client: URLabClient, count: int, camera: str | None) -> float:
    """The median of ``count`` steps from the start on, microseconds."""
    client.reset()
    cameras: Any = False if camera is None else {camera: "sync"}
    durations = []
    for number in range(min(_WARM_UP, count) + count):
        begin = time.perf_counter_ns()
        client.step(1, include_cameras=cameras)
        if number >= min(_WARM_UP, count):
            durations.append(time.perf_counter_ns() - begin)
    return statistics.median(durations) / 1e3


def main(folder: Path) -> None:
    """Obey until stdin ends."""
    logging.getLogger().addHandler(_Collected(logging.WARNING))
    clients: dict[str, URLabClient] = {}
    for line in sys.stdin:
        order = json.loads(line)
        subject: str = order["subject"]
        answer: dict[str, Any] = {"urlab": urlab.__file__}
        if order["do"] == "open":
            clients[subject] = open_client(order, folder)
        elif order["do"] == "pause":
            clients[subject].runtime.set_paused(order["paused"])
        else:
            answer = {"us": burst(clients[subject], order["count"], order.get("camera"))}
        print(json.dumps({**answer, "log": _LOG}), flush=True)
    for client in clients.values():
        client.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
