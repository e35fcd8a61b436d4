"""``client.recording``: one frame per physics step, kept by the server until saved or cleared.

``client.replay`` shows recordings again, in direct or puppet mode.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from urlab_client.errors import URLabRPCError
from urlab_client.namespaces.base import RpcNamespace
from urlab_client.types import RecordingHandle, RecordingSummary, ReplaySession, ReplayStatus
from urlab_wire.errors import ErrorCode
from urlab_wire.ops import recording as recording_wire
from urlab_wire.ops import replay as replay_wire

if TYPE_CHECKING:
    from urlab_client.client import URLabClient


class URLabRecordingAPI(RpcNamespace):
    """Record the running simulation. The properties tell what this client's own calls brought about."""

    NAME = "recording"

    def __init__(self, client: "URLabClient") -> None:
        super().__init__(client)
        self._is_active = False
        self._summary = RecordingSummary(0, 0.0)
        self._last_saved_path: Path | None = None

    @property
    def is_active(self) -> bool:
        """Whether a recording that this client began is running."""
        return self._is_active

    @property
    def frame_count(self) -> int:
        """Frames of the recording that was last stopped."""
        return self._summary.frame_count

    @property
    def sim_duration(self) -> float:
        """Simulated seconds of the recording that was last stopped."""
        return self._summary.sim_duration_s

    @property
    def last_saved_path(self) -> Path | None:
        """Where the last `save` went."""
        return self._last_saved_path

    def start(self, name: str | None = None, max_duration_s: float | None = None) -> RecordingHandle:
        """Begin recording; ``max_duration_s`` is a rolling window of simulated time."""
        reply = self._ask(recording_wire.RecordingStartRequest(name=name, max_duration_s=max_duration_s))
        self._is_active = True
        return RecordingHandle(reply.name, reply.max_duration_s or None)

    def stop(self) -> RecordingSummary:
        """End recording; the frames stay on the server."""
        reply = self._ask(recording_wire.RecordingStopRequest())
        self._is_active = False
        self._summary = RecordingSummary(reply.frame_count, reply.sim_duration_s)
        return self._summary

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the running or last recording as JSON; a bare name goes to the server's replay folder.

        Returns the absolute path on the server's machine.
        """
        reply = self._ask(recording_wire.RecordingSaveRequest(path=None if path is None else os.fspath(path)))
        self._last_saved_path = Path(reply.absolute_path)
        return self._last_saved_path

    def clear(self) -> None:
        """Forget the recorded frames; a recording that runs goes on."""
        self._ask(recording_wire.RecordingClearRequest())
        self._summary = RecordingSummary(0, 0.0)


class URLabReplayAPI(RpcNamespace):
    """Replay on the server: while it runs, ``client.step(n)`` shows the next n recorded frames."""

    NAME = "replay"

    def __init__(self, client: "URLabClient") -> None:
        super().__init__(client)
        self._active_session: str | None = None

    @property
    def active_session(self) -> str | None:
        """The recording that `start` plays, as far as this client chose it."""
        return self._active_session

    def load(self, path: str | os.PathLike[str]) -> ReplaySession:
        """Read a recording on the server's machine; a bare name is looked up in its replay folder."""
        source = os.fspath(path)
        reply = self._ask(replay_wire.ReplayLoadRequest(path=source))
        self._active_session = reply.name
        return ReplaySession(reply.name, reply.total_frames, Path(source))

    def list_sessions(self) -> list[str]:
        """The recordings that are loaded."""
        return self._ask(replay_wire.ReplayListSessionsRequest()).sessions

    def set_active(self, name: str) -> None:
        """Choose the recording that `start` plays."""
        self._ask(replay_wire.ReplaySetActiveRequest(name=name))
        self._active_session = name

    def start(self, *, loop: bool = False) -> ReplayStatus:
        """Go to frame 0 of the chosen recording; with ``loop`` it begins again after its end."""
        reply = self._ask(replay_wire.ReplayStartRequest(loop=True if loop else None))
        self._active_session = reply.active_session or self._active_session or ""
        return ReplayStatus(self._active_session, reply.total_frames)

    def stop(self) -> None:
        """End the replay; stepping goes on from the state shown."""
        self._ask(replay_wire.ReplayStopRequest())

    def play(self, path_or_name: str | os.PathLike[str], loop: bool = False) -> ReplaySession:
        """Load (unless it is the name of a loaded recording), choose and start."""
        session = self._find(os.fspath(path_or_name))
        status = self.start(loop=loop)
        return ReplaySession(session.name, status.total_frames or session.total_frames, session.source_path)

    def _find(self, path_or_name: str) -> ReplaySession:
        if not _is_path(path_or_name):
            try:
                self.set_active(path_or_name)
                return ReplaySession(path_or_name)
            except URLabRPCError as unknown:
                if unknown.code != ErrorCode.REPLAY_SESSION_NOT_FOUND:
                    raise
        session = self.load(path_or_name)
        self.set_active(session.name)
        return session


def _is_path(word: str) -> bool:
    return "/" in word or "\\" in word or word.endswith(".json")
