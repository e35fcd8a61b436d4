"""Another scene without a break: the level is changed and played anew, from the state in which the last play stood.

The server takes a changed level into account when a play begins. What is carried over: the time, every joint's
position and velocity, mocap poses, the setpoints of robots, the step mode, and whether it was paused. What is not:
activations of actuators, parameters of controllers and physics options that were set while it played, twists,
recordings (the server saves them) and replays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco

from urlab.ros2.convert.pose import Array
from urlab.ros2.services.operating import OperatorClient, playing
from urlab.ros2.services.results import Code, Refused
from urlab_client import StepMode
from urlab_client.types import PIEStatus

_LIMIT_S = 60.0
Edit = Callable[[], object]


@dataclass(frozen=True, eq=False)
class Moment:
    """A play as it stood: its model and data, its setpoints by robot, and how it was played."""

    model: Any
    data: Any
    setpoints: dict[str, Array]
    mode: StepMode
    paused: bool

    @classmethod
    def of(cls, client: OperatorClient, status: PIEStatus) -> "Moment":
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
    `Refused` when the changed level cannot be played; it is then changed back by ``undo``, and played on.
    """
    status = playing(client)
    if status is None:
        edit()
        return ""
    _check_level(client, status)
    edit()
    client.hush(True)
    try:
        return _play_on(client, Moment.of(client, status), undo, anew)
    finally:
        client.hush(False)


def _play_on(client: OperatorClient, moment: Moment, undo: Edit | None, anew: str) -> str:
    client.sim.stop()
    started = client.sim.start(timeout_s=_LIMIT_S, raise_on_failure=False, step_mode=StepMode.PUPPET)
    if started.is_ready:
        return _go_on(client, moment, anew)
    if undo is not None:
        undo()
        client.sim.start(timeout_s=_LIMIT_S, step_mode=StepMode.PUPPET)
        _go_on(client, moment, anew)
    raise Refused(Code.OPERATION_FAILED, f"the scene cannot be played with that: {started.compile_error}")


def _check_level(client: OperatorClient, status: PIEStatus) -> None:
    edited = client.scene.current_level()
    if status.level is not None and edited != status.level:
        raise Refused(
            Code.INCORRECT_STATE,
            f"{status.level} plays, but {edited} is open in the editor, and changes go there: open the one that plays",
        )


def _go_on(client: OperatorClient, moment: Moment, anew: str) -> str:
    """Bring a play that has just begun to that moment, and let it go on as it did."""
    try:
        if client.sim.status().mode != StepMode.PUPPET:
            return "the scene began anew: the server's step mode is pinned, so no state can be given to it"
        _push_state(client, moment, anew)
        client.runtime.set_paused(True)
        client.runtime.set_mode(StepMode.LIVE)
        client.step_mode = StepMode.DIRECT
        _stage_setpoints(client, moment)
        if moment.mode is not StepMode.LIVE:
            client.runtime.set_mode(moment.mode)
        return ""
    finally:
        client.runtime.set_paused(moment.paused)
        client.step_mode = StepMode.DIRECT  # whatever the server's is: this client listens to no streams


def _push_state(client: OperatorClient, moment: Moment, anew: str) -> None:
    client.step_mode = StepMode.PUPPET
    model, data = client.model, client.data
    data.time = moment.data.time
    for joint in range(model.njnt):
        if not _is_of(anew, model.body(int(model.jnt_bodyid[joint])).name):
            _copy_joint(moment, model, data, joint)
    for body in range(model.nbody):
        if not _is_of(anew, model.body(body).name):
            _copy_mocap(client, moment, model.body(body))
    client.step(0)


def _is_of(actor: str, body: str) -> bool:
    """Whether a body belongs to an actor of that name, if it is one."""
    return bool(actor) and (body == actor or body.startswith(f"{actor}_"))


def _copy_joint(moment: Moment, model: Any, data: Any, joint: int) -> None:
    new = model.joint(joint)
    place = mujoco.mj_name2id(moment.model, mujoco.mjtObj.mjOBJ_JOINT, new.name)
    if place >= 0 and int(moment.model.jnt_type[place]) == int(model.jnt_type[joint]):
        data.joint(joint).qpos[:] = moment.data.joint(place).qpos
        data.joint(joint).qvel[:] = moment.data.joint(place).qvel


def _copy_mocap(client: OperatorClient, moment: Moment, body: Any) -> None:
    old = mujoco.mj_name2id(moment.model, mujoco.mjtObj.mjOBJ_BODY, body.name)
    place = int(moment.model.body_mocapid[old]) if old >= 0 else -1
    if int(body.mocapid[0]) >= 0 and place >= 0:
        pos, quat = moment.data.mocap_pos[place], moment.data.mocap_quat[place]
        client.runtime.set_mocap_pose(body.name, pos=pos.tolist(), quat=quat.tolist())


def _stage_setpoints(client: OperatorClient, moment: Moment) -> None:
    """Give the robots their setpoints: a live scene that is paused takes them without a step."""
    for prefix, values in moment.setpoints.items():
        robot = client.articulations.get(prefix)
        if robot is not None and len(robot.ctrl_array) == len(values):
            robot.ctrl_array[:] = values
    client.step(0)
