"""One body of an articulation."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from urlab_client.handles.articulation import URLabArticulation


@dataclass(slots=True, eq=False)
class Body:
    """A body. Its pose is what the last reply said at observation level full, else that of ``client.data``.

    Without a local model it is None at other levels, except for the root, whose pose the articulation knows.
    """

    name: str
    id: int
    _articulation: "URLabArticulation" = field(repr=False)

    @property
    def xpos(self) -> npt.NDArray[np.float64] | None:
        """World position, (3,) metres."""
        return self._pose("xpos")

    @property
    def xquat(self) -> npt.NDArray[np.float64] | None:
        """World orientation, (4,) as w, x, y, z."""
        return self._pose("xquat")

    def _pose(self, key: str) -> npt.NDArray[np.float64] | None:
        told = self._articulation.observed.bodies.get(self.name)
        if told is not None and key in told:
            return np.array(told[key], dtype=np.float64)
        data = self._articulation._data
        if data is not None:
            return np.array(getattr(data, key)[self.id])
        if self.id != self._articulation.body_id:
            return None
        return self._articulation.root_pos_w if key == "xpos" else self._articulation.root_quat_w
