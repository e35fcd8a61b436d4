"""The play lifecycle, and what the server has to tell of itself."""

import msgspec

from urlab_wire.envelope import Reply, Request
from urlab_wire.ops.replay import ReplayState
from urlab_wire.ops.session import HelloReply


class BeginPieRequest(Request["BeginPieReply"], tag="begin_pie"):
    """Compile the level and start simulating it; ``level_path`` loads another level first.

    ``step_mode`` (extension) is the mode to start in; without it, the one that the client last asked for, or live.
    """

    level_path: str | None = None
    timeout_s: float | None = None
    step_mode: str | None = None


class BeginPieReply(Reply, tag="begin_pie_ok"):
    """Always a state, never an error; ``handshake_payload`` comes with state ready."""

    state: str
    compile_error: str
    handshake_payload: HelloReply | None = None


class StopPieRequest(Request["StopPieReply"], tag="stop_pie"):
    """End the simulation and go back to the editor."""


class StopPieReply(Reply, tag="stop_pie_ok"):
    """It was done; there is nothing more to say."""


class PieStatusRequest(Request["PieStatusReply"], tag="pie_status"):
    """Ask where the play lifecycle stands."""


class PieStatusReply(Reply, tag="pie_status_ok"):
    """``sim_time``, and all from ``mode`` on, are there while a simulation runs. From ``level`` on: extensions.

    ``speed_percent`` is the pace of live physics, ``seed`` that of the last reset that named one, ``control_source``
    says of every articulation whose setpoints count: ``zmq`` or ``ui``. ``physics_error`` is there while the last step
    failed, which has paused live physics: it says why. ``replay`` is there while a replay is active.
    """

    state: str
    compile_error: str
    sim_time: float | None = None
    level: str | None = None
    mode: str | None = None
    paused: bool | None = None
    speed_percent: float | None = None
    seed: int | None = None
    control_source: dict[str, str] | None = None
    physics_error: str | None = None
    replay: ReplayState | None = None


class LogBlock(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One record of the server's log, or an op that changed the world or was to. ``time`` is in seconds since 1970.

    Of an op there are also ``caller``, the kind of its ``session`` (driver, operator), ``op``, and the ``code`` of the
    error if it was refused.
    """

    number: int
    time: float
    level: str
    logger: str
    message: str
    caller: str | None = None
    session: str | None = None
    op: str | None = None
    code: str | None = None


class RecentLogRequest(Request["RecentLogReply"], tag="recent_log"):
    """Ask for the newest records of the log: all that are kept, or those after the one of that number. An extension."""

    after: int | None = None


class RecentLogReply(Reply, tag="recent_log_ok"):
    """In order; ``last`` is the number of the newest, to go on from."""

    records: list[LogBlock]
    last: int
