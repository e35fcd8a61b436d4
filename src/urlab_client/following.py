"""Staying with one server: through its restarts, and from scene to scene.

A program that outlives servers (a monitor, the ROS 2 bridge) gives its client to a `ServerFollower` and works through
that. There are two ways to use it, which may be mixed:

- `ServerFollower.call`, for requests now and then: it opens the session when it is first needed and again when the
  server was restarted.
- `ServerFollower.poll`, about once a second: it also notices that the server is gone, is back, or plays something else,
  and shakes hands again where robots and cameras may be others.

Neither waits for a server that is not there: a request fails after the client's own time limit. One that is there and
answers late is waited for, 2 s longer, and for a handshake as long as that may take.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from urlab_client.client import URLabClient
from urlab_client.enums import PIEState
from urlab_client.errors import URLabRPCError
from urlab_client.types import PIEStatus
from urlab_wire.errors import ErrorCode

ClientT = TypeVar("ClientT", bound=URLabClient)
ResultT = TypeVar("ResultT")


class ServerFollower(Generic[ClientT]):
    """Keeps a client's session with one server open. The client is owned, and closed in the end.

    ``status`` is what the last `poll` got, None while the server does not answer. ``handshakes`` grows with every
    session: from then on robots and cameras are new objects. ``interruptions`` counts how often a server that had
    answered a poll stopped answering, or was found to have been restarted. ``is_stale`` lets the next poll shake hands:
    set it when what the server streams does not fit the last handshake. For one thread at a time; any may set
    ``is_stale``.
    """

    def __init__(self, client: ClientT) -> None:
        self.client = client
        client._channel.be_patient()
        self.status: PIEStatus | None = None
        self.handshakes = 0
        self.interruptions = 0
        self.is_stale = False
        self._has_session = False

    def call(self, work: Callable[[ClientT], ResultT]) -> ResultT:
        """What ``work`` returns, given the client in an open session.

        If the server does not know the session, because it was restarted, another one is opened and ``work`` begins
        again. Every other error is the caller's; the session stays, as a slow server still knows it.
        """
        if not self._has_session:
            self.handshake()
        try:
            return work(self.client)
        except URLabRPCError as refused:
            if refused.code != ErrorCode.SESSION_EXPIRED:
                raise
        self._note_interruption()
        self.handshake()
        return work(self.client)

    def poll(self) -> PIEStatus:
        """Ask the server how it is; afterwards the client shows the scene that it plays.

        Raises what the client raises while the server does not answer, or has a scene that cannot be shown here.
        """
        try:
            status = self.call(lambda client: client.sim.status())
            if self.is_stale or self._is_other_scene(status):
                self.handshake()
        except Exception:
            self._note_interruption()
            raise
        self.status = status
        return status

    def handshake(self) -> None:
        """Open the session, or open it again."""
        self._has_session = self.is_stale = False
        self.client.discover()
        self._has_session = True
        self.handshakes += 1

    def close(self) -> None:
        """Leave the server. Idempotent, never raises."""
        self.client.close()

    def _is_other_scene(self, status: PIEStatus) -> bool:
        """Whether something else plays than at the last poll, or at the handshake where that came after it."""
        known = self.status
        if known is None:
            return self.client.manager_present != (status.state is PIEState.READY)
        return (known.state, known.level) != (status.state, status.level)

    def _note_interruption(self) -> None:
        """What the server shows when it answers again may be anything."""
        if self.status is not None:
            self.interruptions += 1
        self.status, self.is_stale = None, True
