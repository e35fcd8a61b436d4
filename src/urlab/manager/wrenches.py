"""External forces on bodies: those of one step's window, and the one that a user drags a body with."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab_wire.ops.stepping import PerturbationBlock

Wrench = NDArray[np.float64]
"""(fx, fy, fz, tx, ty, tz) in the world frame."""


class Wrenches:
    """Writes ``data.xfrc_applied``. The owner of the physics lock calls everything here."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self._window: list[tuple[int, Wrench]] = []
        self._dragged: tuple[int, Wrench] | None = None
        self._version = 0
        self._written = False

    def begin_window(self, wrenches: list[tuple[int, Wrench]]) -> None:
        """Apply these, and the drag, until the window ends; an earlier window that has not ended is replaced."""
        if wrenches or self._dragged or self._written:
            self.end_window()
            self._window = wrenches
            self._write()

    def keep_dragging(self) -> None:
        """Apply the drag to a step that no window covers."""
        if self._dragged is not None and not self._written:
            self._write()

    def end_window(self) -> None:
        """Take the window's wrenches away."""
        if self._written:
            self._window = []
            self._data.xfrc_applied[:] = 0.0
            self._written = False

    def drag(self, body_id: int, wrench: Wrench) -> None:
        """Hold a force on one body until it is released; it replaces the last one."""
        self._dragged = (body_id, wrench)
        self._version += 1

    def release(self) -> None:
        """Let go of the dragged body."""
        self._dragged = None
        self._version += 1

    @property
    def perturbation(self) -> PerturbationBlock | None:
        """The drag, for a puppet client to apply to its own data."""
        if self._dragged is None:
            return None
        body_id, wrench = self._dragged
        return PerturbationBlock(body_id=body_id, version=self._version, xfrc=wrench.tolist())

    def _write(self) -> None:
        held = [*self._window, *([self._dragged] if self._dragged else [])]
        for body_id, wrench in held:
            self._data.xfrc_applied[body_id] += wrench
            self._written = True
