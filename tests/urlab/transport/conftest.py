"""A transport around a plain function, and sockets to talk to it."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import zmq

from urlab.transport import ZmqRpcServer

Handle = Callable[[bytes], bytes]


@pytest.fixture
def serve() -> Iterator[Callable[..., ZmqRpcServer]]:
    """Starts a transport that answers with ``handle``; frames that begin with b"slow" may take long."""
    with contextlib.ExitStack() as stack:

        def start(handle: Handle, base: str = "tcp://127.0.0.1", port: int = 0) -> ZmqRpcServer:
            server = ZmqRpcServer(base, port, handle, lambda frame: frame.startswith(b"slow"))
            stack.callback(server.stop)
            server.start()
            return server

        yield start


@pytest.fixture
def connect() -> Iterator[Callable[..., "zmq.Socket[Any]"]]:
    """Opens client sockets; nothing that they do outlives the test."""
    with zmq.Context() as context, contextlib.ExitStack() as stack:

        def open_socket(endpoint: str, kind: int = zmq.REQ) -> "zmq.Socket[Any]":
            socket = stack.enter_context(context.socket(kind))
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.RCVTIMEO, 5000)
            socket.connect(endpoint)
            return socket

        yield open_socket


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path is short enough for a Unix socket."""
    with TemporaryDirectory(prefix="u") as folder:
        yield Path(folder)
