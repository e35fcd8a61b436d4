"""Ten subscribers come and go for a minute while the simulation is stepped."""

import random
import time
from typing import Any

import pytest
import zmq

from urlab.child_process import ServerProcess
from urlab_client import URLabClient

SECONDS = 60
SUBSCRIBERS = 10


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_ten_subscribers_come_and_go_without_an_error_or_growth(tmp_path: Any) -> None:
    psutil = pytest.importorskip("psutil")
    dice = random.Random(7)
    with ServerProcess("demo", "--project", str(tmp_path)) as server, zmq.Context() as context:
        usage = psutil.Process(server.process.pid)
        endpoints = [server.endpoints["state"], *server.endpoints["cameras"].values()]
        address, _, port = server.endpoints["step"].rpartition(":")
        with URLabClient(address, step_port=int(port), step_mode="live", camera_streams=False) as client:
            client.discover()
            subscribers: list[Any] = []
            begin, early, steps, heard = time.monotonic(), 0.0, 0, 0
            while time.monotonic() - begin < SECONDS:
                if len(subscribers) == SUBSCRIBERS:
                    subscribers.pop(dice.randrange(SUBSCRIBERS)).close(linger=0)
                subscribers.append(_subscribe(context, dice.choice(endpoints)))
                for _ in range(20):
                    client.step()
                    steps += 1
                heard += sum(_drain(one) for one in subscribers[::2])
                if not early and time.monotonic() - begin > SECONDS / 3:
                    early = usage.memory_info().rss / 1e6
            late = usage.memory_info().rss / 1e6
            for one in subscribers:
                one.close(linger=0)
    assert heard > 1000
    assert steps > 1000
    assert late - early < 30, f"megabytes that the server grew by, from {early:.0f}"


def _subscribe(context: Any, endpoint: str) -> Any:
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, 100)
    socket.subscribe(b"")
    socket.connect(endpoint)
    return socket


def _drain(socket: Any) -> int:
    """Half of them read; the others never do."""
    count = 0
    while socket.poll(0):
        socket.recv_multipart()
        count += 1
    return count
