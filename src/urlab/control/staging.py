"""Setpoints that wait for the next sub-step: those of the wire, those of a user interface, and who is in force."""

from collections import Counter
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


def _by_joint(articulation: CompiledArticulation) -> dict[str, int]:
    """Where the control of a joint stands that only one control drives, by the joint's names."""
    driven = [control.actuator.joint for control in articulation.controls]
    counts = Counter(joint.id for joint in driven if joint is not None)
    alone = [(joint, i) for i, joint in enumerate(driven) if joint is not None and counts[joint.id] == 1]
    return {joint.name: i for joint, i in alone} | {joint.short: i for joint, i in alone}


class StagedControl:
    """The setpoints of one articulation, in actuator order. The owner of the physics lock calls it.

    An actuator with several controls has a setpoint for each, one behind the other.

    They stick until replaced. They begin at 0, as ``data.ctrl`` of a plain MuJoCo loop does.
    """

    def __init__(self, articulation: CompiledArticulation) -> None:
        self.source = ControlSource.ZMQ
        self._prefix = articulation.prefix
        self._names = tuple(control.short for control in articulation.controls)
        full = {control.name: i for i, control in enumerate(articulation.controls)}
        self._position = _by_joint(articulation) | full | {name: i for i, name in enumerate(self._names)}
        self._ctrl = index_of([control.id for control in articulation.controls])
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
        """Where the actuators of these names stand in actuator order.

        A name is short or compiled. An actuator that alone drives a joint answers to the joint's name too, unless that
        is the name of another.
        """
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
