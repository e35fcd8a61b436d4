"""Recording over the wire, saved recordings, and exports of them."""

from urlab.export import ExportJob
from urlab.ops.context import Context, handler
from urlab.recording import RecordingFile, list_recordings
from urlab_wire.ops import recording as wire


@handler("recording_start")
def start(context: Context, request: wire.RecordingStartRequest) -> wire.RecordingStartReply:
    """Begin to record the joints, one frame per mj_step."""
    record_replay = context.manager.record_replay
    name, max_duration_s, path = record_replay.start_recording(request.name, request.max_duration_s, request.path)
    absolute_path = None if path is None else str(path)
    return wire.RecordingStartReply(name=name, max_duration_s=max_duration_s, absolute_path=absolute_path)


@handler("recording_stop")
def stop(context: Context, request: wire.RecordingStopRequest) -> wire.RecordingStopReply:  # noqa: ARG001
    """End the running recording; its frames stay until another one begins."""
    ended = context.manager.record_replay.stop_recording()
    return wire.RecordingStopReply(
        name=ended.name,
        frame_count=ended.frame_count,
        sim_duration_s=ended.sim_duration_s,
        warnings=list(ended.warnings) or None,
    )


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


@handler("list_recordings")
def list_saved(context: Context, request: wire.ListRecordingsRequest) -> wire.ListRecordingsReply:  # noqa: ARG001
    """The recordings in the project's replay folder."""
    folder = context.world.project.replays_dir
    found, is_cut = list_recordings(folder, context.play.roots)
    return wire.ListRecordingsReply(
        folder=str(folder), recordings=[_recording_block(one) for one in found], truncated=is_cut
    )


def _recording_block(found: RecordingFile) -> wire.RecordingBlock:
    return wire.RecordingBlock(
        name=found.name,
        size_bytes=found.size_bytes,
        written=found.written_s,
        format=found.format,
        frame_count=found.header.frame_count,
        sim_duration_s=found.header.sim_duration_s,
        level=found.header.level,
        problem=found.problem,
    )


@handler("recording_export")
def export(context: Context, request: wire.RecordingExportRequest) -> wire.RecordingExportReply:
    """Begin to write a saved recording in another format."""
    job, warnings = context.parts.exports.begin(request, context.caller.name)
    return wire.RecordingExportReply(
        export_id=job.id, absolute_path=str(job.path), total=job.total, warnings=warnings or None
    )


@handler("export_status")
def export_status(context: Context, request: wire.ExportStatusRequest) -> wire.ExportStatusReply:
    """How far exports are."""
    jobs = context.parts.exports.jobs
    chosen = jobs.all() if request.export_id is None else [jobs.find(request.export_id)]
    return wire.ExportStatusReply(exports=[_export_block(one) for one in chosen])


def _export_block(job: ExportJob) -> wire.ExportBlock:
    failure = job.failure
    return wire.ExportBlock(
        export_id=job.id,
        state=job.state,
        format=job.format,
        recording=job.recording,
        absolute_path=str(job.path),
        done=job.done,
        total=job.total,
        code=None if failure is None else failure.code,
        message=None if failure is None else failure.message,
    )


@handler("export_cancel")
def export_cancel(context: Context, request: wire.ExportCancelRequest) -> wire.ExportCancelReply:
    """End an export that has not ended."""
    return wire.ExportCancelReply(was_running=context.parts.exports.jobs.find(request.export_id).cancel())
