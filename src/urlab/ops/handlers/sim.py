"""The play lifecycle over the wire, and the server's log."""

from urlab.errors import BadValue
from urlab.manager.play import DEFAULT_TIMEOUT_S, PlayStatus
from urlab.monitoring.log_buffer import BufferedRecord
from urlab.numbers import finite_number
from urlab.ops.context import Context, handler
from urlab.ops.handlers.session import handshake
from urlab.ops.parsing import one_of
from urlab_wire.enums import PIEState, StepMode
from urlab_wire.ops import sim as wire
from urlab_wire.ops.replay import ReplayState

MAX_TIMEOUT_S = 110.0


@handler("begin_pie")
def begin_pie(context: Context, request: wire.BeginPieRequest) -> wire.BeginPieReply:
    """Compile and play; what goes wrong is a state, not an error."""
    timeout_s = DEFAULT_TIMEOUT_S if request.timeout_s is None else finite_number("timeout_s", request.timeout_s)
    if timeout_s <= 0:
        raise BadValue(f"timeout_s must be above zero, but is {timeout_s}")
    mode = one_of("step_mode", StepMode, request.step_mode) if request.step_mode else None
    mode = mode or context.sessions.wanted_mode(context.session)
    status = context.play.begin(request.level_path or None, timeout_s=min(timeout_s, MAX_TIMEOUT_S), mode=mode)
    reply = wire.BeginPieReply(state=status.state, compile_error=status.compile_error)
    if status.state is PIEState.READY:
        reply.handshake_payload = handshake(context)
    return reply


@handler("stop_pie")
def stop_pie(context: Context, request: wire.StopPieRequest) -> wire.StopPieReply:  # noqa: ARG001 - no fields
    """Back to the editor."""
    context.play.stop()
    return wire.StopPieReply()


@handler("pie_status")
def pie_status(context: Context, request: wire.PieStatusRequest) -> wire.PieStatusReply:  # noqa: ARG001 - no fields
    """State of the play lifecycle, level, mode, pause, pace, simulated time, seed and control sources."""
    status = context.play.status()
    return wire.PieStatusReply(
        state=status.state,
        compile_error=status.compile_error,
        sim_time=status.sim_time,
        level=(context.play.level if context.play.is_playing else context.world.level).path,
        mode=status.mode,
        paused=status.paused,
        speed_percent=status.speed_percent,
        seed=status.seed,
        control_source=None if status.control_source is None else dict(status.control_source),
        physics_error=status.physics_error,
        replay=_replay(status),
    )


def _replay(status: PlayStatus) -> ReplayState | None:
    at = status.replay
    if at is None:
        return None
    return ReplayState(
        active_session=at.name,
        frame=at.frame,
        total_frames=at.total_frames,
        time=at.time_s,
        playing=status.replay_plays,
        loop=at.loop,
    )


@handler("recent_log")
def recent_log(context: Context, request: wire.RecentLogRequest) -> wire.RecentLogReply:
    """The newest records of the log, and the ops that changed the world."""
    records, last = context.parts.log.after(request.after or 0)
    return wire.RecentLogReply(last=last, records=[_log_block(one) for one in records])


def _log_block(record: BufferedRecord) -> wire.LogBlock:
    return wire.LogBlock(
        number=record.number,
        time=record.time_s,
        level=record.level,
        logger=record.logger,
        message=record.message,
        caller=record.caller,
        session=record.session,
        op=record.op,
        code=record.code,
    )
