"""A subscriber of ROS 2 topics in a process of its own: notes when each message arrives, for a while.

``python -m benchmarks.ros2_child ORDER FOLDER``, where ORDER is a `SubscriberOrder` as JSON.
"""

import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.processes import write_json
from urlab.ros2.dds import DdsBackend
from urlab.ros2.qos import Qos

BEGUN_FILE, ARRIVALS_FILE = "begun.json", "arrivals.json"
_POLL_S = 0.005
_SETTLE_S = 0.5
"""After the first message of each topic: what begins to stream is not even at first."""

_STAMP = struct.Struct("<iI")
_CDR_HEADER_BYTES = 4

Arrival = tuple[int, int]
"""A message's stamp and when it arrived, nanoseconds of the simulation and of the wall clock."""


class Topic(msgspec.Struct):
    """Something to subscribe to; the last three are of its `Qos`."""

    name: str
    type_name: str
    reliable: bool = False
    transient_local: bool = False
    depth: int = 10

    @property
    def qos(self) -> Qos:
        """Those three."""
        return Qos(self.reliable, self.transient_local, self.depth)


class SubscriberOrder(msgspec.Struct):
    """What a subscriber is told to do."""

    domain: int
    seconds: float
    topics: list[Topic]


class Arrivals(msgspec.Struct):
    """What it found: arrivals by topic, between two moments of the wall clock, nanoseconds."""

    begin_ns: int
    end_ns: int
    by_topic: dict[str, list[Arrival]]


def stamp_ns(cdr: bytes) -> int:
    """The time that a message begins with, as messages with a header and clocks do."""
    seconds, nanoseconds = _STAMP.unpack_from(cdr, _CDR_HEADER_BYTES)
    return int(seconds) * 10**9 + int(nanoseconds)


def main(order: SubscriberOrder, folder: Path) -> None:
    """Listen, then write what came; the process waits to be ended."""
    backend = DdsBackend(domain=order.domain, node="urlab_bench")
    arrivals: dict[str, list[Arrival]] = {one.name: [] for one in order.topics}
    for one in order.topics:
        backend.subscription(one.name, one.type_name, one.qos, _noting(arrivals[one.name]))
    while not all(arrivals.values()):
        time.sleep(_POLL_S)
    time.sleep(_SETTLE_S)
    begin_ns = time.time_ns()
    write_json(folder / BEGUN_FILE, {})
    time.sleep(order.seconds)
    write_json(folder / ARRIVALS_FILE, msgspec.to_builtins(Arrivals(begin_ns, time.time_ns(), arrivals)))
    while True:
        time.sleep(1.0)


def _noting(arrivals: list[Arrival]) -> Callable[[bytes], None]:
    return lambda cdr: arrivals.append((stamp_ns(cdr), time.time_ns()))


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=SubscriberOrder), Path(sys.argv[2]))
