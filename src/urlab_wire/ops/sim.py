"""The play lifecycle."""

from urlab_wire.envelope import Reply, Request
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
    failed, which has paused live physics: it says why.
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
