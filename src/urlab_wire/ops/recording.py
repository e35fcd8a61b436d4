"""Recording: one frame per mj_step, kept by the server until it is saved or cleared."""

from urlab_wire.envelope import Name, Reply, Request, Text


class RecordingStartRequest(Request["RecordingStartReply"], tag="recording_start"):
    """Begin; ``max_duration_s`` is a rolling window of simulated time."""

    name: Name | None = None
    max_duration_s: float | None = None


class RecordingStartReply(Reply, tag="recording_start_ok"):
    """The name and the window in force."""

    name: str
    max_duration_s: float


class RecordingStopRequest(Request["RecordingStopReply"], tag="recording_stop"):
    """End; the frames stay until they are cleared or another recording begins."""


class RecordingStopReply(Reply, tag="recording_stop_ok"):
    """What was captured; one timestep per frame."""

    name: str
    frame_count: int
    sim_duration_s: float


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
