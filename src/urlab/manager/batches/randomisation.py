"""Randomisation of many simulations at once: the draws of the server, written into a batch.

A simulation of a seed gets the model and the start that a reset of the server with that seed gives.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue, known
from urlab.physics.batch import SimulationBatch
from urlab.physics.engine import FULL_STATE
from urlab.physics.parameters import FIELDS, ModelParameters, array_of
from urlab.physics.start_state import START_FIELDS, StartState
from urlab.scene.randomisation import Randomisation, check, draw, parse_randomisation
from urlab_wire.ops.stepping import ModelChange

MAX_FIELD_BYTES = 512 << 20
"""Of the model's fields that have a value per simulation."""


class BatchRandomisation:
    """Entries of a ``randomize`` table for the simulations of a batch: those about the model and about the start.

    BadValue for an entry about something else: sensors, actuators and cameras of many simulations are not disturbed.
    """

    def __init__(
        self, simulations: SimulationBatch, model: Any, prefixes: Iterable[str], table: Mapping[str, Any]
    ) -> None:
        self._simulations, self._model = simulations, model
        self._data = mujoco.MjData(model)
        names = tuple(prefixes)
        self._parameters = ModelParameters(model, names)
        self._start = StartState(model, self._data, names)
        self._entries = parse_randomisation(table)
        self._of_model = self._chosen(FIELDS)
        self._of_start = self._chosen(START_FIELDS)
        others = [key for key in self._entries if key not in self._of_model and key not in self._of_start]
        if others:
            raise BadValue(
                f"many simulations draw the model and the start, not {known(others)}: leave these out, or use a "
                "server, or a URLabEnv, for each"
            )
        check(self._of_model, self._parameters)
        check(self._of_start, self._start)
        self._fields = self._expanded()

    def begin(self, row: NDArray[np.float64], index: int, seed: int) -> list[ModelChange]:
        """Give simulation ``index`` the model of a seed, and put its start into ``row``; what was drawn.

        `settle` is to be called after the last of them.
        """
        model_changes = [self._parameters.checked(one) for one in draw(self._of_model, seed, self._parameters)]
        for name, (values, compiled) in self._fields.items():
            values[index] = compiled
            flat = values[index].reshape(-1)
            for write in self._parameters.writes(model_changes):
                if write.array == name:
                    flat[write.start : write.start + len(write.values)] = write.values
        if not self._of_start:
            return model_changes
        mujoco.mj_setState(self._model, self._data, row, FULL_STATE)
        start_changes = draw(self._of_start, seed, self._start)
        self._start.write(start_changes)
        mujoco.mj_getState(self._model, self._data, row, FULL_STATE)
        return model_changes + start_changes

    def end(self, index: int) -> None:
        """Give simulation ``index`` the compiled model."""
        for values, compiled in self._fields.values():
            values[index] = compiled

    def settle(self) -> None:
        """Let the constants follow that depend on what was written."""
        if self._fields:
            self._simulations.batch.set_const()

    def _chosen(self, fields: Mapping[str, Sequence[str]] | Mapping[str, Mapping[str, Any]]) -> Randomisation:
        return {key: one for key, one in self._entries.items() if one.field in fields.get(one.kind, ())}

    def _expanded(self) -> dict[str, tuple[Any, Any]]:
        """The fields of the model that entries write, a value per simulation, and what was compiled."""
        tried = [self._parameters.checked(one) for one in draw(self._of_model, 0, self._parameters)]
        names = dict.fromkeys(write.array for write in self._parameters.writes(tried))
        compiled = {name: np.array(array_of(self._model, name)) for name in names}
        count = len(self._simulations.time)
        size = 2 * count * sum(one.nbytes for one in compiled.values())  # about as much again follows from them
        if size > MAX_FIELD_BYTES:
            raise BadValue(
                f"the fields of the model that are drawn take {size >> 20} MB for {count} simulations, "
                f"{MAX_FIELD_BYTES >> 20} at most: draw for fewer elements, or ask for fewer simulations"
            )
        expanded = {name: self._simulations.batch.expand(name) for name in names}
        return {name: (values, compiled[name].reshape(values.shape[1:])) for name, values in expanded.items()}
