"""What every controller is: a law that turns staged setpoints into ``data.ctrl`` once per sub-step.

A controller registers by being declared, in a module of this folder: ``class Mine(Controller, kind="mine")``. The one
that adds nothing is here.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from urlab.compile.compiled_scene import CompiledArticulation
from urlab.errors import BadValue, ControllerSchemaViolation, ImportFailed, did_you_mean, known
from urlab.physics.batch import SimulationBatch

Float64Array = NDArray[np.float64]
Index = slice | NDArray[np.intp]

_KINDS: dict[str, type["Controller"]] = {}


class BatchLaw(Protocol):
    """A control law for the simulations of a batch: `stage` once per step and, if it follows the state, `apply` before
    every sub-step. ``width`` is the number of setpoints of a row."""

    width: int
    follows_state: bool

    def stage(self, setpoints: Float64Array) -> None:
        """Take the setpoints of the next step, (count, width)."""

    def apply(self) -> None:
        """Write the controls at the states as they are."""


class Controller(ABC):
    """The control law of one articulation. Every method is called by the owner of the physics lock."""

    kind: ClassVar[str]
    follows_state: ClassVar[bool] = True
    """Whether `apply` depends on more than the setpoints, so that it runs before every sub-step."""

    def __init_subclass__(cls, *, kind: str | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if kind is None:
            return
        if kind in _KINDS:
            raise TypeError(f"controller kind {kind!r} is already {_KINDS[kind].__qualname__}")
        cls.kind = kind
        _KINDS[kind] = cls

    @abstractmethod
    def __init__(self, articulation: CompiledArticulation, params: Mapping[str, Any]) -> None:
        """Bind the actuators of ``articulation`` and apply ``params`` as `configure` does."""

    @abstractmethod
    def params(self) -> dict[str, Any]:
        """Everything that can be configured, with its value in force; a fresh copy."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """What each param may be, as the handshake tells it."""

    @abstractmethod
    def configure(self, patch: Mapping[str, Any]) -> None:
        """Apply all of ``patch``, or raise `ControllerSchemaViolation` and apply nothing of it.

        Params that the patch leaves out, or gives as None, keep their values.
        """

    @abstractmethod
    def apply(self, model: Any, data: Any, setpoints: Float64Array) -> None:
        """Write ``data.ctrl`` for the articulation's actuators.

        ``setpoints`` has one entry per control of the articulation, in the order of its actuators.
        """

    def for_batch(self, batch: SimulationBatch) -> BatchLaw:  # noqa: ARG002 - for laws that have one
        """The law for many simulations; BadValue when it has none."""
        raise BadValue(f"a {self.kind!r} controller runs in one simulation only: it has no law for a batch")

    def memory(self) -> bytes:
        """What the law remembers from earlier sub-steps, for `save_state`; a law without memory has none."""
        return b""

    def remember(self, memory: bytes) -> None:
        """Go back to what `memory` gave; BadValue for bytes that are not this law's."""
        if memory:
            raise BadValue(f"the state has a memory for a {self.kind!r} controller, which has none")


def make_controller(articulation: CompiledArticulation) -> Controller | None:
    """The controller that the articulation's sidecar asks for; None when it asks for none."""
    config = articulation.sidecar.controller
    if config is None:
        return None
    chosen = _KINDS.get(config.kind)
    if chosen is None:
        raise ImportFailed(
            f"{articulation.prefix}: controller.kind is {config.kind!r}"
            f"{did_you_mean(config.kind, _KINDS)}; the kinds are {known(_KINDS)}"
        )
    try:
        return chosen(articulation, config.params)
    except ControllerSchemaViolation as violation:
        raise ImportFailed(f"{articulation.prefix}: controller.params: {violation.message}") from violation


def index_of(ids: Sequence[int]) -> Index:
    """An index that selects ``ids`` in their order: a slice (a view, no copy) when they are consecutive."""
    if len(ids) > 0 and list(ids) == list(range(ids[0], ids[0] + len(ids))):
        return slice(ids[0], ids[0] + len(ids))
    return np.asarray(ids, dtype=np.intp)


class RawBatchLaw:
    """Setpoints are the controls of a batch as they are."""

    follows_state = False

    def __init__(self, ids: Sequence[int], batch: SimulationBatch) -> None:
        self.width = len(ids)
        self._ctrl_ids, self._ctrl = np.asarray(ids, dtype=np.intp), batch.ctrl

    def stage(self, setpoints: Float64Array) -> None:
        """Write the controls."""
        self._ctrl[:, self._ctrl_ids] = setpoints

    def apply(self) -> None:
        """Nothing: the controls stand."""


class PassthroughController(Controller, kind="passthrough"):
    """Setpoints are actuator signals as they are. It has no params."""

    follows_state: ClassVar[bool] = False

    def __init__(self, articulation: CompiledArticulation, params: Mapping[str, Any]) -> None:
        self._ids = [control.id for control in articulation.controls]
        self._ctrl = index_of(self._ids)
        self.configure(params)

    def params(self) -> dict[str, Any]:
        """Empty: nothing can be configured."""
        return {}

    def schema(self) -> dict[str, Any]:
        """Empty: nothing can be configured."""
        return {}

    def configure(self, patch: Mapping[str, Any]) -> None:
        """Accept an empty patch only."""
        if patch:
            raise ControllerSchemaViolation(f"a passthrough controller has no params; the patch has {known(patch)}")

    def apply(self, model: Any, data: Any, setpoints: Float64Array) -> None:  # noqa: ARG002
        """Copy the setpoints to ``data.ctrl``."""
        data.ctrl[self._ctrl] = setpoints

    def for_batch(self, batch: SimulationBatch) -> BatchLaw:
        """The same for many simulations."""
        return RawBatchLaw(self._ids, batch)
