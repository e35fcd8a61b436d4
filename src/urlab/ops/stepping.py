"""step, reset and forward."""

import time
from typing import TypeVar

from urlab.errors import ObserverReadOnly
from urlab.manager import Observation, View
from urlab.ops.camera_requests import CameraOrder
from urlab.ops.checks import one_of
from urlab.ops.context import Context
from urlab.ops.registry import handler
from urlab_wire.enums import Encoding, ObservationLevel, StepMode
from urlab_wire.ops.stepping import (
    ClockBlock,
    ForwardReply,
    ForwardRequest,
    ResetReply,
    ResetRequest,
    StateReply,
    StepReply,
    StepRequest,
)

AnyStateReply = TypeVar("AnyStateReply", bound=StateReply)
_PACKED: dict[str, View] = {level: View(level, packed=True) for level in ObservationLevel}
_PLAIN: dict[str, View] = {level: View(level) for level in ObservationLevel}


@handler("step")
def step(context: Context, request: StepRequest) -> StepReply:
    """Advance, in the mode in force. An observer may read the live state this way."""
    view, manager = _view(context, request.observations), context.manager
    if request.include_cameras:
        return _step_and_look(context, request, view)
    seen = _observer_step(context, request, view) if context.session.observer else manager.step(request, view)
    return state_reply(StepReply, context, seen)


@handler("reset")
def reset(context: Context, request: ResetRequest) -> ResetReply:
    """Back to the start."""
    joints = {
        prefix: {joint: value if isinstance(value, list) else [value] for joint, value in values.items()}
        for prefix, values in (request.per_articulation_qpos or {}).items()
    }
    observation = context.manager.reset(
        _view(context), keyframe=request.keyframe_name, seed=request.seed, joint_values=joints
    )
    reply = state_reply(ResetReply, context, observation)
    reply.setpoints = {one.prefix: one.staged.active.tolist() for one in context.manager.articulations.values()}
    return reply


@handler("forward")
def forward(context: Context, request: ForwardRequest) -> ForwardReply:  # noqa: ARG001 - it has no fields
    """Recompute what follows from the state."""
    return state_reply(ForwardReply, context, context.manager.forward(_view(context)))


def _step_and_look(context: Context, request: StepRequest, view: View) -> StepReply:
    """A step, and what the cameras see afterwards."""
    manager = context.manager
    order = CameraOrder.read(manager.cameras, request.include_cameras)
    if context.session.observer:
        seen = _observer_step(context, request, view)
        seen.snapshot = manager.engine.snapshot
    else:
        seen = manager.step(request, view, keep_state=True)
    frames, problems = order.take(manager.cameras, seen.snapshot)
    seen.warnings += problems
    reply = state_reply(StepReply, context, seen)
    reply.cameras = frames
    return reply


def _observer_step(context: Context, request: StepRequest, view: View) -> Observation:
    if context.manager.mode is not StepMode.LIVE or request.per_articulation:
        raise ObserverReadOnly("an observer may step only in live mode and without commands, which reads the state")
    return context.manager.read(view)


def _view(context: Context, word: str | None = None) -> View:
    session = context.session
    views = _PACKED if session.encoding is Encoding.MSGPACK else _PLAIN
    return views.get(word or session.observations) or views[one_of("observations", ObservationLevel, word or "")]


def state_reply(kind: type[AnyStateReply], context: Context, seen: Observation) -> AnyStateReply:
    """An observation as a session sees it."""
    return kind(
        time=seen.time,
        step=context.play.counter.between(context.session.steps_at_start, seen.steps),
        sim_time=ClockBlock.of_s(seen.time),
        wall_time=ClockBlock.of_ns(time.time_ns()),
        per_articulation=seen.articulations,
        entities=seen.entities,
        perturbation=seen.perturbation,
        replay=seen.replay,
        warnings=seen.warnings or None,
    )
