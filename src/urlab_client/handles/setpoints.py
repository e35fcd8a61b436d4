"""The setpoints that a caller gives an articulation: which of them were given, and how they travel."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Setpoints:
    """A buffer of one number per actuator, (n_actuators,).

    Setpoints that the caller never gave are not sent, so that the server's own (of a keyframe, or zero) stay in
    force. Writing into ``values`` itself gives all of them.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.values: Array = np.zeros(len(names))
        self._names = list(names)
        self._given = np.zeros(len(names), dtype=bool)

    def give(self, slots: Sequence[int], numbers: Sequence[float]) -> None:
        """Set some."""
        self.values[list(slots)] = numbers
        self._given[list(slots)] = True

    def give_all(self, numbers: Sequence[float] | Array) -> None:
        """Set all."""
        self.values[:] = numbers
        self._given[:] = True

    def given(self) -> npt.NDArray[np.bool_]:
        """Which were given; a number that nobody set by name was written into the array, which gives all."""
        if not self._given.all() and self.values[~self._given].any():
            self._given[:] = True
        return self._given

    def command(self) -> dict[str, Any]:
        """How they travel: all by position, some by name, or not at all."""
        given = self.given()
        if given.all():
            return {"ctrl": self.values.tolist()} if len(given) else {}
        if not given.any():
            return {}
        return {"ctrl_map": {self._names[slot]: float(self.values[slot]) for slot in np.flatnonzero(given)}}

    def write_into(self, ctrl: Array, ids: npt.NDArray[np.intp]) -> None:
        """Put those that were given into a full ``ctrl`` array."""
        given = self.given()
        ctrl[ids[given]] = self.values[given]
