"""When the server published each state: a bare subscriber of its stream, on a thread."""

import contextlib
import threading
import time
from collections.abc import Iterator

import msgspec
import zmq

from urlab.cli.bench.ros2.arrivals import Arrival
from urlab_wire.ops.stepping import ClockBlock
from urlab_wire.streams import STATE_TOPIC

_POLL_MS = 100
_NS_PER_S = 10**9


class _Times(msgspec.Struct):
    sim_time: ClockBlock
    wall_time: ClockBlock


_decoder = msgspec.msgpack.Decoder(_Times)


class Published:
    """``moments_ns`` are wall clock times of publication, by the stamps of states; ``arrivals`` when they came here."""

    def __init__(self, endpoint: str) -> None:
        self.moments_ns: dict[int, int] = {}
        self.arrivals: list[Arrival] = []
        self._endpoint = endpoint
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._done.set()
        self._thread.join()

    def _listen(self) -> None:
        with zmq.Context() as context, context.socket(zmq.SUB) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.subscribe(STATE_TOPIC.encode())
            socket.connect(self._endpoint)
            while not self._done.is_set():
                if socket.poll(_POLL_MS):
                    self._take(socket.recv_multipart())

    def _take(self, message: list[bytes]) -> None:
        now_ns = time.time_ns()
        times = _decoder.decode(message[-1])
        stamp = _ns(times.sim_time)
        self.moments_ns.setdefault(stamp, _ns(times.wall_time))
        self.arrivals.append((stamp, now_ns))


@contextlib.contextmanager
def watching(endpoint: str) -> Iterator[Published]:
    """Watch the state stream at that endpoint."""
    published = Published(endpoint)
    try:
        yield published
    finally:
        published.close()


def _ns(clock: ClockBlock) -> int:
    return int(clock.sec) * _NS_PER_S + int(clock.nsec)
