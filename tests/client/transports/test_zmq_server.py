"""A ZeroMQ client of a server in a process of its own, which ends, stands still, or takes its time."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from urlab_client import URLabTimeoutError, ZmqTransport
from urlab_client.errors import ServerEndedError

SERVER = """# preloaded
import sys, time
from types import SimpleNamespace
from urlab.transport import ZmqRpcServer

class Handler:
    def read(self, frame):
        return SimpleNamespace(frame=frame, takes_long=True, pool="simulation", key=None, holder=None)
    def serve(self, call):
        print("begun", flush=True)
        time.sleep(3600 if call.frame == b"for ever" else 0.4)
        return call.frame.upper()
    serve_now = serve

    def let_go(self, session_id: str) -> None: ...

server = ZmqRpcServer("tcp://127.0.0.1", int(sys.argv[1]), Handler())
server.start()
print(server.endpoint, flush=True)
sys.stdin.read()
"""
HOUR_MS = 3_600_000


class Process:
    """A server whose requests take 0.4 s, or for ever."""

    def __init__(self, port: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.endpoint = self.line()
        self.pid = self._process.pid

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def start(lasting_port: Callable[[], int]) -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def make(port: int | None = None) -> Process:
        made.append(Process(port or lasting_port()))
        return made[-1]

    yield make
    for process in made:
        process.kill()


def failure_of(transport: ZmqTransport, frame: bytes) -> tuple[threading.Thread, list[Exception]]:
    """Ask, on another thread, for what will fail."""
    raised: list[Exception] = []

    def ask() -> None:
        try:
            transport.request(frame, timeout_ms=HOUR_MS)
        except Exception as failed:  # noqa: BLE001 - it belongs to the test
            raised.append(failed)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread, raised


def test_a_server_that_dies_while_it_serves_is_noticed_at_once_however_long_the_request_may_take(start: Any) -> None:
    process = start()
    transport = ZmqTransport(process.endpoint)
    asking, raised = failure_of(transport, b"for ever")
    assert process.line() == "begun"
    process.kill()
    asking.join(60)
    assert not asking.is_alive(), "it waits for its whole time limit"
    assert isinstance(raised[0], ServerEndedError)
    assert "urlab serve" in str(raised[0])
    transport.close()


def test_a_server_that_died_between_two_requests_is_noticed_at_the_next(start: Any) -> None:
    process = start()
    transport = ZmqTransport(process.endpoint, connect_timeout_ms=HOUR_MS)
    assert transport.request(b"a", timeout_ms=HOUR_MS) == b"A"
    process.kill()
    for _ in range(2):
        asking, raised = failure_of(transport, b"b")
        asking.join(60)
        assert not asking.is_alive(), "it waits for a server to come"
        assert isinstance(raised[0], URLabTimeoutError)
        assert not raised[0].connected
    transport.close()


def test_a_hello_waits_for_a_server_that_comes_back(start: Any) -> None:
    process = start()
    port = int(process.endpoint.rpartition(":")[2])
    transport = ZmqTransport(process.endpoint, connect_timeout_ms=HOUR_MS)
    assert transport.request(b"a", timeout_ms=HOUR_MS) == b"A"
    process.kill()
    replies: list[bytes] = []
    asking = threading.Thread(target=lambda: replies.append(transport.request(b"hello", timeout_ms=HOUR_MS)))
    asking.start()
    start(port)
    asking.join(60)
    assert replies == [b"HELLO"]
    transport.close()


def test_a_server_that_stands_still_for_a_while_is_not_taken_for_dead(start: Any, halt: Callable[[int], None]) -> None:
    process = start()
    transport = ZmqTransport(process.endpoint)
    assert transport.request(b"a", timeout_ms=HOUR_MS) == b"A"
    process.line()
    halt(process.pid)
    asked_s = time.monotonic()
    threading.Timer(2.0, os.kill, (process.pid, signal.SIGCONT)).start()
    assert transport.request(b"b", timeout_ms=HOUR_MS) == b"B"
    assert time.monotonic() - asked_s > 1.0
    transport.close()
