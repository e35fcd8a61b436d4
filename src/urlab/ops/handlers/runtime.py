"""Mutators and readers of the running scene."""

from urlab.errors import BadMode, MissingField, NoController, NoTwistController, known
from urlab.manager import edits
from urlab.numbers import finite_number
from urlab.ops.context import Context, handler
from urlab.ops.handlers.session import state_now
from urlab.ops.parsing import by_name, one_of, required
from urlab.physics import queries
from urlab_wire.enums import ControlSource, ParamsUntil, StepMode
from urlab_wire.ops import runtime as wire

_LATER_WORDS = {"freerun": StepMode.LIVE, "stepped": StepMode.DIRECT, "statepushed": StepMode.PUPPET}
_MODE_WORDS = {
    **{str(mode): mode for mode in StepMode},
    "streaming": StepMode.LIVE,
    **_LATER_WORDS,
}


@handler("set_mode")
def set_mode(context: Context, request: wire.SetModeRequest) -> wire.SetModeReply:
    """Switch the step mode, answering in the caller's vocabulary."""
    manager = context.manager
    manager.require_unpinned()
    word = required("mode", request.mode).lower()
    if word not in _MODE_WORDS:
        raise BadMode(f"there is no mode {request.mode!r}; there are: {known(_MODE_WORDS)}")
    previous = manager.set_mode(_MODE_WORDS[word])
    context.session.wanted_mode = manager.mode
    if not context.session.has_stepped:
        context.count_from(context.play.counter.total)
    return wire.SetModeReply(
        previous_mode=_say(previous, word), current_mode=_say(manager.mode, word), state=state_now(context)
    )


def _say(mode: StepMode, word: str) -> str:
    """A mode in the vocabulary that the caller used."""
    if word in _LATER_WORDS:
        return next((later for later, meaning in _LATER_WORDS.items() if meaning is mode), str(mode))
    return str(mode)


@handler("set_paused")
def set_paused(context: Context, request: wire.SetPausedRequest) -> wire.SetPausedReply:
    """Halt or resume live physics."""
    context.manager.loop.set_paused(request.paused)
    return wire.SetPausedReply(paused=context.manager.loop.paused)


@handler("set_sim_speed")
def set_sim_speed(context: Context, request: wire.SetSimSpeedRequest) -> wire.SetSimSpeedReply:
    """Pace live physics."""
    return wire.SetSimSpeedReply(percent=context.manager.loop.set_speed(finite_number("percent", request.percent)))


@handler("set_control_source")
def set_control_source(context: Context, request: wire.SetControlSourceRequest) -> wire.SetControlSourceReply:
    """Choose whose setpoints count."""
    source = one_of("source", ControlSource, required("source", request.source))
    context.manager.set_control_source(source, request.articulation or None)
    scope = "articulation" if request.articulation else "global"
    return wire.SetControlSourceReply(source=source, scope=scope, articulation=request.articulation or None)


@handler("set_twist")
def set_twist(context: Context, request: wire.SetTwistRequest) -> wire.SetTwistReply:
    """Write a robot's twist command."""
    robot = context.manager.articulation(required("articulation", request.articulation))
    if robot.twist is None:
        raise NoTwistController(f"{robot.prefix} has no twist controller: its sidecar says twist = false")
    with context.manager.engine.locked():
        robot.twist.set(request.linear, request.angular, request.actions)
    return wire.SetTwistReply(
        articulation=robot.prefix,
        linear=robot.twist.linear,
        angular=robot.twist.angular,
        actions=robot.twist.actions,
    )


@handler("set_ui_controls")
def set_ui_controls(context: Context, request: wire.SetUiControlsRequest) -> wire.SetUiControlsReply:
    """Write the setpoints of the user interface."""
    if not request.ctrl and not request.ctrl_map:
        raise MissingField("set_ui_controls needs ctrl or ctrl_map")
    manager = context.manager
    robot = manager.find_articulation(request.target, by_name=by_name(request.target_by))
    setpoints = manager.set_ui_controls(robot, request.ctrl, request.ctrl_map)
    return wire.SetUiControlsReply(articulation=robot.prefix, setpoints=setpoints, source=robot.staged.source)


@handler("perturb")
def perturb(context: Context, request: wire.PerturbRequest) -> wire.PerturbReply:
    """Push or drag a body until it is released."""
    held, version = context.manager.perturb(context.session.id, request)
    return wire.PerturbReply(body=held.body, body_id=held.body_id, version=version)


@handler("release_perturbation")
def release_perturbation(
    context: Context, request: wire.ReleasePerturbationRequest
) -> wire.ReleasePerturbationReply:  # fmt: skip
    """Let go of a body, or of all that this session holds."""
    return wire.ReleasePerturbationReply(released=context.manager.release(context.session.id, request.body))


@handler("save_state")
def save_state(context: Context, request: wire.SaveStateRequest) -> wire.SaveStateReply:
    """Take the whole state."""
    time, state = context.manager.save_state(request.name or None)
    return wire.SaveStateReply(state=state, time=time, name=request.name or None)


@handler("list_states")
def list_states(
    context: Context,
    request: wire.ListStatesRequest,  # noqa: ARG001 - it has no fields
) -> wire.ListStatesReply:
    """The states that are kept."""
    return wire.ListStatesReply(states=context.manager.states.blocks())


@handler("delete_state")
def delete_state(context: Context, request: wire.DeleteStateRequest) -> wire.DeleteStateReply:
    """Forget a state."""
    manager = context.manager
    with manager.engine.locked():
        return wire.DeleteStateReply(name=request.name, was_found=manager.states.delete(request.name))


@handler("set_model_params")
def set_model_params(context: Context, request: wire.SetModelParamsRequest) -> wire.SetModelParamsReply:
    """Change parameters of the model: all of them or none."""
    manager, until = context.manager, one_of("until", ParamsUntil, request.until or ParamsUntil.STOP)
    if not request.changes:
        raise MissingField("set_model_params needs changes: a list of {kind, name, field, value}")
    checked = manager.randomising.changes.check(request.changes)
    written = manager.set_model_params(checked, until_reset=until is ParamsUntil.RESET)
    context.session.model_version = manager.randomising.model_version
    return wire.SetModelParamsReply(changes=checked, until=until.value, model=written)


@handler("set_equality")
def set_equality(context: Context, request: wire.SetEqualityRequest) -> wire.SetEqualityReply:
    """Switch an equality constraint."""
    name = context.manager.set_equality(request.name, request.active)
    return wire.SetEqualityReply(name=name, active=request.active)


@handler("set_qpos")
def set_qpos(context: Context, request: wire.SetQposRequest) -> wire.SetQposReply:
    """Write the qpos of a robot or a free body."""
    target = required("target", request.target)
    written = edits.set_qpos(context.manager, target, request.qpos, request.qvel, by_name=by_name(request.target_by))
    return wire.SetQposReply(
        target=request.target,
        actor_name=written.target.actor_name,
        actor_id=written.target.actor_id or None,
        qpos=written.qpos,
        free_base_shortcut=written.free_base_shortcut,
    )


@handler("set_mocap_pose")
def set_mocap_pose(context: Context, request: wire.SetMocapPoseRequest) -> wire.SetMocapPoseReply:
    """Move a mocap body."""
    pos, quat_wxyz = edits.set_mocap_pose(context.manager, request.body, request.pos, request.quat)
    return wire.SetMocapPoseReply(body=request.body, pos=pos, quat=quat_wxyz)


@handler("read_mocap_pose")
def read_mocap_pose(context: Context, request: wire.ReadMocapPoseRequest) -> wire.ReadMocapPoseReply:
    """Where a mocap body is."""
    pos, quat_wxyz = edits.read_mocap_pose(context.manager, request.body)
    return wire.ReadMocapPoseReply(body=request.body, pos=pos, quat=quat_wxyz)


@handler("get_contacts")
def get_contacts(context: Context, request: wire.GetContactsRequest) -> wire.GetContactsReply:
    """What touches what."""
    limit = request.max_contacts if request.max_contacts and request.max_contacts > 0 else queries.DEFAULT_MAX_CONTACTS
    manager = context.manager
    found, more = queries.read_contacts(manager.engine.contacts, manager.contact_names, request.filter, limit)
    return wire.GetContactsReply(n_contacts=len(found), truncated=more, contacts=found)


@handler("list_keyframes")
def list_keyframes(
    context: Context,
    request: wire.ListKeyframesRequest,  # noqa: ARG001 - it has no fields
) -> wire.ListKeyframesReply:
    """The keyframes of the compiled model."""
    return wire.ListKeyframesReply(keyframes=queries.list_keyframes(context.manager.engine.model))


@handler("configure_controller")
def configure_controller(context: Context, request: wire.ConfigureControllerRequest) -> wire.ConfigureControllerReply:
    """Patch a robot's controller; empty params only read."""
    robot = context.manager.articulation(required("articulation", request.articulation))
    if robot.controller is None:
        raise NoController(f"{robot.prefix} has no controller: its sidecar names none")
    if request.params:
        with context.manager.engine.locked():
            robot.controller.configure(request.params)
    return wire.ConfigureControllerReply(articulation=robot.prefix, params=robot.controller.params())


@handler("set_sim_options")
def set_sim_options(context: Context, request: wire.SetSimOptionsRequest) -> wire.SetSimOptionsReply:
    """Patch the physics options."""
    if request.options is None:
        raise MissingField("set_sim_options needs the field 'options'")
    return wire.SetSimOptionsReply(options=edits.set_sim_options(context.manager, request.options))
