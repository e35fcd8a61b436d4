"""What replies tell of one articulation, raw: its handles read it when they are asked."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from urlab_wire.codec import Tree

_NO_TWIST: Mapping[str, Sequence[float]] = {"linear": (0.0, 0.0, 0.0), "angular": (0.0, 0.0, 0.0)}


class Observed:
    """The observation of one articulation, as replies tell it.

    ``ctrl``, ``act``, ``sensors``, ``twist`` and ``actions`` keep their last value when a reply leaves them out, as
    the minimal level does; ``bodies`` and ``forces`` are those of the last reply only.
    """

    __slots__ = ("act", "actions", "bodies", "ctrl", "forces", "qpos", "qvel", "sensors", "twist")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, as before the first reply."""
        self.qpos: Sequence[float] = ()
        self.qvel: Sequence[float] = ()
        self.ctrl: Sequence[float] = ()
        self.act: Sequence[float] = ()
        self.sensors: Mapping[str, Sequence[float]] = {}
        self.bodies: Mapping[str, Mapping[str, Sequence[float]]] = {}
        self.forces: Sequence[float] | Mapping[str, float] = ()
        self.twist: Mapping[str, Sequence[float]] = _NO_TWIST
        self.actions = 0

    def absorb(self, block: Tree) -> None:
        """Take one articulation's block of a reply."""
        get = block.get
        self.qpos = get("qpos") or ()
        self.qvel = get("qvel") or ()
        self.ctrl = get("ctrl", self.ctrl)
        self.act = get("act", self.act)
        self.sensors = get("sensors", self.sensors)
        self.twist = get("twist", self.twist)
        self.actions = get("actions", self.actions)
        self.bodies = get("bodies") or {}
        self.forces = get("actuator_force") or get("actuator_forces") or ()

    def force(self, name: str, local: int) -> float | None:
        """The force of one actuator, where the reply had forces: by name, or by position."""
        if isinstance(self.forces, Mapping):
            found = self.forces.get(name)
        else:
            found = self.forces[local] if local < len(self.forces) else None
        return None if found is None else float(found)


def padded(values: Sequence[float], size: int) -> npt.NDArray[np.float64]:
    """The values as an array of that size, or zeros when there are not exactly so many."""
    return np.array(values, dtype=np.float64) if len(values) == size else np.zeros(size)
