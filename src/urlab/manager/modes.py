"""The three step modes: who advances physics, and what a step request means.

Live: physics runs by itself in real time; a request changes controls and reads the state. Direct: a request runs its
n_steps at once, on its own thread, bit for bit like a plain mj_step loop. Puppet: the client simulates and pushes its
state; the server shows it, without integrating.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from urlab.errors import BadValue, PhysicsError, PluginError, ShuttingDown, StateError, StepTimeout
from urlab.numbers import finite_number, finite_numbers
from urlab_wire.enums import StepMode
from urlab_wire.ops.stepping import StepRequest

if TYPE_CHECKING:
    from urlab.manager.manager import Manager

MAX_STEPS = 1_000_000_000


class SteppingMode(ABC):
    """One of live, direct and puppet, for one manager."""

    name: ClassVar[StepMode]
    runs_by_itself: ClassVar[bool] = False

    def __init__(self, manager: "Manager") -> None:
        self.manager = manager

    @abstractmethod
    def step(self, request: StepRequest, deadline: float) -> None:
        """Serve one step request by ``deadline`` (time.monotonic); the caller holds the physics lock."""


class LiveMode(SteppingMode):
    """The wall clock is the clock; ``n_steps`` means nothing here. Wrenches act during the next mj_step."""

    name: ClassVar[StepMode] = StepMode.LIVE
    runs_by_itself: ClassVar[bool] = True

    def step(self, request: StepRequest, deadline: float) -> None:  # noqa: ARG002 - nothing here takes time
        """Stage what the request asks, unless a replay plays; the loop does the rest."""
        _count(request.n_steps)
        command = self.manager.commands.read(request.per_articulation)
        if self.manager.record_replay.is_playing:
            return
        command.stage()
        if command.wrenches:
            self.manager.wrenches.begin_window(command.wrenches)


class DirectMode(SteppingMode):
    """The client's requests are the clock."""

    name: ClassVar[StepMode] = StepMode.DIRECT

    def step(self, request: StepRequest, deadline: float) -> None:
        """Stage, run the window, take the window's forces away."""
        manager = self.manager
        n_steps = _count(request.n_steps)
        command = manager.commands.read(request.per_articulation)
        if n_steps == 0 and command.wrenches:
            raise BadValue("xfrc_applied acts during the steps of its request, and this one has none: n_steps is 0")
        if manager.record_replay.is_playing:
            manager.record_replay.show(n_steps)
            return
        command.stage()
        manager.wrenches.begin_window(command.wrenches)
        try:
            ran = manager.advance(n_steps, deadline)
        except (PhysicsError, PluginError):
            manager.engine.publish()
            raise
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


class PuppetMode(SteppingMode):
    """The client's integrator is the clock. What is not pushed stays as it is."""

    name: ClassVar[StepMode] = StepMode.PUPPET

    def step(self, request: StepRequest, deadline: float) -> None:  # noqa: ARG002 - one mj_forward is not long
        """Write the pushed state and run mj_forward once."""
        manager = self.manager
        n_steps = _count(request.n_steps)
        if manager.record_replay.is_playing:
            manager.record_replay.show(n_steps)
            return
        data = manager.engine.data
        manager.commands.read(request.per_articulation)
        pushed = [
            (array, finite_numbers(name, numbers, len(array)))
            for name, array, numbers in (
                ("qpos", data.qpos, request.qpos),
                ("qvel", data.qvel, request.qvel),
                ("ctrl", data.ctrl, request.ctrl or None),
            )
            if numbers is not None
        ]
        time_s = None if request.time is None else finite_number("time", request.time)
        for array, values in pushed:
            array[:] = values
        if time_s is not None:
            data.time = time_s
        manager.engine.forward()
        manager.engine.stepped()


MODES: dict[StepMode, type[SteppingMode]] = {mode.name: mode for mode in (LiveMode, DirectMode, PuppetMode)}


def _count(n_steps: int | None) -> int:
    if n_steps is None:
        return 1
    if not 0 <= n_steps <= MAX_STEPS:
        raise BadValue(f"n_steps must be from 0 (only observe) to {MAX_STEPS}, not {n_steps}")
    return n_steps
