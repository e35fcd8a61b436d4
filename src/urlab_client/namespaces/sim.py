"""``client.sim``: the play lifecycle."""

from urlab_client.errors import URLabPIEError
from urlab_client.namespaces.base import RpcNamespace
from urlab_client.types import PIEStartResult, PIEStatus

START_GRACE_S = 5.0


class SimNamespace(RpcNamespace):
    """Start and stop the simulation of the open level."""

    __slots__ = ()

    NAME = "sim"

    def start(
        self, level_path: str | None = None, *, timeout_s: float = 30.0, raise_on_failure: bool = True
    ) -> PIEStartResult:
        """Compile the level and simulate it; ``level_path`` opens another level first.

        Without ``level_path``, a simulation that runs already goes on. On READY the handshake is absorbed (the
        handles are new) and the step mode that the client was built for is asked for again. Any other state raises
        `URLabPIEError`, or is returned when ``raise_on_failure`` is False.
        """
        payload = {"timeout_s": float(timeout_s), **({"level_path": level_path} if level_path is not None else {})}
        reply = self._client._rpc(
            "begin_pie",
            payload,
            expected_op="begin_pie_ok",
            rcv_timeout_ms=int(1000 * (timeout_s + START_GRACE_S)),
        )
        result = PIEStartResult.from_wire(reply)
        if result.is_ready and result.handshake_payload:
            self._client._absorb_handshake(result.handshake_payload)
            self._client._join_simulation()
        if raise_on_failure and not result.is_ready:
            raise _failure(result)
        return result

    def stop(self) -> None:
        """End the simulation and go back to the editor."""
        self._ask("stop_pie")
        self._client.manager_present = False
        self._client._sync_streams()

    def status(self) -> PIEStatus:
        """Where the lifecycle stands."""
        return PIEStatus.from_wire(self._ask("pie_status"))


def _failure(result: PIEStartResult) -> URLabPIEError:
    state = result.state
    message = result.compile_error or f"the simulation did not start: its state is {state.value!r}"
    return URLabPIEError(code=f"pie_{state.value}", message=message, state=state)
