"""The simulation as a whole: its state, its steps, its start.

A server in live mode plays or is paused. In direct and puppet mode the requests of its client are the clock: time
stands still by itself, which is what ROS calls paused.
"""

import time
from typing import Any

from urlab.ros2.messages import make
from urlab.ros2.services.operating import OperatorClient, playing
from urlab.ros2.services.restarting import change_scene
from urlab.ros2.services.results import Code, Refused, SetStateCode, result
from urlab.ros2.services.things import Things
from urlab.ros2.simulation_messages import PACKAGE
from urlab_client import PIEState, StepMode, URLabPIEError
from urlab_client.types import PIEStatus
from urlab_wire.enums import ResetScope

STOPPED, PLAYING, PAUSED, QUITTING, NO_WORLD, LOADING_WORLD = range(6)
"""States of the message SimulationState."""

_WORDS = ("stopped", "playing", "paused", "quitting", "without a world", "loading a world")
_TIME, _STATE, _SPAWNED, _ALL = 1, 2, 4, 255
_SCOPES = {_TIME: ResetScope.TIME, _STATE: ResetScope.STATE, _TIME | _STATE: ResetScope.ALL}
_FEW_STEPS, _LONG_S = 64, 0.2
"""Steps are asked for in portions, so that none comes near the server's limit of a request."""


def get_state(client: OperatorClient, _request: Any) -> dict[str, Any]:
    """GetSimulationState."""
    status = client.sim.status()
    note = f"the level cannot be played: {status.compile_error}" if status.compile_error else ""
    state = make(f"{PACKAGE}/msg/SimulationState", state=_state_of(status))
    return {"state": state, "result": result(Code.OK, note)}


def set_state(client: OperatorClient, request: Any) -> dict[str, Any]:
    """SetSimulationState."""
    wanted, now = int(request.state.state), _state_of(client.sim.status())
    if wanted == QUITTING:
        raise Refused(
            Code.FEATURE_UNSUPPORTED,
            "the server is not ended from here: stop `urlab serve` where it runs (Ctrl-C, SIGTERM)",
        )
    if wanted not in (STOPPED, PLAYING, PAUSED):
        raise Refused(
            SetStateCode.INCORRECT_TRANSITION, f"no simulation can be put into state {wanted}: ask for 0, 1 or 2"
        )
    if wanted == now:
        raise Refused(SetStateCode.ALREADY_IN_TARGET_STATE, f"the simulation is {_WORDS[now]} already")
    if now == LOADING_WORLD:
        raise Refused(
            SetStateCode.INCORRECT_TRANSITION, "a level is being compiled: wait until get_simulation_state tells"
        )
    if wanted == STOPPED:
        return {"result": result(Code.OK, _stop(client))}
    note = _begin(client) if now == STOPPED else ""
    return {"result": result(Code.OK, note or _pause(client, wanted == PAUSED, is_new=now == STOPPED))}


def step(client: OperatorClient, request: Any) -> dict[str, Any]:
    """StepSimulation."""
    left, portion = int(request.steps), _FEW_STEPS
    while left:
        _check_steppable(client, int(request.steps) - left)
        if client.ending.is_set():
            raise Refused(
                Code.OPERATION_FAILED, f"the bridge ends, after {int(request.steps) - left} of {request.steps} steps"
            )
        begin, count = time.monotonic(), min(left, portion)
        client.step(count)
        left -= count
        portion = max(1, portion // 2) if time.monotonic() - begin > _LONG_S else portion * 2
    return {"result": result()}


def reset(client: OperatorClient, request: Any) -> dict[str, Any]:
    """ResetSimulation."""
    scope = int(request.scope) or _ALL
    if scope != _ALL and scope & ~(_TIME | _STATE | _SPAWNED):
        raise Refused(
            Code.FEATURE_UNSUPPORTED, f"scope {scope} has bits that mean nothing: there are 1, 2, 4, and 255 for all"
        )
    note = despawn_all(client) if scope & _SPAWNED else ""
    what = _SCOPES.get(scope & (_TIME | _STATE))
    if what is not None and playing(client) is not None:
        client.reset(scope=what.value)
    return {"result": result(Code.OK, note)}


def despawn_all(client: OperatorClient) -> str:
    """Take away what SpawnEntity brought; a sentence about what that cost, or nothing."""
    names = {one.actor.name for one in Things(client).by_name.values() if one.is_spawned}
    if not names:
        return ""

    def edit() -> None:
        for name in names:
            client.scene.destroy_actor(name, by_name=True)

    return change_scene(client, edit)


def _state_of(status: PIEStatus) -> int:
    if status.state is PIEState.COMPILING:
        return LOADING_WORLD
    if status.state is not PIEState.READY:
        return STOPPED
    return PLAYING if status.mode == StepMode.LIVE and not status.paused else PAUSED


def _stop(client: OperatorClient) -> str:
    client.sim.stop()
    return despawn_all(client)


def _begin(client: OperatorClient) -> str:
    """Play the level that is open, in the mode that the server's client last asked for, or live."""
    try:
        client.sim.start()
    except URLabPIEError as failed:
        raise Refused(SetStateCode.STATE_TRANSITION_ERROR, f"the level cannot be played: {failed}") from failed
    status = client.sim.status()
    if status.mode == StepMode.LIVE:
        return ""
    return f"it plays in {status.mode} mode, where the requests of a client are the clock"


def _pause(client: OperatorClient, paused: bool, *, is_new: bool) -> str:
    status = client.sim.status()
    if not paused and status.mode != StepMode.LIVE:
        raise Refused(
            SetStateCode.STATE_TRANSITION_ERROR,
            f"the server is in {status.mode} mode: the requests of its client are the clock, and it does not play by"
            " itself. Let that client set live mode, or end it; or step with step_simulation.",
        )
    client.runtime.set_paused(paused)
    if is_new and paused:
        client.reset()  # the steps between the beginning and the pause are taken back
    return ""


def _check_steppable(client: OperatorClient, done: int) -> None:
    status = client.sim.status()
    if status.mode == StepMode.PUPPET:
        raise Refused(
            Code.OPERATION_FAILED, "the server is in puppet mode: its client simulates, and cannot be stepped from here"
        )
    if _state_of(status) != PAUSED:
        after = f" after {done} steps" if done else ""
        raise Refused(
            Code.OPERATION_FAILED,
            f"the simulation is {_WORDS[_state_of(status)]}{after}: pause it first (set_simulation_state, 2)",
        )
