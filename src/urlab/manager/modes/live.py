"""Live: physics runs by itself in real time; a request changes controls and reads the state."""

from typing import ClassVar

from urlab.manager.modes.mode import Mode
from urlab_wire.enums import StepMode
from urlab_wire.ops.stepping import StepRequest


class LiveMode(Mode):
    """The wall clock is the clock; ``n_steps`` means nothing here. Wrenches act during the next mj_step."""

    name: ClassVar[StepMode] = StepMode.LIVE
    runs_by_itself: ClassVar[bool] = True

    def step(self, request: StepRequest, deadline: float) -> None:  # noqa: ARG002 - nothing here takes time
        """Stage what the request asks; the loop does the rest."""
        command = self.manager.commands.read(request.per_articulation)
        command.stage()
        if command.wrenches:
            self.manager.wrenches.begin_window(command.wrenches)
