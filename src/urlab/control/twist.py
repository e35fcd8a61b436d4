"""The velocity command of an articulation: what a user or a script wants, for a policy to read."""

import sys
from collections.abc import Sequence
from typing import Any

from urlab.errors import BadValue, DimMismatch

MAX_ACTIONS = 2**10 - 1
_LARGEST = sys.float_info.max


class TwistController:
    """Holds the last command. It moves nothing by itself, clamps nothing, and a reset leaves it alone.

    ``vx`` (forward) and ``vy`` (left) in m/s, ``yaw_rate`` in rad/s, ``actions`` a bit field of ten buttons.
    """

    def __init__(self) -> None:
        self.vx = 0.0
        self.vy = 0.0
        self.yaw_rate = 0.0
        self.actions = 0

    @property
    def linear(self) -> list[float]:
        """[vx, vy, 0] in m/s."""
        return [self.vx, self.vy, 0.0]

    @property
    def angular(self) -> list[float]:
        """[0, 0, yaw rate] in rad/s."""
        return [0.0, 0.0, self.yaw_rate]

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
        self.actions = self.actions if actions is None else _bit_field(actions)
        self.vx, self.vy, self.yaw_rate = vx, vy, yaw_rate


def _three(field: str, values: Sequence[float] | None) -> tuple[float, float, float]:
    numbers = [] if values is None else [_finite(field, value) for value in values]
    if len(numbers) > 3:
        raise DimMismatch(f"{field} has {len(numbers)} numbers; a twist takes up to 3")
    x, y, z = numbers + [0.0] * (3 - len(numbers))
    return x, y, z


def _finite(field: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise BadValue(f"{field} holds {value!r}; it takes finite numbers")
    return float(value)


def _bit_field(actions: Any) -> int:
    if isinstance(actions, bool) or not isinstance(actions, int) or not 0 <= actions <= MAX_ACTIONS:
        raise BadValue(f"actions is {actions!r}; it takes a whole number from 0 to {MAX_ACTIONS} (ten bits)")
    return actions
