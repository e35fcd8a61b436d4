"""One actuator of an articulation."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from urlab_client.checks import finite
from urlab_client.enums import ActuatorType

if TYPE_CHECKING:
    from urlab_client.handles.articulation import URLabArticulation


@dataclass(slots=True, eq=False)
class Actuator:
    """What the model says about an actuator, and its slot in the articulation's setpoint buffer.

    ``id`` is global; ``type`` is the kind that its author wrote; ``joint`` is the unprefixed joint that it drives;
    the ranges are None when unlimited; ``trn_type`` is mjtTrn.
    """

    name: str
    id: int
    type: ActuatorType | None
    joint: str | None
    ctrlrange: tuple[float, float] | None
    forcerange: tuple[float, float] | None
    kp: float | None
    kv: float | None
    trn_type: int
    gear: npt.NDArray[np.float64]
    gainprm: npt.NDArray[np.float64]
    dynprm: npt.NDArray[np.float64]
    _articulation: "URLabArticulation" = field(repr=False)
    _local: int = field(repr=False)

    def set_control(self, v: float) -> None:
        """Set this actuator's setpoint for the next step; ValueError unless it is finite."""
        self._articulation.ctrl_array[self._local] = finite(f"{self._articulation.prefix}: {self.name}", v)

    @property
    def value(self) -> float:
        """The setpoint in the buffer."""
        return float(self._articulation.ctrl_array[self._local])

    @property
    def force(self) -> float | None:
        """The force of the last reply at observation level full, else None."""
        return self._articulation.observed.force(self.name, self._local)
