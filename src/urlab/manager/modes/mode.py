"""A step mode: who advances physics, and what a step request means."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from urlab_wire.enums import StepMode
from urlab_wire.ops.stepping import StepRequest

if TYPE_CHECKING:
    from urlab.manager.manager import Manager


class Mode(ABC):
    """One of live, direct and puppet, for one manager."""

    name: ClassVar[StepMode]
    runs_by_itself: ClassVar[bool] = False

    def __init__(self, manager: "Manager") -> None:
        self.manager = manager

    @abstractmethod
    def step(self, request: StepRequest, deadline: float) -> None:
        """Serve one step request by ``deadline`` (time.monotonic); the caller holds the physics lock."""
