"""The server that is watched, as an observer sees it."""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from urlab.cli.options import connected
from urlab_client import PIEState, URLabCameraView, URLabClient, URLabRPCError, ZmqTransport
from urlab_client.following import ServerFollower
from urlab_client.transports.base import DEFAULT_STATE_PORT, stream_endpoint
from urlab_client.transports.zmq import endpoint
from urlab_client.types import PIEStatus

POLL_S = 1.0
_ANSWER_LIMIT_MS = 500
"""How long a question waits for an answer: the screen must not freeze."""

Tell = Callable[[str], None]
"""Takes a sentence for people."""


@dataclass(frozen=True, slots=True)
class WatchedAddress:
    """Where the server is. ``state_port`` None: as it tells. ``timeout_s`` is how long to wait for it at first."""

    address: str
    step_port: int
    state_port: int | None
    timeout_s: float


@contextmanager
def watched(where: WatchedAddress, tell: Tell) -> "Iterator[WatchedServer]":
    """A server that has just answered; URLabTimeoutError when there is none in time."""
    with connected(where.address, where.step_port, where.timeout_s):
        pass
    with closing(WatchedServer(where, tell)) as server:
        server.poll()
        yield server


class WatchedServer(ServerFollower[URLabClient]):
    """Asks the server how it is, and knows its scene: robots, cameras, and where things stream.

    Its session is an observer's: it takes nothing over and drives nothing. The monitor that finds another scene in its
    streams sets ``is_stale``. For one thread.
    """

    def __init__(self, where: WatchedAddress, tell: Tell) -> None:
        self._where = where
        self._tell = tell
        self._next_poll_s = 0.0
        self._warned_of: set[str] = set()
        self._transport = ZmqTransport(endpoint(where.address, where.step_port), connect_timeout_ms=_ANSWER_LIMIT_MS)
        # In direct mode a client listens to no stream by itself; what is listened to is decided here.
        super().__init__(
            URLabClient(
                transport=self._transport, observer=True, step_mode="direct", local_model=False,
                mujoco_version_check=False, rcv_timeout_ms=_ANSWER_LIMIT_MS,
            )
        )  # fmt: skip

    @property
    def endpoint(self) -> str:
        """Where requests go."""
        return self._transport.step_endpoint

    @property
    def state_endpoint(self) -> str:
        """Where states and rows are published: the port that was asked for, else what the server tells."""
        address, port = self._where.address, self._where.state_port
        announced = None if port else self._transport.state_endpoint
        return announced or endpoint(address, port or DEFAULT_STATE_PORT)

    @property
    def is_playing(self) -> bool:
        """Whether there is a running scene."""
        return self.status is not None and self.status.state is PIEState.READY

    @property
    def cameras(self) -> dict[str, URLabCameraView]:
        """The cameras of the scene by full name, those of robots first."""
        owned = [view for robot in self.client.articulations.values() for view in robot.cameras.values()]
        return {view.full_name: view for view in (*owned, *self.client.global_cameras.values())}

    @property
    def no_pictures(self) -> str | None:
        """Why the server draws nothing, if so."""
        problem = self.client.rendering.get("problem")
        return None if problem is None else str(problem)

    def segments(self, mode: str) -> dict[tuple[int, int, int, int], str]:
        """What the pixels (b, g, r, a) of a segmentation picture stand for."""
        return {segment.bgra: segment.name for segment in self.client.segmentation.get(mode, ())}

    def stream_endpoint(self, bound: str) -> str:
        """Where this machine reaches a stream that the server binds at ``bound``."""
        return stream_endpoint(bound, self.endpoint.rpartition(":")[0])

    def start_stream(self, view: URLabCameraView) -> None:
        """Feed a camera's view with what it streams; nothing happens if it streams nowhere."""
        if view.zmq_endpoint and view.zmq_topic:
            self._transport.start_camera_stream(view.owner, view.name, view.zmq_endpoint, view.zmq_topic, view.take)

    def stop_streams(self) -> None:
        """Feed no view any more."""
        self._transport.stop_camera_streams()

    def tend(self) -> None:
        """Ask how the server is, if that was a while ago; shake hands again where it is another scene."""
        if time.monotonic() < self._next_poll_s:
            return
        was_answering, interruptions = self.status is not None, self.interruptions
        try:
            self.poll()
        except URLabRPCError as lost:
            if was_answering:
                self._tell(f"{lost.message.rstrip('.')}. Waiting for it to come back.")
        else:
            was_restarted = self.interruptions > interruptions
            if was_restarted:
                self._tell(f"{self.endpoint} was restarted")
            if was_restarted or (self.interruptions and not was_answering):
                self._tell(f"{self.endpoint} is back")
        self._next_poll_s = time.monotonic() + POLL_S

    def trouble(self) -> str | None:
        """Why no frames can come, asked at once; None when the server plays."""
        self._next_poll_s = 0.0
        self.tend()
        if self.status is None:
            return f"{self.endpoint} does not answer any more"
        return None if self.is_playing else f"{self.endpoint} plays nothing ({self.status.state.value})"

    def poll(self) -> PIEStatus:
        """As of every follower; what a handshake warns of is told once."""
        with warnings.catch_warnings(record=True) as noticed:
            warnings.simplefilter("always")
            status = super().poll()
        for text in dict.fromkeys(str(one.message) for one in noticed):
            if text not in self._warned_of:
                self._warned_of.add(text)
                self._tell(text)
        return status
