"""Direct: a request runs its n_steps at once, on its own thread, bit for bit like a plain mj_step loop."""

from typing import ClassVar

from urlab.errors import BadValue, ShuttingDown, StateError, StepTimeout
from urlab.manager.modes.mode import Mode
from urlab_wire.enums import StepMode
from urlab_wire.ops.stepping import StepRequest

MAX_STEPS = 1_000_000_000


class DirectMode(Mode):
    """The client's requests are the clock."""

    name: ClassVar[StepMode] = StepMode.DIRECT

    def step(self, request: StepRequest, deadline: float) -> None:
        """Stage, run the window, take the window's forces away."""
        manager = self.manager
        n_steps = _count(request.n_steps)
        command = manager.commands.read(request.per_articulation)
        if manager.tape.is_playing:
            manager.tape.show(n_steps)
            return
        command.stage()
        manager.wrenches.begin_window(command.wrenches)
        try:
            ran = manager.engine.advance(n_steps, deadline)
        finally:
            manager.wrenches.end_window()
            command.end_window()
        if ran < n_steps:
            manager.engine.publish()
            raise self._cut_short(ran, n_steps)

    def _cut_short(self, ran: int, n_steps: int) -> StateError:
        engine = self.manager.engine
        if engine.interrupted:
            return ShuttingDown(f"the simulation was ended after {ran} of {n_steps} steps")
        return StepTimeout(
            f"{ran} of {n_steps} steps ran before the time limit; the simulation stands at "
            f"time {engine.data.time:g}. Ask for fewer steps at a time."
        )


def _count(n_steps: int | None) -> int:
    if n_steps is None or n_steps <= 0:
        return 1
    if n_steps > MAX_STEPS:
        raise BadValue(f"n_steps must be at most {MAX_STEPS}, not {n_steps}")
    return n_steps
