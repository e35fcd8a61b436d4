"""``client.recording``: one frame per physics step, kept by the server until saved or cleared."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from urlab_client.errors import URLabRPCError
from urlab_client.namespaces.base import RpcNamespace
from urlab_client.types import RecordingHandle, RecordingStatus, RecordingSummary, result_of
from urlab_wire.errors import ErrorCode
from urlab_wire.ops import recording as wire

if TYPE_CHECKING:
    from urlab_client.client import URLabClient


class URLabRecordingAPI(RpcNamespace):
    """Record the running simulation. The properties ask the server while it simulates and knows the answer.

    Otherwise they tell what this client's own calls brought about.
    """

    NAME = "recording"

    def __init__(self, client: "URLabClient") -> None:
        super().__init__(client)
        self._is_active = False
        self._summary = RecordingSummary(0, 0.0)
        self._last_saved_path: Path | None = None

    @property
    def is_active(self) -> bool:
        """Whether a recording is running."""
        return self._now().active

    @property
    def frame_count(self) -> int:
        """Frames of the recording that is running, or was last stopped."""
        return self._now().frame_count

    @property
    def sim_duration(self) -> float:
        """Simulated seconds of the recording that is running, or was last stopped."""
        return self._now().sim_duration_s

    @property
    def last_saved_path(self) -> Path | None:
        """Where the last `save` went."""
        return self._last_saved_path

    def start(self, name: str | None = None, max_duration_s: float | None = None) -> RecordingHandle:
        """Begin recording; ``max_duration_s`` is a rolling window of simulated time."""
        reply = self._ask(wire.RecordingStartRequest(name=name, max_duration_s=max_duration_s))
        self._is_active = True
        return RecordingHandle(reply.name, reply.max_duration_s or None)

    def stop(self) -> RecordingSummary:
        """End recording; the frames stay on the server."""
        reply = self._ask(wire.RecordingStopRequest())
        self._is_active = False
        self._summary = RecordingSummary(reply.frame_count, reply.sim_duration_s)
        return self._summary

    def status(self) -> RecordingStatus:
        """How far the running or the last recording is (extension)."""
        return result_of(RecordingStatus, self._ask(wire.RecordingStatusRequest()))

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the running or last recording as JSON; a bare name goes to the server's replay folder.

        Returns the absolute path on the server's machine.
        """
        reply = self._ask(wire.RecordingSaveRequest(path=None if path is None else os.fspath(path)))
        self._last_saved_path = Path(reply.absolute_path)
        return self._last_saved_path

    def clear(self) -> None:
        """Forget the recorded frames; a recording that runs goes on."""
        self._ask(wire.RecordingClearRequest())
        self._summary = RecordingSummary(0, 0.0)

    def _now(self) -> RecordingStatus:
        summary, closed = self._summary, self._client._closed
        if closed or "recording_status" not in self._ops():
            active = self._is_active and not closed
            return RecordingStatus(active, "", summary.frame_count, summary.sim_duration_s)
        try:
            return self.status()
        except URLabRPCError as refused:
            if refused.code != ErrorCode.NO_ACTIVE_MANAGER:
                raise
            return RecordingStatus(False, "", summary.frame_count, summary.sim_duration_s)
