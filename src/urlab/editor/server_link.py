"""The server as the editor knows it: a client that only reads, one that changes the world, and one for pictures.

All stay with the server through restarts. The one that changes things is an operator: it never takes the place of the
client that drives. They have a lock each, so that neither a long edit nor a picture holds up the view.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Self, TypeVar

from urlab_client import URLabClient
from urlab_client.following import ServerFollower
from urlab_client.transports import Transport, ZmqTransport

Result = TypeVar("Result")

FAILURES = (RuntimeError, LookupError, ValueError, OSError)
"""What a request may raise: the server's errors, and the client's own checks."""


def reason(failed: BaseException) -> str:
    """Why a request failed, for people: without the op and the code, which the log of the page has."""
    return str(getattr(failed, "message", "") or failed)


class ServerLink:
    """Any thread may call it. ``connect`` gives a transport that leads to the server, each time another."""

    def __init__(self, connect: Callable[[], Transport]) -> None:
        common: dict[str, Any] = {"step_mode": "auto", "fetch_model": False, "camera_streams": False}
        self._reader = ServerFollower(URLabClient(observer=True, transport=connect(), **common))
        self._writer = ServerFollower(URLabClient(operator=True, transport=connect(), **common))
        self._drawer = ServerFollower(URLabClient(observer=True, transport=connect(), **common))
        self._reading, self._writing, self._drawing = threading.Lock(), threading.Lock(), threading.Lock()
        self._outdated: set[int] = set()
        """Clients, by their `id`, whose robots and cameras are those of a scene that plays no more."""

    @classmethod
    def at(cls, endpoint: str) -> Self:
        """To the server at an endpoint of ZeroMQ. It reads views, and so does not subscribe to the stream of states."""
        return cls(partial(ZmqTransport, endpoint, follow_handshake=False))

    def read(self, work: Callable[[URLabClient], Result]) -> Result:
        """What ``work`` returns, given the client that only reads."""
        with self._reading:
            return self._call(self._reader, work)

    def change(self, work: Callable[[URLabClient], Result]) -> Result:
        """What ``work`` returns, given the client that changes the world."""
        with self._writing:
            return self._call(self._writer, work)

    def draw(self, work: Callable[[URLabClient], Result]) -> Result:
        """What ``work`` returns, given a client that only reads and may wait for pictures."""
        with self._drawing:
            return self._call(self._drawer, work)

    def note_scene(self) -> None:
        """Another scene plays: each client shakes hands before its next request, and so knows its robots."""
        self._outdated = {id(self._reader), id(self._writer), id(self._drawer)}

    def close(self) -> None:
        """Leave the server; what the editor held (pushes, drags) is released with its session."""
        self._reader.close()
        self._writer.close()
        self._drawer.close()

    def _call(self, follower: ServerFollower[URLabClient], work: Callable[[URLabClient], Result]) -> Result:
        if id(follower) in self._outdated:
            follower.handshake()
            self._outdated.discard(id(follower))
        return follower.call(work)
