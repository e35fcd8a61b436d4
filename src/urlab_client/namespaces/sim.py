"""``client.sim``: the play lifecycle."""

from urlab_client.enums import PIEState, StepMode, coerce
from urlab_client.errors import URLabPIEError
from urlab_client.namespaces.base import RpcNamespace
from urlab_client.rpc import payload_of, read_reply
from urlab_client.types import PIEStartResult, PIEStatus, result_of
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

        Without ``level_path``, a simulation that runs already goes on. On READY the handshake is absorbed (the
        handles are new). A client of direct or puppet mode asks for its mode with the start, so that no live step comes
        first; ``step_mode`` (extension) asks for another one, for this play. Any other state raises `URLabPIEError`, or
        is returned when ``raise_on_failure`` is False.
        """
        client = self._client
        mode = client.step_mode if step_mode is None and client._promotes else step_mode
        word = None if mode is None else coerce(StepMode, mode).value
        request = wire.BeginPieRequest(level_path=level_path, timeout_s=float(timeout_s), step_mode=word)
        patience_ms = int(1000 * (timeout_s + START_GRACE_S))
        tree = client._rpc("begin_pie", payload_of(request), rcv_timeout_ms=patience_ms)
        reply = read_reply(wire.BeginPieReply, tree)
        result = PIEStartResult(_state(reply.state), reply.compile_error, tree.get("handshake_payload"))
        if result.is_ready and result.handshake_payload:
            client._absorb_handshake(result.handshake_payload)
            client._join_simulation()
        if raise_on_failure and not result.is_ready:
            raise _failure(result)
        return result

    def stop(self) -> None:
        """End the simulation and go back to the editor."""
        self._ask(wire.StopPieRequest())
        self._client.manager_present = False
        self._client._sync_streams()

    def status(self) -> PIEStatus:
        """Where the lifecycle stands."""
        reply = self._ask(wire.PieStatusRequest())
        return result_of(PIEStatus, reply, state=_state(reply.state))


def _state(word: str) -> PIEState:
    """The state of that word; a word that this client does not know counts as OFF."""
    return PIEState(word) if word in set(PIEState) else PIEState.OFF


def _failure(result: PIEStartResult) -> URLabPIEError:
    state = result.state
    message = result.compile_error or f"the simulation did not start: its state is {state.value!r}"
    return URLabPIEError(code=f"pie_{state.value}", message=message, state=state)
