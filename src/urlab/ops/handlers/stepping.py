"""step, reset, forward and restore_state."""

from collections.abc import Mapping
from time import time_ns
from typing import TypeVar, cast

from urlab.errors import BadValue, MissingField, ObserverReadOnly
from urlab.manager import Observation, PlainBlocks, View
from urlab.ops.context import Context, handler
from urlab.ops.handlers.cameras import CameraSelection
from urlab.ops.parsing import one_of
from urlab_wire.enums import Encoding, ObservationLevel, ResetScope, StepMode
from urlab_wire.ops import stepping as wire
from urlab_wire.state_frame import StateFrame

AnyStateReply = TypeVar("AnyStateReply", bound=wire.StateReply)
_FRAMES: dict[type[wire.StateReply], StateFrame] = {
    kind: StateFrame(kind) for kind in (wire.StepReply, wire.ResetReply, wire.ForwardReply, wire.RestoreStateReply)
}
_IGNORED = (
    'the controls of this step do nothing for {!r}: its control source is "ui". set_control_source "zmq" lets steps '
    "drive it. (This is said once.)"
)
_MODEL_CHANGED = (
    "another session has changed parameters of the model (set_model_params, or a reset that randomises): copies of it "
    "that were taken before do not follow. A new handshake (client.discover()) takes the model as it is. (This is said "
    "once for each change.)"
)
_PACKED: dict[str, View] = {level: View(level, packed=True) for level in ObservationLevel}
_PLAIN: dict[str, View] = {level: View(level) for level in ObservationLevel}


@handler("step")
def step(context: Context, request: wire.StepRequest) -> wire.StepReply | bytes:
    """Advance, in the mode in force. An observer may read the live state this way, an operator every state."""
    view = _view(context, request.observations)
    context.session.has_stepped = True
    if request.include_cameras:
        return _step_and_look(context, request, view)
    return state_reply(wire.StepReply, context, _step(context, request, view))


@handler("reset")
def reset(context: Context, request: wire.ResetRequest) -> wire.ResetReply | bytes:
    """Back to the start."""
    joints = {
        prefix: {joint: value if isinstance(value, list) else [value] for joint, value in values.items()}
        for prefix, values in (request.per_articulation_qpos or {}).items()
    }
    manager, scope = context.manager, one_of("scope", ResetScope, request.scope or ResetScope.ALL)
    if scope is ResetScope.TIME and (request.keyframe_name or joints or request.randomize is not None):
        raise BadValue(
            "a reset of the time alone leaves the state as it is: it takes no keyframe, no joint values, no randomize"
        )
    if request.seed is not None and not -(2**63) <= request.seed < 2**64:
        raise BadValue("seed must be a whole number of 64 bits: no reply could tell a larger one")
    observed = manager.reset(
        _view(context),
        keyframe=request.keyframe_name,
        seed=request.seed,
        joint_values=joints,
        scope=scope,
        randomize=request.randomize,
    )
    context.session.model_version = manager.randomising.model_version
    observed.extras["setpoints"] = _setpoints(context)
    return state_reply(wire.ResetReply, context, observed)


@handler("forward")
def forward(context: Context, request: wire.ForwardRequest) -> wire.ForwardReply | bytes:
    """Recompute what follows from the state."""
    cameras, before = CameraSelection.read(context.manager.capture, request.include_cameras), _frame_id(context)
    observed = context.manager.forward(_view(context), keep_state=bool(request.include_cameras))
    if request.include_cameras:
        _look(context, cameras, observed, before)
    return state_reply(wire.ForwardReply, context, observed)


@handler("restore_state")
def restore_state(context: Context, request: wire.RestoreStateRequest) -> wire.RestoreStateReply | bytes:
    """Go to a state that was saved."""
    observed, switched = context.manager.restore_state(_asked_state(context, request), _view(context))
    if switched:
        observed.extras["equalities"] = switched
    observed.extras["setpoints"] = _setpoints(context)
    return state_reply(wire.RestoreStateReply, context, observed)


def _asked_state(context: Context, request: wire.RestoreStateRequest) -> bytes:
    if request.name is not None and request.state is not None:
        raise BadValue("restore_state takes the name of a state or the state itself, not both")
    if request.state is not None:
        return request.state
    if request.name is None:
        raise MissingField("restore_state needs the name of a state, or the state itself")
    return context.manager.states.get(request.name)


def _setpoints(context: Context) -> dict[str, list[float]]:
    """What the actuators of every articulation are told now."""
    return {one.prefix: one.staged.active.tolist() for one in context.manager.articulations.values()}


def _step_and_look(context: Context, request: wire.StepRequest, view: View) -> wire.StepReply | bytes:
    """A step, and what the cameras see afterwards."""
    cameras, before = CameraSelection.read(context.manager.capture, request.include_cameras), _frame_id(context)
    observed = _step(context, request, view, keep_state=True)
    _look(context, cameras, observed, before)
    return state_reply(wire.StepReply, context, observed)


def _frame_id(context: Context) -> int:
    """That of the state which the request has found."""
    return context.manager.engine.frame_id


def _look(context: Context, cameras: CameraSelection, observed: Observation, before: int) -> None:
    """Add what the cameras see to an observation; ``before`` is the `_frame_id` that its request has found."""
    manager = context.manager
    runs_by_itself, first = manager.mode is StepMode.LIVE, manager.engine.first_frame_id
    state, oldest = observed.snapshot or manager.engine.snapshot, first if runs_by_itself else max(before, first)
    frames, problems = cameras.take(manager.capture, state, oldest, runs_by_itself=runs_by_itself)
    observed.extras["cameras"] = frames
    if problems:
        _warn(observed, problems)


def _step(context: Context, request: wire.StepRequest, view: View, *, keep_state: bool = False) -> Observation:
    """A step as this session may make it."""
    session, manager = context.session, context.manager
    if session.observer:
        if manager.mode is not StepMode.LIVE or request.per_articulation:
            raise ObserverReadOnly("an observer may step only in live mode and without commands, which reads the state")
        return manager.read(view)
    if request.n_steps == 0 and _only_reads(request) and (session.operator or manager.mode is not StepMode.PUPPET):
        return manager.read(view, keep_state=keep_state)
    observed = manager.step(request, view, keep_state=keep_state, runs_paused=session.operator)
    if manager.ui_driven and request.per_articulation:
        _warn_of_ignored(context, request.per_articulation, observed)
    version = manager.randomising.model_version
    if version and version != session.model_version:
        session.model_version = version
        _warn(observed, [_MODEL_CHANGED])
    return observed


def _warn_of_ignored(
    context: Context, commands: Mapping[str, wire.ArticulationCommand | None], observed: Observation
) -> None:  # fmt: skip
    """Tell a session, once for each articulation, that its controls do nothing because of the control source."""
    session = context.session
    for prefix in sorted(context.manager.ui_driven & commands.keys() - session.warned_of_source):
        command = commands[prefix]
        if command is not None and (command.ctrl or command.ctrl_map):
            session.warned_of_source.add(prefix)
            _warn(observed, [_IGNORED.format(prefix)])


def _warn(observed: Observation, texts: list[str]) -> None:
    observed.extras["warnings"] = [*observed.extras.get("warnings", ()), *texts]


def _only_reads(request: wire.StepRequest) -> bool:
    """Whether a step of no steps commands nothing and pushes nothing."""
    pushed = (request.time, request.qpos, request.qvel, request.ctrl)
    return not request.per_articulation and all(one is None for one in pushed)


def _view(context: Context, word: str | None = None) -> View:
    session = context.session
    views = _PACKED if session.encoding is Encoding.MSGPACK else _PLAIN
    return views.get(word or session.observations) or views[one_of("observations", ObservationLevel, word or "")]


def state_reply(kind: type[AnyStateReply], context: Context, observed: Observation) -> AnyStateReply | bytes:
    """An observation as a session sees it: a whole frame when its blocks are packed."""
    blocks = observed.blocks
    if not isinstance(blocks, bytes):
        return plain_reply(kind, context, observed)
    step = context.parts.play.counter.between(context.session.steps_at_start, observed.steps)
    return _FRAMES[kind].build(observed.time, step, time_ns(), blocks, observed.extras)


def plain_reply(kind: type[AnyStateReply], context: Context, observed: Observation) -> AnyStateReply:
    """An observation whose blocks are not packed, as a typed reply."""
    articulations, entities = cast("PlainBlocks", observed.blocks)
    return kind(
        time=observed.time,
        step=context.play.counter.between(context.session.steps_at_start, observed.steps),
        sim_time=wire.ClockBlock.of_s(observed.time),
        wall_time=wire.ClockBlock.of_ns(time_ns()),
        per_articulation=articulations,
        entities=entities,
        **observed.extras,
    )
