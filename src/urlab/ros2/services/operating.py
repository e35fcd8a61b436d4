"""The services' own client."""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from urlab.ros2.services.results import Code, Refused
from urlab_client import PIEState, URLabClient, URLabRPCError, URLabTimeoutError
from urlab_client.errors import TRANSPORT_ERROR
from urlab_client.transports.zmq import endpoint, is_listening
from urlab_client.types import PIEStatus
from urlab_wire.errors import ErrorCode

log = logging.getLogger("urlab.ros2")

_PATIENCE_MS = 4000
"""With the client's grace that is more than a server takes that is busy with somebody's long step."""
_Done = TypeVar("_Done")


def _nothing(_hushed: bool) -> None:
    """Nobody wants to know."""


class OperatorClient(URLabClient):
    """The client; ``hush`` is told True before a scene is taken down, and False when it or another one goes on.

    Whatever takes long looks at ``ending`` now and then: once it is set, nobody waits for the work any more.
    """

    def __init__(
        self,
        address: str,
        step_port: int,
        hush: Callable[[bool], None] = _nothing,
        ending: threading.Event | None = None,
    ) -> None:
        super().__init__(
            address, step_port=step_port, operator=True, step_mode="direct", camera_streams=False,
            rcv_timeout_ms=_PATIENCE_MS,
        )  # fmt: skip
        self.hush = hush
        self.ending = ending or threading.Event()


class Operator:
    """A client with an operator's session, made when somebody first needs it, and anew when the server was away.

    Any thread may use it; one does at a time.
    """

    def __init__(self, address: str, step_port: int, hush: Callable[[bool], None] = _nothing) -> None:
        self._address, self._step_port, self._hush = address, step_port, hush
        self._turn = threading.Lock()
        self._ending = threading.Event()
        self._client: OperatorClient | None = None

    def do(self, work: Callable[[OperatorClient], _Done]) -> _Done:
        """Let a function use the client; what goes wrong with the server is `Refused` with the reason."""
        with self._turn:
            self._refuse_if_ending()
            self._refuse_if_gone()
            try:
                return self._do(work)
            except URLabTimeoutError as late:
                self._leave()
                raise Refused(Code.OPERATION_FAILED, f"the simulator does not answer: {late}") from late
            except URLabRPCError as failed:
                if failed.code == TRANSPORT_ERROR:
                    self._leave()
                raise Refused(Code.OPERATION_FAILED, str(failed)) from failed

    def end(self) -> None:
        """Begin no call any more, and let one that takes long give up. Any thread, at any time."""
        self._ending.set()

    def close(self) -> None:
        """End the session, once a call that is under way has returned."""
        self.end()
        with self._turn:
            self._leave()

    def _refuse_if_ending(self) -> None:
        if self._ending.is_set():
            raise Refused(Code.OPERATION_FAILED, "the bridge ends: call again when it is back")

    def _refuse_if_gone(self) -> None:
        """A request would wait for a server to come."""
        where = endpoint(self._address, self._step_port)
        if not is_listening(where):
            self._leave()
            raise Refused(
                Code.OPERATION_FAILED, f"no server listens at {where}: is `urlab serve` running, and is this its port?"
            )

    def _do(self, work: Callable[[OperatorClient], _Done]) -> _Done:
        client = self._client or self._meet()
        try:
            return work(client)
        except URLabRPCError as refused:
            if refused.code != ErrorCode.SESSION_EXPIRED:
                raise
        log.debug("the server was restarted: joining it again")
        client.discover()
        return work(client)

    def _meet(self) -> OperatorClient:
        client = OperatorClient(self._address, self._step_port, self._hush, self._ending)
        try:
            client.discover()
        except BaseException:
            client.close()
            raise
        self._client = client
        return client

    def _leave(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def playing(client: URLabClient) -> PIEStatus | None:
    """The status of the play, or None when nothing plays."""
    status = client.sim.status()
    return status if status.state is PIEState.READY else None


def refresh(client: URLabClient) -> None:
    """Bring the handles and the local data of a client up to date with the scene that plays."""
    told_s = client.sim_time
    try:
        reply = client.step(0, observations="full")
    except (ValueError, IndexError):  # a robot of the same name has another number of joints
        client.discover("full")
        return
    robots, things = reply.get("per_articulation") or {}, reply.get("entities") or {}
    known = {name for name in client.entities if name not in client.articulations}
    if robots.keys() != client.articulations.keys() or things.keys() != known or reply["time"] < told_s:
        client.discover("full")
