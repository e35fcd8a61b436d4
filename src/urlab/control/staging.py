"""Setpoints that wait for the next sub-step: those of the wire, those of a user interface, and who is in force."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.compile.compiled_scene import CompiledArticulation
from urlab.control.controller import Float64Array, index_of
from urlab.errors import BadValue, did_you_mean, known
from urlab.numbers import finite_numbers
from urlab_wire.enums import ControlSource

Indices = Sequence[int] | NDArray[np.intp]


class StagedControl:
    """The setpoints of one articulation, in actuator order. The owner of the physics lock calls it.

    They stick until replaced. They begin at 0, as ``data.ctrl`` of a plain MuJoCo loop does.
    """

    def __init__(self, articulation: CompiledArticulation) -> None:
        self.source = ControlSource.ZMQ
        self._prefix = articulation.prefix
        self._names = tuple(actuator.short for actuator in articulation.actuators)
        full = {actuator.name: i for i, actuator in enumerate(articulation.actuators)}
        self._position = full | {name: i for i, name in enumerate(self._names)}
        self._ctrl = index_of([actuator.id for actuator in articulation.actuators])
        self._staged = {source: np.zeros(len(self._names)) for source in ControlSource}
        self._from_wire = self._staged[ControlSource.ZMQ]
        self._data: Any = None
        self._target: Any = None

    @property
    def active(self) -> Float64Array:
        """The setpoints of the source in force: the live array, for reading only."""
        return self._staged[self.source]

    def staged(self, source: ControlSource) -> Float64Array:
        """A copy of what one source has staged."""
        return self._staged[source].copy()

    def stage(
        self,
        values: Sequence[float] | Float64Array,
        indices: Indices | None = None,
        *,
        source: ControlSource = ControlSource.ZMQ,
    ) -> None:
        """Replace the setpoints at ``indices`` (positions in actuator order), or all of them."""
        checked = self._checked(values, len(self._names) if indices is None else len(indices))
        if indices is None:
            self._staged[source][:] = checked
        else:
            self._staged[source][np.asarray(indices, dtype=np.intp)] = checked

    def check(self, ctrl: Sequence[float] | Float64Array) -> None:
        """DimMismatch or BadValue unless a step's ``ctrl`` is one finite number per actuator."""
        if len(ctrl) != len(self._names) or not isfinite(sum(ctrl)):
            self._checked(ctrl, len(self._names))

    def put(self, checked: Sequence[float] | Float64Array) -> None:
        """Replace the wire's setpoints by what `check` has seen or `merged` returned."""
        self._from_wire[:] = checked

    def replace(self, source: ControlSource, checked: Float64Array) -> None:
        """Replace all setpoints of a source by finite numbers, one per actuator."""
        self._staged[source][:] = checked

    def merged(
        self,
        ctrl: Sequence[float] | None,
        ctrl_map: Mapping[str, float] | None,
        source: ControlSource = ControlSource.ZMQ,
    ) -> Float64Array:
        """What a source's setpoints become with a ``ctrl`` and then a ``ctrl_map``; stages nothing.

        A request that drives several articulations merges them all before it stages any: it is refused whole.
        """
        result = self.staged(source) if ctrl is None else self._checked(ctrl, len(self._names))
        if ctrl_map:
            result[self.positions(ctrl_map)] = self._checked(list(ctrl_map.values()), len(ctrl_map))
        return result

    def positions(self, names: Sequence[str] | Mapping[str, Any]) -> NDArray[np.intp]:
        """Where the actuators of these short or compiled names stand in actuator order."""
        for name in names:
            if name not in self._position:
                hint = did_you_mean(name, self._names)
                raise BadValue(f"{self._prefix} has no actuator {name!r}{hint}; it has {known(self._names)}")
        return np.array([self._position[name] for name in names], dtype=np.intp)

    def clear(self, to: Sequence[float] | Float64Array | None = None) -> None:
        """Set both sources to ``to`` (one value per actuator, as a keyframe's ctrl), or to 0."""
        checked = np.zeros(len(self._names)) if to is None else self._checked(to, len(self._names))
        for staged in self._staged.values():
            staged[:] = checked

    def write(self, data: Any) -> None:
        """Raw control: the setpoints in force become ``data.ctrl`` as they are."""
        if data is not self._data:
            self._data, self._target = data, data.ctrl
        self._target[self._ctrl] = self._staged[self.source]

    def _checked(self, values: Sequence[float] | Float64Array, expected: int) -> Float64Array:
        names = self._names if expected == len(self._names) else ()
        return finite_numbers(f"control of {self._prefix}", values, expected, names)
