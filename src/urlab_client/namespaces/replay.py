"""``client.replay``: recordings shown again, step by step or, in live mode, by themselves."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from urlab_client.errors import URLabRPCError
from urlab_client.namespaces.base import RpcNamespace, found_path
from urlab_client.results import result_of
from urlab_client.types import ReplaySession, ReplayStatus
from urlab_wire.errors import ErrorCode
from urlab_wire.ops import replay as wire

if TYPE_CHECKING:
    from urlab_client.client import URLabClient


class URLabReplayAPI(RpcNamespace):
    """Replay on the server: while it runs, ``client.step(n)`` shows the next n recorded frames.

    In live mode, `start` with ``paused`` (extension) plays them at the pace of ``client.runtime.set_sim_speed``;
    ``client.runtime.set_paused`` halts and resumes.
    """

    NAME = "replay"

    def __init__(self, client: "URLabClient") -> None:
        super().__init__(client)
        self._active_session: str | None = None

    @property
    def active_session(self) -> str | None:
        """The recording that `start` plays, as far as this client chose it."""
        return self._active_session

    def load(self, path: str | os.PathLike[str]) -> ReplaySession:
        """Read a recording on the server's machine; a bare name is looked up in its replay folder.

        A relative path with a folder in it is looked for from this program's folder first.
        """
        source = found_path(path)
        reply = self._ask(wire.ReplayLoadRequest(path=source))
        self._active_session = reply.name
        return ReplaySession(reply.name, reply.total_frames, Path(source))

    def list_sessions(self) -> list[str]:
        """The names of the recordings that are loaded."""
        return self._ask(wire.ReplayListSessionsRequest()).sessions

    def set_active(self, name: str) -> None:
        """Choose the recording that `start` plays."""
        self._ask(wire.ReplaySetActiveRequest(name=name))
        self._active_session = name

    def start(self, *, loop: bool = False, paused: bool | None = None) -> ReplayStatus:
        """Go to frame 0 of the chosen recording; with ``loop`` it begins again after its end.

        ``paused`` (extension) lets live mode replay as well: False plays, True waits for `seek` or for the pause to
        end. Without it, live mode refuses.
        """
        reply = self._ask(wire.ReplayStartRequest(loop=True if loop else None, paused=paused))
        self._active_session = reply.active_session or self._active_session or ""
        return ReplayStatus(self._active_session, reply.total_frames)

    def seek(self, frame: int | None = None, *, time: float | None = None) -> ReplayStatus:
        """Go to a frame, counted from 0, or to the one at that time, or last before it (extension).

        ``time`` is in simulated seconds, as the recording's frames have it. In every step mode; `start` comes first.
        """
        reply = self._ask(wire.ReplaySeekRequest(frame=frame, time=time))
        return result_of(ReplayStatus, reply)

    def status(self) -> ReplayStatus | None:
        """Where the replay stands, or None while there is none (extension). It waits for no step."""
        return self._client.sim.status().replay

    def stop(self) -> None:
        """End the replay; stepping goes on from the state shown."""
        self._ask(wire.ReplayStopRequest())

    def play(
        self, path_or_name: str | os.PathLike[str], loop: bool = False, *, paused: bool | None = None
    ) -> ReplaySession:
        """Load (unless it is the name of a loaded recording), choose and start."""
        session = self._find(os.fspath(path_or_name))
        status = self.start(loop=loop, paused=paused)
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
