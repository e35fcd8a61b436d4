"""The velocity command of an articulation: what a user or a script wants, for a policy to read."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.control.controller import Float64Array
from urlab.errors import BadValue, DimMismatch
from urlab.numbers import finite_number

MAX_ACTIONS = 2**10 - 1

Int64Array = NDArray[np.int64]


class TwistCommand:
    """Holds the last command. It moves nothing by itself, clamps nothing, and a reset leaves it alone."""

    def __init__(self, velocity: Float64Array | None = None, actions: Int64Array | None = None) -> None:
        """The command is kept in ``velocity``, (3,), and ``actions``, (1,): views into larger arrays of the caller."""
        self._velocity = np.zeros(3) if velocity is None else velocity
        self._actions = np.zeros(1, dtype=np.int64) if actions is None else actions

    @property
    def actions(self) -> int:
        """A bit field of ten buttons."""
        return int(self._actions[0])

    @property
    def linear(self) -> list[float]:
        """[vx, vy, 0] in m/s: forward and left."""
        return [*self._velocity[:2].tolist(), 0.0]

    @property
    def angular(self) -> list[float]:
        """[0, 0, yaw rate] in rad/s, counter-clockwise."""
        return [0.0, 0.0, float(self._velocity[2])]

    def set(
        self,
        linear: Sequence[float] | None = None,
        angular: Sequence[float] | None = None,
        actions: int | None = None,
    ) -> None:
        """Replace the velocity; up to three numbers each, missing ones are 0; linear[2], angular[:2] are unused.

        ``actions`` None keeps the buttons as they are. All of it applies, or none of it and an error.
        """
        vx, vy, _ = _three("linear", linear)
        _, _, yaw_rate = _three("angular", angular)
        self._actions[0] = self._actions[0] if actions is None else _bit_field(actions)
        self._velocity[:] = vx, vy, yaw_rate


def _three(field: str, values: Sequence[float] | None) -> tuple[float, float, float]:
    numbers = [] if values is None else [finite_number(field, value) for value in values]
    if len(numbers) > 3:
        raise DimMismatch(f"{field} has {len(numbers)} numbers; a twist takes up to 3")
    x, y, z = numbers + [0.0] * (3 - len(numbers))
    return x, y, z


def _bit_field(actions: Any) -> int:
    if isinstance(actions, bool) or not isinstance(actions, int) or not 0 <= actions <= MAX_ACTIONS:
        raise BadValue(f"actions is {actions!r}; it takes a whole number from 0 to {MAX_ACTIONS} (ten bits)")
    return actions
