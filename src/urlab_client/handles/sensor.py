"""One sensor of an articulation."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from urlab_client.handles.articulation import Observed


@dataclass(slots=True, eq=False)
class Sensor:
    """What the model says about a sensor: ``sensor_type`` is mjtSensor, ``offset`` its place in ``sensordata``."""

    name: str
    id: int
    dim: int
    sensor_type: int
    offset: int
    _observed: "Observed" = field(repr=False)

    @property
    def latest(self) -> npt.NDArray[np.float64] | None:
        """The value of the last reply that carried sensors, (dim,), or None before there was one."""
        values = self._observed.sensors.get(self.name)
        return None if values is None else np.array(values, dtype=np.float64)
