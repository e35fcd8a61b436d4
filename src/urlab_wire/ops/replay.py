"""Replay of saved or live recordings: step by step in direct and puppet mode, by itself in live mode."""

import msgspec

from urlab_wire.envelope import Reply, Request, Text


class ReplayState(msgspec.Struct, kw_only=True):
    """Where a replay stands: the frame that is shown, from 0, and its timestamp in simulated seconds. An extension.

    ``playing`` says that frames follow one another by themselves: in live mode, not paused, not at the end.
    """

    active_session: str
    frame: int
    total_frames: int
    time: float
    playing: bool
    loop: bool


class ReplayLoadRequest(Request["ReplayLoadReply"], tag="replay_load"):
    """Read a recording and make it the active one; a bare name is looked up in the replay folder."""

    path: Text | None = None


class ReplayLoadReply(Reply, tag="replay_load_ok"):
    """The name under which it is known."""

    name: str
    total_frames: int


class ReplayListSessionsRequest(Request["ReplayListSessionsReply"], tag="replay_list_sessions"):
    """Ask which recordings are loaded."""


class ReplayListSessionsReply(Reply, tag="replay_list_sessions_ok"):
    """The names of all loaded recordings."""

    sessions: list[str]


class ReplaySetActiveRequest(Request["ReplaySetActiveReply"], tag="replay_set_active"):
    """Choose the recording that replay_start plays."""

    name: Text | None = None


class ReplaySetActiveReply(Reply, tag="replay_set_active_ok"):
    """It was done; there is nothing more to say."""


class ReplayStartRequest(Request["ReplayStartReply"], tag="replay_start"):
    """Go to frame 0 of the active recording; each step then shows the next frames.

    ``loop`` and ``paused`` are extensions. With ``paused``, live mode replays as well: false plays the frames at the
    pace of live physics, true waits for ``set_paused`` or ``replay_seek``.
    """

    loop: bool | None = None
    paused: bool | None = None


class ReplayStartReply(Reply, tag="replay_start_ok"):
    """What is played."""

    active_session: str
    total_frames: int


class ReplaySeekRequest(Request["ReplaySeekReply"], tag="replay_seek"):
    """Go to a frame of the recording that is replayed, by its index or as the one at, or last before, a time.

    One of the two. An extension.
    """

    frame: int | None = None
    time: float | None = None


class ReplaySeekReply(Reply, tag="replay_seek_ok"):
    """The frame that is shown, and its timestamp in simulated seconds."""

    active_session: str
    frame: int
    total_frames: int
    time: float


class ReplayStopRequest(Request["ReplayStopReply"], tag="replay_stop"):
    """End; stepping goes on from the state shown."""


class ReplayStopReply(Reply, tag="replay_stop_ok"):
    """It was done; there is nothing more to say."""
