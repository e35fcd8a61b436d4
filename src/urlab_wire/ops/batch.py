"""Many copies of the running scene, stepped together; extensions of ours.

Arrays are bytes: little-endian float64, a row per simulation. A batch has the model, the state and the controllers that
the scene has when it is opened, and goes its own way afterwards. It ends with its session and with the play.
"""

from typing import Any

from urlab_wire.envelope import Reply, Request


class BatchOpenRequest(Request["BatchOpenReply"], tag="batch_open"):
    """Open ``num`` simulations. ``randomize`` has entries about the model and the start, as `reset` takes them."""

    num: int
    threads: int | None = None
    randomize: dict[str, Any] | None = None


class BatchOpenReply(Reply, tag="batch_open_ok"):
    """The batch, and the width of a row of each array; ``setpoints`` are those of every robot, in their order."""

    batch_id: str
    num: int
    nq: int
    nv: int
    setpoints: int
    nsensordata: int
    timestep: float


class BatchArrays(Reply, tag="batch_arrays"):
    """Where the simulations stand."""

    time: bytes
    qpos: bytes
    qvel: bytes
    sensordata: bytes


class BatchStepRequest(Request["BatchStepReply"], tag="batch_step"):
    """Run ``n_steps`` mj_steps (1) in every simulation with these setpoints; without, with those in force."""

    batch_id: str
    n_steps: int | None = None
    ctrl: bytes | None = None


class BatchStepReply(BatchArrays, tag="batch_step_ok"):
    """After the steps."""


class BatchResetRequest(Request["BatchResetReply"], tag="batch_reset"):
    """Put simulations back to where the batch began: all, or those of ``ids``.

    ``seeds``, one for each, draws the batch's ``randomize`` entries anew; without, the model is the compiled one.
    """

    batch_id: str
    ids: list[int] | None = None
    seeds: list[int] | None = None


class BatchResetReply(BatchArrays, tag="batch_reset_ok"):
    """Of all simulations."""


class BatchCloseRequest(Request["BatchCloseReply"], tag="batch_close"):
    """Give a batch up; the end of its session does so too."""

    batch_id: str


class BatchCloseReply(Reply, tag="batch_close_ok"):
    """It is gone."""
