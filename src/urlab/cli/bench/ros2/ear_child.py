"""A subscriber in a process of its own: notes when each message of some topics arrives, for a while."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from urlab.cli.bench.ros2.arrivals import Arrival, stamp_ns
from urlab.ros2.dds import DdsBackend
from urlab.ros2.qos import Qos

BEGUN_FILE = "begun.json"
HEARD_FILE = "heard.json"
_POLL_S = 0.005
_SETTLE_S = 0.5
"""After the first message of each topic: what begins to stream is not even at first."""


class Topic(msgspec.Struct):
    """Something to subscribe to; the last three are of its `Qos`."""

    name: str
    type_name: str
    reliable: bool
    transient_local: bool
    depth: int


class Order(msgspec.Struct):
    """What a subscriber is told to do."""

    domain: int
    seconds: float
    topics: list[Topic]


class Heard(msgspec.Struct):
    """What it found: arrivals by topic, between two moments of the wall clock, nanoseconds."""

    begin_ns: int
    end_ns: int
    arrivals: dict[str, list[Arrival]]


def main(order: Order, folder: Path) -> None:
    """Listen, then write what came; the process waits to be ended."""
    backend = DdsBackend(domain=order.domain, node="urlab_bench")
    arrivals: dict[str, list[Arrival]] = {one.name: [] for one in order.topics}
    for one in order.topics:
        qos = Qos(one.reliable, one.transient_local, one.depth)
        backend.subscription(one.name, one.type_name, qos, _noted(arrivals[one.name]))
    while not all(arrivals.values()):
        time.sleep(_POLL_S)
    time.sleep(_SETTLE_S)
    begin_ns = time.time_ns()
    _write(folder / BEGUN_FILE, {})
    time.sleep(order.seconds)
    _write(folder / HEARD_FILE, msgspec.to_builtins(Heard(begin_ns, time.time_ns(), arrivals)))
    while True:
        time.sleep(1.0)


def _noted(arrivals: list[Arrival]) -> Any:
    return lambda cdr: arrivals.append((stamp_ns(cdr), time.time_ns()))


def _write(path: Path, found: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.replace(path)


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Order), Path(sys.argv[2]))
