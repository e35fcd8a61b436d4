"""``client.sim``: the play lifecycle, and the server's log."""

from urlab_client.enums import PIEState, StepMode, coerce
from urlab_client.errors import URLabPIEError
from urlab_client.namespaces.base import RpcNamespace
from urlab_client.results import result_of
from urlab_client.rpc import payload_of, read_reply
from urlab_client.types import LogEntry, PIEStartResult, PIEStatus, ReplayStatus
from urlab_wire.ops import sim as wire

START_GRACE_S = 5.0


class SimNamespace(RpcNamespace):
    """Start and stop the simulation of the open level."""

    NAME = "sim"

    def start(
        self,
        level_path: str | None = None,
        *,
        timeout_s: float = 30.0,
        raise_on_failure: bool = True,
        step_mode: str | StepMode | None = None,
    ) -> PIEStartResult:
        """Compile the level and simulate it; ``level_path`` opens another level first.

        Without ``level_path``, a simulation that runs already goes on. On READY the handshake is absorbed: handles of
        robots that are there again stay good. A client that named a step mode asks for it with the start, so that no
        live step comes first; ``step_mode`` (extension) asks for another one, for this play. Any other state raises
        `URLabPIEError`, or is returned when ``raise_on_failure`` is False. ``timeout_s`` is in seconds.
        """
        client = self._client
        client._play_mode = None if step_mode is None else coerce(StepMode, step_mode)
        mode, was_playing = client._play_mode or client._wanted_mode, client.manager_present
        word = None if mode is None else mode.value
        request = wire.BeginPieRequest(level_path=level_path, timeout_s=float(timeout_s), step_mode=word)
        patience_ms = int(1000 * (timeout_s + START_GRACE_S))
        tree = client._rpc("begin_pie", payload_of(request), rcv_timeout_ms=patience_ms)
        reply = read_reply(wire.BeginPieReply, tree)
        result = PIEStartResult(_state(reply.state), reply.compile_error, tree.get("handshake_payload"))
        if result.is_ready and result.handshake_payload:
            in_force = client._absorb_handshake(result.handshake_payload)
            if mode is not None and not was_playing:
                client._departure.note_start(mode)
            client._join_simulation(in_force)
        if raise_on_failure and not result.is_ready:
            raise _failure(result)
        return result

    def stop(self) -> None:
        """End the simulation and go back to the editor. Handles keep the last state, and live again with `start`."""
        self._ask(wire.StopPieRequest())
        self._client._note_stop()

    def status(self) -> PIEStatus:
        """Where the play lifecycle stands: its state, level, step mode and simulated time."""
        reply = self._ask(wire.PieStatusRequest())
        replay = None if reply.replay is None else result_of(ReplayStatus, reply.replay)
        return result_of(PIEStatus, reply, state=_state(reply.state), replay=replay)

    def recent_log(self, after: int = 0) -> list[LogEntry]:
        """The newest records of the server's log, in order, or those behind the one of that number (extension).

        Ops that changed the world, or were to, are among them; steps are not. The server keeps about a thousand. To
        follow the log, ask again with the number of the last one.
        """
        return [result_of(LogEntry, one) for one in self._ask(wire.RecentLogRequest(after=after or None)).records]


def _state(word: str) -> PIEState:
    """The state of that word; a word that this client does not know counts as OFF."""
    return PIEState(word) if word in set(PIEState) else PIEState.OFF


def _failure(result: PIEStartResult) -> URLabPIEError:
    state = result.state
    message = result.compile_error or f"the simulation did not start: its state is {state.value!r}"
    return URLabPIEError(code=f"pie_{state.value}", message=message, state=state)
