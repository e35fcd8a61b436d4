"""Recordings, replays and exports, as the server tells of them."""

from dataclasses import dataclass, field
from pathlib import Path

from urlab_client.results import ShortRepr
from urlab_wire.enums import ExportState


@dataclass(repr=False)
class RecordingHandle(ShortRepr):
    """A recording that has begun. ``max_duration_s`` is its rolling window of simulated time."""

    name: str
    max_duration_s: float | None = None


@dataclass(repr=False)
class RecordingSummary(ShortRepr):
    """What a recording holds: one frame per physics step. ``warnings`` tell of a file that does not have all of it."""

    frame_count: int
    sim_duration_s: float
    warnings: list[str] = field(default_factory=list)


@dataclass(repr=False)
class RecordingStatus(ShortRepr):
    """How far the running or the last recording is; ``active`` says whether it runs."""

    active: bool
    name: str
    frame_count: int
    sim_duration_s: float


@dataclass(repr=False)
class RecordingInfo(ShortRepr):
    """A recording that is saved on the server; `URLabReplayAPI.load` takes its ``name``. An extension of ours.

    ``written`` is in seconds since 1970. Frames, simulated seconds and level are there where the beginning of the file
    tells them; ``problem`` says why it cannot be read.
    """

    name: str
    size_bytes: int
    written: float
    format: str
    frame_count: int | None = None
    sim_duration_s: float | None = None
    level: str | None = None
    problem: str | None = None


@dataclass(repr=False)
class ExportStatus(ShortRepr):
    """How far an export is: ``done`` of ``total`` pictures; ``path`` is on the server's machine. An extension of ours.

    ``code`` and ``message`` say why it failed, ``warnings`` what is not as it may have been meant.
    """

    export_id: str
    state: ExportState
    path: Path
    done: int = 0
    total: int = 0
    format: str = ""
    recording: str = ""
    code: str | None = None
    message: str | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def is_unfinished(self) -> bool:
        """Whether it waits for others, or runs."""
        return self.state in (ExportState.WAITING, ExportState.RUNNING)


@dataclass(repr=False)
class ReplayStatus(ShortRepr):
    """What is being replayed.

    What follows ``total_frames`` is an extension of ours: the frame that is shown, from 0, its timestamp in simulated
    seconds, whether frames follow one another by themselves (in live mode), and whether they begin again at the end.
    """

    active_session: str
    total_frames: int = 0
    frame: int = 0
    time: float | None = None
    playing: bool = False
    loop: bool = False


@dataclass(repr=False)
class ReplaySession(ShortRepr):
    """A recording that is loaded for replay."""

    name: str
    total_frames: int = 0
    source_path: Path | None = None
