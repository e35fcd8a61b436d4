"""Batches over the wire."""

import numpy as np

from urlab.errors import BadValue
from urlab.manager.batches import SceneCopies
from urlab.ops.context import Context, handler
from urlab_wire.ops import batch as wire


@handler("batch_open")
def batch_open(context: Context, request: wire.BatchOpenRequest) -> wire.BatchOpenReply:
    """Copies of the running scene."""
    batch_id, batch = context.parts.batches.open(
        context.session.id, context.manager, request.num, request.threads or 0, request.randomize
    )
    model = batch.simulations.model
    return wire.BatchOpenReply(
        batch_id=batch_id,
        num=batch.count,
        nq=model.nq,
        nv=model.nv,
        setpoints=batch.setpoints,
        nsensordata=model.nsensordata,
        timestep=float(model.opt.timestep),
    )


@handler("batch_step")
def batch_step(context: Context, request: wire.BatchStepRequest) -> wire.BatchStepReply:
    """Steps of all of them."""
    batch = context.parts.batches.find(context.session.id, request.batch_id)
    if request.ctrl is not None and len(request.ctrl) % 8:
        raise BadValue(f"ctrl has {len(request.ctrl)} bytes, expected float64: a multiple of 8")
    setpoints = None if request.ctrl is None else np.frombuffer(request.ctrl, dtype="<f8")
    with batch.lock:
        batch.step(1 if request.n_steps is None else request.n_steps, setpoints)
        return wire.BatchStepReply(**_arrays(batch))


@handler("batch_reset")
def batch_reset(context: Context, request: wire.BatchResetRequest) -> wire.BatchResetReply:
    """Some, or all of them, back to where they began."""
    batch = context.parts.batches.find(context.session.id, request.batch_id)
    with batch.lock:
        batch.reset(request.ids, request.seeds)
        return wire.BatchResetReply(**_arrays(batch))


@handler("batch_close")
def batch_close(context: Context, request: wire.BatchCloseRequest) -> wire.BatchCloseReply:
    """Give one up."""
    context.parts.batches.close(context.session.id, request.batch_id)
    return wire.BatchCloseReply()


def _arrays(batch: SceneCopies) -> dict[str, bytes]:
    one = batch.simulations
    fields = {"time": one.time, "qpos": one.qpos, "qvel": one.qvel, "sensordata": one.sensordata}
    return {name: array.tobytes() for name, array in fields.items()}
