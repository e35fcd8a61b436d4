"""Recording: one frame per mj_step, kept by the server until saved or cleared; saved files, and exports of them."""

import msgspec

from urlab_wire.envelope import Name, Reply, Request, Text


class RecordingStartRequest(Request["RecordingStartReply"], tag="recording_start"):
    """Begin; ``max_duration_s`` is a rolling window of simulated time.

    With ``path``, an extension, frames go to that MCAP file as they come.
    """

    name: Name | None = None
    max_duration_s: float | None = None
    path: Text | None = None


class RecordingStartReply(Reply, tag="recording_start_ok"):
    """The name and the window in force; where the file is, if there is one."""

    name: str
    max_duration_s: float
    absolute_path: str | None = None


class RecordingStopRequest(Request["RecordingStopReply"], tag="recording_stop"):
    """End; the frames stay until they are cleared or another recording begins."""


class RecordingStopReply(Reply, tag="recording_stop_ok"):
    """What was captured; one timestep per frame. ``warnings`` tell of a file that does not have every frame."""

    name: str
    frame_count: int
    sim_duration_s: float
    warnings: list[str] | None = None


class RecordingSaveRequest(Request["RecordingSaveReply"], tag="recording_save"):
    """Write the running or the last stopped recording; a bare name goes to the replay folder."""

    path: Text | None = None


class RecordingSaveReply(Reply, tag="recording_save_ok"):
    """Where the file is."""

    absolute_path: str


class RecordingClearRequest(Request["RecordingClearReply"], tag="recording_clear"):
    """Forget the captured frames."""


class RecordingClearReply(Reply, tag="recording_clear_ok"):
    """It was done; there is nothing more to say."""


class RecordingStatusRequest(Request["RecordingStatusReply"], tag="recording_status"):
    """Ask how far the running or the last recording is. An extension."""


class RecordingStatusReply(Reply, tag="recording_status_ok"):
    """``active`` says whether it runs; without any recording there are 0 frames of ``live``."""

    active: bool
    name: str
    frame_count: int
    sim_duration_s: float


class RecordingBlock(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A file in the replay folder. ``name`` is what replay_load takes; ``written`` is in seconds since 1970 (UTC).

    ``frame_count``, ``sim_duration_s`` and ``level`` are there where the beginning of the file tells them, ``problem``
    where it cannot be read.
    """

    name: str
    size_bytes: int
    written: float
    format: str
    frame_count: int | None = None
    sim_duration_s: float | None = None
    level: str | None = None
    problem: str | None = None


class ListRecordingsRequest(Request["ListRecordingsReply"], tag="list_recordings"):
    """Ask which recordings are saved in the project's replay folder. An extension."""


class ListRecordingsReply(Reply, tag="list_recordings_ok"):
    """The newest first; ``truncated`` says that there are more than are listed."""

    folder: str
    recordings: list[RecordingBlock]
    truncated: bool


class RecordingExportRequest(Request["RecordingExportReply"], tag="recording_export"):
    """Begin to write saved recordings as ``mp4``, ``mcap``, ``parquet``, ``hdf5`` or ``lerobot``. An extension.

    Pictures show the running scene, or the edited level while nothing plays, in the recorded states: a film through
    ``camera``, or else the viewport's, where it is now; other formats through ``cameras``. ``also`` are further
    recordings for formats of several episodes, and ``task`` says in words what is done in them. ``out`` is named as in
    recording_save; by default it is beside the recording. ``width`` and ``height`` are in pixels, ``fps`` are samples
    per simulated second, ``from`` and ``to`` are timestamps of the recording.
    """

    path: Text
    format: str
    out: Text | None = None
    also: list[Text] | None = None
    task: Text | None = None
    camera: Text | None = None
    cameras: list[Text] | None = None
    width: int | None = None
    height: int | None = None
    fps: float | None = None
    from_: float | None = msgspec.field(default=None, name="from")
    to: float | None = None


class RecordingExportReply(Reply, tag="recording_export_ok"):
    """The export has begun, or waits for others; export_status tells how far it is. ``total`` is its length."""

    export_id: str
    absolute_path: str
    total: int
    warnings: list[str] | None = None


class ExportBlock(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One export. ``done`` of ``total`` pictures are there; ``code`` and ``message`` say why it failed, if it did."""

    export_id: str
    state: str
    format: str
    recording: str
    absolute_path: str
    done: int
    total: int
    code: str | None = None
    message: str | None = None


class ExportStatusRequest(Request["ExportStatusReply"], tag="export_status"):
    """Ask how far an export is, or all of them. An extension."""

    export_id: Name | None = None


class ExportStatusReply(Reply, tag="export_status_ok"):
    """The exports, oldest first; those that have ended are kept for a while."""

    exports: list[ExportBlock]


class ExportCancelRequest(Request["ExportCancelReply"], tag="export_cancel"):
    """End an export; what it would have written stays as it was before. An extension."""

    export_id: Name


class ExportCancelReply(Reply, tag="export_cancel_ok"):
    """Whether it had not ended yet."""

    was_running: bool
