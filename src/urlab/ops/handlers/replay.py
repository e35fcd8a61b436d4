"""Replay over the wire."""

from urlab.errors import BadValue, MissingField
from urlab.ops.context import Context, handler
from urlab.ops.parsing import required
from urlab_wire.ops import replay as wire


@handler("replay_load")
def load(context: Context, request: wire.ReplayLoadRequest) -> wire.ReplayLoadReply:
    """Read a recording."""
    name, total_frames = context.manager.record_replay.load(required("path", request.path))
    return wire.ReplayLoadReply(name=name, total_frames=total_frames)


@handler("replay_list_sessions")
def list_sessions(
    context: Context,
    request: wire.ReplayListSessionsRequest,  # noqa: ARG001
) -> wire.ReplayListSessionsReply:
    """What can be replayed."""
    return wire.ReplayListSessionsReply(sessions=context.manager.record_replay.names())


@handler("replay_set_active")
def set_active(context: Context, request: wire.ReplaySetActiveRequest) -> wire.ReplaySetActiveReply:
    """Choose the session that replay_start plays."""
    context.manager.record_replay.set_active(required("name", request.name))
    return wire.ReplaySetActiveReply()


@handler("replay_start")
def start(context: Context, request: wire.ReplayStartRequest) -> wire.ReplayStartReply:
    """Play the active session, from its frame 0."""
    name, total = context.manager.start_replay(bool(request.loop), request.paused)
    return wire.ReplayStartReply(active_session=name, total_frames=total)


@handler("replay_seek")
def seek(context: Context, request: wire.ReplaySeekRequest) -> wire.ReplaySeekReply:
    """Go to another frame of the session that is replayed."""
    if request.frame is None and request.time is None:
        raise MissingField("replay_seek needs frame or time")
    if request.frame is not None and request.time is not None:
        raise BadValue("replay_seek takes frame or time, not both")
    now = context.manager.record_replay.seek(request.frame, request.time)
    return wire.ReplaySeekReply(
        active_session=now.name, frame=now.frame, total_frames=now.total_frames, time=now.time_s
    )


@handler("replay_stop")
def stop(context: Context, request: wire.ReplayStopRequest) -> wire.ReplayStopReply:  # noqa: ARG001
    """End the replay; stepping goes on from the state shown."""
    context.manager.record_replay.stop_replay()
    return wire.ReplayStopReply()
