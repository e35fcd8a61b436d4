"""Replay of saved or live recordings, in direct and puppet mode."""

from urlab_wire.envelope import Reply, Request, Text


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
    """Go to frame 0 of the active recording; each step then shows the next frames."""

    loop: bool | None = None


class ReplayStartReply(Reply, tag="replay_start_ok"):
    """What is played."""

    active_session: str
    total_frames: int


class ReplayStopRequest(Request["ReplayStopReply"], tag="replay_stop"):
    """End; stepping goes on from the state shown."""


class ReplayStopReply(Reply, tag="replay_stop_ok"):
    """It was done; there is nothing more to say."""
