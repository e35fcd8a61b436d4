"""``client.recording``: one frame per physics step, kept by the server until saved or cleared."""

import contextlib
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from urlab_client.enums import ExportState
from urlab_client.errors import URLabRPCError
from urlab_client.namespaces.base import RpcNamespace, found_path, written_path
from urlab_client.results import result_of
from urlab_client.types import (
    ExportStatus,
    RecordingHandle,
    RecordingInfo,
    RecordingStatus,
    RecordingSummary,
)
from urlab_wire.errors import ErrorCode
from urlab_wire.ops import recording as wire

if TYPE_CHECKING:
    from urlab_client.client import URLabClient

log = logging.getLogger("urlab_client.recording")

_POLL_S = 0.1
_Recordings = list[RecordingInfo]
_Exports = list[ExportStatus]


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

    def start(
        self,
        name: str | None = None,
        max_duration_s: float | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
    ) -> RecordingHandle:
        """Begin recording; ``max_duration_s`` is a rolling window of simulated time.

        With ``path`` (extension) frames go to that MCAP file as they come: a server that is killed loses less than a
        second. It is named as in `save`; `stop` completes it.
        """
        where = None if path is None else written_path(path)
        reply = self._ask(wire.RecordingStartRequest(name=name, max_duration_s=max_duration_s, path=where))
        self._is_active = True
        self._last_saved_path = self._last_saved_path if where is None else Path(reply.absolute_path or where)
        return RecordingHandle(reply.name, reply.max_duration_s or None)

    def stop(self) -> RecordingSummary:
        """End recording; the frames stay on the server."""
        reply = self._ask(wire.RecordingStopRequest())
        self._is_active = False
        self._summary = RecordingSummary(reply.frame_count, reply.sim_duration_s, reply.warnings or [])
        for warning in self._summary.warnings:
            log.warning("the server warns: %s", warning)
        return self._summary

    def status(self) -> RecordingStatus:
        """How far the running or the last recording is (extension)."""
        return result_of(RecordingStatus, self._ask(wire.RecordingStatusRequest()))

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the running or last recording as JSON; a bare name goes to the server's replay folder.

        A relative path with a folder in it is meant from this program's folder. Returns the absolute path on the
        server's machine.
        """
        reply = self._ask(wire.RecordingSaveRequest(path=None if path is None else written_path(path)))
        self._last_saved_path = Path(reply.absolute_path)
        return self._last_saved_path

    def clear(self) -> None:
        """Forget the recorded frames; a recording that runs goes on."""
        self._ask(wire.RecordingClearRequest())
        self._summary = RecordingSummary(0, 0.0)

    def list(self) -> _Recordings:
        """The recordings that are saved in the server's replay folder, the newest first (extension)."""
        return [result_of(RecordingInfo, one) for one in self._ask(wire.ListRecordingsRequest()).recordings]

    def export(
        self,
        path: str | os.PathLike[str],
        out: str | os.PathLike[str] | None = None,
        *,
        format: str = "mp4",  # noqa: A002 - the protocol's word
        also: Sequence[str | os.PathLike[str]] = (),
        task: str | None = None,
        camera: str | None = None,
        cameras: Sequence[str] | None = None,
        width: int | None = None,
        height: int | None = None,
        fps: float | None = None,
        start: float | None = None,
        end: float | None = None,
        wait: bool = True,
        progress: Callable[[ExportStatus], None] | None = None,
    ) -> ExportStatus:
        """Have the server write a saved recording in another format (extension): mp4, mcap, parquet, hdf5, lerobot.

        Pictures show the running scene, or the edited level while nothing plays, in the recorded states: a film through
        ``camera``, or else as the viewport shows it now; the other formats through ``cameras``. ``also`` are further
        recordings for formats that hold several, ``task`` says in words what is done in them. ``width`` and ``height``
        are in pixels; a second of a film is a second of simulated time, ``start`` and ``end`` are timestamps of the
        recording. ``out`` is named as in `save`; by default it has the name of the recording, in the replay folder.
        Only files of ours are replaced. A film needs the server's extra ``video``, the rest ``record``.

        Returns when the file is there; an exception meanwhile, Ctrl-C for one, cancels it. ``progress`` is called again
        and again until then. With ``wait`` False it returns at once: see `export_status` and `cancel_export`.
        """
        reply = self._ask(
            wire.RecordingExportRequest(
                path=found_path(path),
                format=format,
                out=None if out is None else written_path(out),
                also=[found_path(one) for one in also] or None,
                task=task,
                camera=camera,
                cameras=None if cameras is None else [*cameras],
                width=width,
                height=height,
                fps=fps,
                from_=start,
                to=end,
            )
        )
        begun = ExportStatus(
            reply.export_id,
            ExportState.WAITING,
            Path(reply.absolute_path),
            total=reply.total,
            format=format,
            warnings=reply.warnings or [],
        )
        return self._finished(begun, progress) if wait else begun

    def export_status(self, export_id: str | None = None) -> _Exports:
        """How far an export is, or all that the server remembers, in a list (extension)."""
        reply = self._ask(wire.ExportStatusRequest(export_id=export_id))
        return [_export(one) for one in reply.exports]

    def cancel_export(self, export_id: str) -> bool:
        """End an export, which leaves no file; whether it had not ended yet (extension)."""
        return self._ask(wire.ExportCancelRequest(export_id=export_id)).was_running

    def _finished(self, status: ExportStatus, progress: Callable[[ExportStatus], None] | None) -> ExportStatus:
        """An export when it has ended well."""
        try:
            while status.is_unfinished:
                if progress is not None:
                    progress(status)
                time.sleep(_POLL_S)
                warnings, (status,) = status.warnings, self.export_status(status.export_id)
                status.warnings = warnings
            if progress is not None:
                progress(status)
        except BaseException:
            with contextlib.suppress(Exception):
                self.cancel_export(status.export_id)
            raise
        if status.state is not ExportState.DONE:
            message = status.message or f"{status.export_id} was cancelled"
            raise URLabRPCError(status.code or status.state.value, message, op="recording_export")
        return status

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


def _export(block: wire.ExportBlock) -> ExportStatus:
    return result_of(ExportStatus, block, state=ExportState(block.state), path=Path(block.absolute_path))
