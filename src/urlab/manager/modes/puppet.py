"""Puppet: the client simulates and pushes its state; the server shows it, without integrating."""

import math
from typing import Any, ClassVar

import numpy as np

from urlab.errors import BadValue, DimMismatch
from urlab.manager.modes.mode import Mode
from urlab_wire.enums import StepMode
from urlab_wire.ops.stepping import StepRequest


class PuppetMode(Mode):
    """The client's integrator is the clock. What is not pushed stays as it is."""

    name: ClassVar[StepMode] = StepMode.PUPPET

    def step(self, request: StepRequest, deadline: float) -> None:  # noqa: ARG002 - one mj_forward is not long
        """Write the pushed state and run mj_forward once."""
        manager = self.manager
        if manager.tape.is_playing:
            manager.tape.show(max(1, request.n_steps or 1))
            return
        model, data = manager.engine.model, manager.engine.data
        manager.commands.read(request.per_articulation)
        qpos = _vector("qpos", request.qpos, model.nq)
        qvel = _vector("qvel", request.qvel, model.nv)
        ctrl = _vector("ctrl", request.ctrl, model.nu)
        if request.time is not None and not math.isfinite(request.time):
            raise BadValue(f"time must be finite, but is {request.time}")
        for target, values in ((data.qpos, qpos), (data.qvel, qvel), (data.ctrl, ctrl)):
            if values is not None:
                target[:] = values
        if request.time is not None:
            data.time = request.time
        manager.engine.forward()
        manager.engine.stepped()


def _vector(name: str, numbers: list[float] | None, length: int) -> Any:
    if numbers is None:
        return None
    if len(numbers) != length:
        raise DimMismatch(f"{name} takes {length} numbers for this scene, but has {len(numbers)}")
    values = np.array(numbers, dtype=np.float64)
    if not np.isfinite(values).all():
        raise BadValue(f"{name} must be finite; number {int(np.argmin(np.isfinite(values)))} is not")
    return values
