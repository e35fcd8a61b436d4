"""The simulation as a whole: its state, its steps, its start, another scene; and the services' own client.

A server in live mode plays or is paused. In direct and puppet mode the requests of its client are the clock: time
stands still by itself, which is what ROS calls paused.

The server takes a changed level into account when a play begins, so `change_scene` plays it anew, from the state in
which the last play stood. What is carried over: the time, every joint's position and velocity, mocap poses, the
setpoints of robots, the step mode, and whether it was paused. What is not: activations of actuators, parameters of
controllers and physics options that were set while it played, twists, recordings (the server saves them) and replays.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import mujoco

from urlab.ros2.geometry import Array
from urlab.ros2.messages import make
from urlab.ros2.services.messages import PACKAGE, ResultCode, ServiceRefused, SetStateCode, result
from urlab_client import PIEState, StepMode, URLabClient, URLabPIEError, URLabRPCError, URLabTimeoutError
from urlab_client.following import ServerFollower
from urlab_client.transports.zmq import endpoint, is_listening
from urlab_client.types import PIEStatus
from urlab_wire.enums import ResetScope

STOPPED, PLAYING, PAUSED, QUITTING, NO_WORLD, LOADING_WORLD = range(6)
"""States of the message SimulationState."""

_WORDS = ("stopped", "playing", "paused", "quitting", "without a world", "loading a world")
_TIME, _STATE, _SPAWNED, _ALL = 1, 2, 4, 255
_SCOPES = {_TIME: ResetScope.TIME, _STATE: ResetScope.STATE, _TIME | _STATE: ResetScope.ALL}
_FEW_STEPS, _LONG_S = 64, 0.2
"""Steps are asked for in portions, so that none comes near the server's limit of a request."""

SPAWNED_TAG = "ros2.spawned"
"""The level's tag of what SpawnEntity brought, so that a reset finds it."""

TIMEOUT_MS = 4000
"""With the client's grace that is more than a server takes that is busy with a long step of another client."""
_Done = TypeVar("_Done")

_LIMIT_S = 60.0
Edit = Callable[[], object]


# -- the services' client ----------------------------------------------------------------------------------------------


class OperatorClient(URLabClient):
    """The services' client, with an operator's session: the client that drives the server keeps its own.

    ``pause_publishing`` is called with True before a scene is taken down, and with False when it or another one goes
    on. Work that takes long looks at ``ending`` now and then: once it is set, no caller waits for the result any more.
    """

    def __init__(self, address: str, step_port: int, pause_publishing: Callable[[bool], None], timeout_ms: int) -> None:
        super().__init__(
            address, step_port=step_port, operator=True, step_mode="direct", camera_streams=False,
            rcv_timeout_ms=timeout_ms,
        )  # fmt: skip
        self.pause_publishing = pause_publishing
        self.ending = threading.Event()


class Operator:
    """A client with an operator's session, which is opened when a service first needs it, and again after a restart.

    Any thread may use it; one does at a time.
    """

    def __init__(
        self, address: str, step_port: int, pause_publishing: Callable[[bool], None], timeout_ms: int = TIMEOUT_MS
    ) -> None:
        self._endpoint = endpoint(address, step_port)
        self._lock = threading.Lock()
        self._server = ServerFollower(OperatorClient(address, step_port, pause_publishing, timeout_ms))
        self._ending = self._server.client.ending

    def do(self, work: Callable[[OperatorClient], _Done]) -> _Done:
        """Let a function use the client; what goes wrong with the server is `ServiceRefused` with the reason."""
        with self._lock:
            if self._ending.is_set():
                raise ServiceRefused("the bridge ends: call again when it is back")
            if not is_listening(self._endpoint):  # a request would wait for a server to come
                raise ServiceRefused(
                    f"no server listens at {self._endpoint}: is `urlab serve` running, and is this its port?"
                )
            try:
                return self._server.call(work)
            except URLabTimeoutError as late:
                raise ServiceRefused(f"the simulator does not answer: {late}") from late
            except URLabRPCError as failed:
                raise ServiceRefused(str(failed)) from failed

    def end(self) -> None:
        """Begin no call any more, and let one that takes long give up. Any thread, at any time."""
        self._ending.set()

    def close(self) -> None:
        """End the session, once a call that is under way has returned."""
        self.end()
        with self._lock:
            self._server.close()


def playing(client: URLabClient) -> PIEStatus | None:
    """The status of the play, or None when nothing plays."""
    status = client.sim.status()
    return status if status.state is PIEState.READY else None


def refresh(client: URLabClient) -> None:
    """Bring the handles and the local data of a client up to date with the scene that plays."""
    before_s = client.sim_time
    try:
        reply = client.step(0, observations="full")
    except (ValueError, IndexError):  # a robot of the same name has another number of joints
        client.discover("full")
        return
    robots, entities = reply.get("per_articulation") or {}, reply.get("entities") or {}
    known = {name for name in client.entities if name not in client.articulations}
    if robots.keys() != client.articulations.keys() or entities.keys() != known or reply["time"] < before_s:
        client.discover("full")


# -- requests ----------------------------------------------------------------------------------------------------------


def get_state(client: OperatorClient, _request: Any) -> dict[str, Any]:
    """GetSimulationState."""
    status = client.sim.status()
    note = f"the level cannot be played: {status.compile_error}" if status.compile_error else ""
    state = make(f"{PACKAGE}/msg/SimulationState", state=_state_of(status))
    return {"state": state, "result": result(note)}


def set_state(client: OperatorClient, request: Any) -> dict[str, Any]:
    """SetSimulationState."""
    wanted, now = int(request.state.state), _state_of(client.sim.status())
    if wanted == QUITTING:
        raise ServiceRefused(
            "the server is not ended from here: stop `urlab serve` where it runs (Ctrl-C, SIGTERM)",
            ResultCode.FEATURE_UNSUPPORTED,
        )
    if wanted not in (STOPPED, PLAYING, PAUSED):
        raise ServiceRefused(
            f"no simulation can be put into state {wanted}: ask for 0, 1 or 2", SetStateCode.INCORRECT_TRANSITION
        )
    if wanted == now:
        raise ServiceRefused(f"the simulation is {_WORDS[now]} already", SetStateCode.ALREADY_IN_TARGET_STATE)
    if now == LOADING_WORLD:
        raise ServiceRefused(
            "a level is being compiled: wait until get_simulation_state tells", SetStateCode.INCORRECT_TRANSITION
        )
    if wanted == STOPPED:
        client.sim.stop()
        return {"result": result(despawn_all(client))}
    note = _begin(client) if now == STOPPED else ""
    return {"result": result(note or _pause(client, wanted == PAUSED, is_new=now == STOPPED))}


def step(client: OperatorClient, request: Any) -> dict[str, Any]:
    """StepSimulation."""
    left, portion = int(request.steps), _FEW_STEPS
    while left:
        _check_steppable(client, int(request.steps) - left)
        if client.ending.is_set():
            raise ServiceRefused(f"the bridge ends, after {int(request.steps) - left} of {request.steps} steps")
        begin, count = time.monotonic(), min(left, portion)
        client.step(count)
        left -= count
        portion = max(1, portion // 2) if time.monotonic() - begin > _LONG_S else portion * 2
    return {"result": result()}


def reset(client: OperatorClient, request: Any) -> dict[str, Any]:
    """ResetSimulation."""
    scope = int(request.scope) or _ALL
    if scope != _ALL and scope & ~(_TIME | _STATE | _SPAWNED):
        raise ServiceRefused(
            f"scope {scope} has bits that mean nothing: there are 1, 2, 4, and 255 for all",
            ResultCode.FEATURE_UNSUPPORTED,
        )
    note = despawn_all(client) if scope & _SPAWNED else ""
    what = _SCOPES.get(scope & (_TIME | _STATE))
    if what is not None and playing(client) is not None:
        client.reset(scope=what.value)
    return {"result": result(note)}


def despawn_all(client: OperatorClient) -> str:
    """Take away what SpawnEntity brought; a sentence about what that cost, or nothing."""
    names = {one.name for one in client.scene.snapshot().actors if SPAWNED_TAG in one.tags}
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


def _begin(client: OperatorClient) -> str:
    """Play the level that is open, in the mode that the server's client last asked for, or live."""
    try:
        client.sim.start()
    except URLabPIEError as failed:
        raise ServiceRefused(f"the level cannot be played: {failed}", SetStateCode.STATE_TRANSITION_ERROR) from failed
    status = client.sim.status()
    if status.mode == StepMode.LIVE:
        return ""
    return f"it plays in {status.mode} mode, where the requests of a client are the clock"


def _pause(client: OperatorClient, paused: bool, *, is_new: bool) -> str:
    status = client.sim.status()
    if not paused and status.mode != StepMode.LIVE:
        raise ServiceRefused(
            f"the server is in {status.mode} mode: the requests of its client are the clock, and it does not play by"
            " itself. Let that client set live mode, or end it; or step with step_simulation.",
            SetStateCode.STATE_TRANSITION_ERROR,
        )
    client.runtime.set_paused(paused)
    if is_new and paused:
        client.reset()  # the steps between the beginning and the pause are taken back
    return ""


def _check_steppable(client: OperatorClient, done: int) -> None:
    status = client.sim.status()
    if status.mode == StepMode.PUPPET:
        raise ServiceRefused("the server is in puppet mode: its client simulates, and cannot be stepped from here")
    if _state_of(status) != PAUSED:
        after = f" after {done} steps" if done else ""
        raise ServiceRefused(
            f"the simulation is {_WORDS[_state_of(status)]}{after}: pause it first (set_simulation_state, 2)"
        )


# -- another scene without a break -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PlayState:
    """A play as it stood: its model and data, its setpoints by robot, and how it was played."""

    model: Any
    data: Any
    setpoints: dict[str, Array]
    mode: StepMode
    paused: bool

    @classmethod
    def of(cls, client: OperatorClient, status: PIEStatus) -> "PlayState":
        """Now; a live scene is paused first, so that it stands still until it is left."""
        paused = bool(status.paused)
        if not paused:
            client.runtime.set_paused(True)
        client.discover("full")
        setpoints = {prefix: one.ctrl_array.copy() for prefix, one in client.articulations.items()}
        return cls(client.model, client.data, setpoints, StepMode(status.mode or StepMode.LIVE), paused)


def change_scene(client: OperatorClient, edit: Edit, undo: Edit | None = None, *, anew: str = "") -> str:
    """Change the level; if it plays, go on playing it as changed. A sentence about what could not be kept, or nothing.

    The actor of the name ``anew`` starts where the level says, instead of going on.
    `ServiceRefused` when the changed level cannot be played; it is then changed back by ``undo``, and played on.
    """
    status = playing(client)
    if status is None:
        edit()
        return ""
    _check_level(client, status)
    edit()
    client.pause_publishing(True)
    try:
        return _play_on(client, PlayState.of(client, status), undo, anew)
    finally:
        client.pause_publishing(False)


def _play_on(client: OperatorClient, state: PlayState, undo: Edit | None, anew: str) -> str:
    client.sim.stop()
    started = client.sim.start(timeout_s=_LIMIT_S, raise_on_failure=False, step_mode=StepMode.PUPPET)
    if started.is_ready:
        return _go_on(client, state, anew)
    if undo is not None:
        undo()
        client.sim.start(timeout_s=_LIMIT_S, step_mode=StepMode.PUPPET)
        _go_on(client, state, anew)
    raise ServiceRefused(f"the scene cannot be played with that: {started.compile_error}")


def _check_level(client: OperatorClient, status: PIEStatus) -> None:
    edited = client.scene.current_level()
    if status.level is not None and edited != status.level:
        raise ServiceRefused(
            f"{status.level} plays, but {edited} is open in the editor, and changes go there: open the one that plays",
            ResultCode.INCORRECT_STATE,
        )


def _go_on(client: OperatorClient, state: PlayState, anew: str) -> str:
    """Bring a play that has just begun to that state, and let it go on as it did."""
    try:
        if client.sim.status().mode != StepMode.PUPPET:
            return "the scene began anew: the server's step mode is pinned, so no state can be given to it"
        _push_state(client, state, anew)
        client.runtime.set_paused(True)
        client.runtime.set_mode(StepMode.LIVE)
        client._step_mode = StepMode.DIRECT
        _stage_setpoints(client, state)
        if state.mode is not StepMode.LIVE:
            client.runtime.set_mode(state.mode)
        return ""
    finally:
        client.runtime.set_paused(state.paused)
        client._step_mode = StepMode.DIRECT  # whatever the server's is: this client listens to no streams


def _push_state(client: OperatorClient, state: PlayState, anew: str) -> None:
    client._step_mode = StepMode.PUPPET
    model, data = client.model, client.data
    data.time = state.data.time
    for joint in range(model.njnt):
        if not _is_of(anew, model.body(int(model.jnt_bodyid[joint])).name):
            _copy_joint(state, model, data, joint)
    for body in range(model.nbody):
        if not _is_of(anew, model.body(body).name):
            _copy_mocap(client, state, model.body(body))
    client.step(0)


def _is_of(actor: str, body: str) -> bool:
    """Whether a body belongs to an actor of that name, if it is one."""
    return bool(actor) and (body == actor or body.startswith(f"{actor}_"))


def _copy_joint(state: PlayState, model: Any, data: Any, joint: int) -> None:
    new = model.joint(joint)
    place = mujoco.mj_name2id(state.model, mujoco.mjtObj.mjOBJ_JOINT, new.name)
    if place >= 0 and int(state.model.jnt_type[place]) == int(model.jnt_type[joint]):
        data.joint(joint).qpos[:] = state.data.joint(place).qpos
        data.joint(joint).qvel[:] = state.data.joint(place).qvel


def _copy_mocap(client: OperatorClient, state: PlayState, body: Any) -> None:
    old = mujoco.mj_name2id(state.model, mujoco.mjtObj.mjOBJ_BODY, body.name)
    place = int(state.model.body_mocapid[old]) if old >= 0 else -1
    if int(body.mocapid[0]) >= 0 and place >= 0:
        pos, quat = state.data.mocap_pos[place], state.data.mocap_quat[place]
        client.runtime.set_mocap_pose(body.name, pos=pos.tolist(), quat=quat.tolist())


def _stage_setpoints(client: OperatorClient, state: PlayState) -> None:
    """Give the robots their setpoints: a live scene that is paused takes them without a step."""
    for prefix, values in state.setpoints.items():
        robot = client.articulations.get(prefix)
        if robot is not None and len(robot.ctrl_array) == len(values):
            robot.ctrl_array[:] = values
    client.step(0)
