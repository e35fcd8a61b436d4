"""Recording over the wire."""

from urlab.ops.context import Context, handler
from urlab_wire.ops import recording as wire


@handler("recording_start")
def start(context: Context, request: wire.RecordingStartRequest) -> wire.RecordingStartReply:
    """Begin to record the joints, one frame per mj_step."""
    name, max_duration_s = context.manager.record_replay.start_recording(request.name, request.max_duration_s)
    return wire.RecordingStartReply(name=name, max_duration_s=max_duration_s)


@handler("recording_stop")
def stop(context: Context, request: wire.RecordingStopRequest) -> wire.RecordingStopReply:  # noqa: ARG001
    """End the running recording; its frames stay until another one begins."""
    ended = context.manager.record_replay.stop_recording()
    return wire.RecordingStopReply(name=ended.name, frame_count=ended.frame_count, sim_duration_s=ended.sim_duration_s)


@handler("recording_status")
def status(context: Context, request: wire.RecordingStatusRequest) -> wire.RecordingStatusReply:  # noqa: ARG001
    """How far the running or the last recording is."""
    now = context.manager.record_replay.recording_state()
    return wire.RecordingStatusReply(
        active=now.active, name=now.name, frame_count=now.frame_count, sim_duration_s=now.sim_duration_s
    )


@handler("recording_save")
def save(context: Context, request: wire.RecordingSaveRequest) -> wire.RecordingSaveReply:
    """Write the running or the last recording to a file."""
    return wire.RecordingSaveReply(absolute_path=str(context.manager.record_replay.save_recording(request.path)))


@handler("recording_clear")
def clear(context: Context, request: wire.RecordingClearRequest) -> wire.RecordingClearReply:  # noqa: ARG001
    """Forget the frames of the running or the last recording."""
    context.manager.record_replay.clear_recording()
    return wire.RecordingClearReply()
