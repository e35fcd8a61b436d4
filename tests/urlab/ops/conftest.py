"""A dispatcher of a server with an empty level."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from urlab.app import Server
from urlab.config import ServerConfig
from urlab.ops import Dispatcher
from urlab.scene.level import Level


@pytest.fixture
def dispatcher(tmp_path: Path) -> Iterator[Dispatcher]:
    server = Server(ServerConfig(project=tmp_path, play=False))
    server.world.open(Level("empty"))
    yield server.dispatcher
    server.close()


@pytest.fixture
def ask(dispatcher: Dispatcher) -> Callable[..., Any]:
    """One msgpack request of a session that was opened for this test."""
    session_id = None

    def send(op: str, **fields: Any) -> Any:
        request = {"op": op, "session_id": session_id, **fields}
        return msgpack.unpackb(dispatcher.handle(msgpack.packb(request)))

    session_id = send("hello")["session_id"]
    return send
