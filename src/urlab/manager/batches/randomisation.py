"""Randomisation of many simulations at once: the draws of the server, written into a batch.

A simulation of a seed gets the model, the start and the disturbances that a reset of the server with that seed gives.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.control.controller import BatchLaw
from urlab.control.pd_law import GAIN_FIELDS, BatchGains
from urlab.errors import BadValue, known
from urlab.physics.batch import SimulationBatch
from urlab.physics.disturbances import DISTURBANCE_FIELDS, BatchDisturbances, DisturbanceParameters
from urlab.physics.engine import FULL_STATE
from urlab.physics.parameters import FIELDS, ModelParameters, array_of
from urlab.physics.start_state import START_FIELDS, StartState
from urlab.scene.randomisation import (
    ParameterSource,
    Randomisation,
    check,
    draw,
    generator,
    parse_randomisation,
)
from urlab_wire.ops.stepping import ModelChange

MAX_FIELD_BYTES = 512 << 20
"""Of the model's fields that have a value per simulation."""

MAX_LATE_BYTES = 512 << 20
"""Of what latencies keep for all simulations."""


class DrawnWorld(NamedTuple):
    """What a seed gives one simulation: ``changes`` are all, in the order of the entries."""

    seed: int
    of_model: list[ModelChange]
    of_start: list[ModelChange]
    disturbances: list[ModelChange]
    gains: list[ModelChange]
    changes: list[ModelChange]


class BatchRandomisation:
    """Entries of a ``randomize`` table for the simulations of a batch, whose controllers are ``laws``.

    BadValue for an entry that it cannot draw: noise of cameras, and, where there are no pictures, textures.
    """

    def __init__(
        self,
        simulations: SimulationBatch,
        model: Any,
        prefixes: Iterable[str],
        table: Mapping[str, Any],
        laws: Iterable[BatchLaw],
        *,
        has_pictures: bool = False,
    ) -> None:
        self._simulations, self._model = simulations, model
        self._data = mujoco.MjData(model)
        names = tuple(prefixes)
        self._parameters = ModelParameters(model, names)
        self._start = StartState(model, self._data, names)
        self._disturbable = DisturbanceParameters(model, names)
        self._gains = BatchGains(laws, names)
        self._entries = parse_randomisation(table)
        of_model = self._chosen(FIELDS)
        self._of_model = {key: one for key, one in of_model.items() if has_pictures or one.field != "texture"}
        self._of_start = self._chosen(START_FIELDS)
        self._disturbances = self._chosen(DISTURBANCE_FIELDS)
        self._of_gains = self._chosen(GAIN_FIELDS)
        mine = {**self._of_model, **self._of_start, **self._disturbances, **self._of_gains}
        others = [key for key in self._entries if key not in mine]
        if others:
            raise BadValue(
                "many simulations draw the model, the start, gains, noise and latency of sensors, latency of actuators "
                f"and pushes, not {known(others)}: leave these out, or use a server, or a URLabEnv, for each"
            )
        for entries, source in self._kinds():
            check(entries, source)
        self._fields = self._expanded()
        self._disturber = BatchDisturbances(simulations, self._disturbable) if self._disturbances else None

    def draw(self, row: NDArray[np.float64], seed: int) -> DrawnWorld:
        """What a seed gives a simulation that starts at ``row``; BadValue if it takes too much, and nothing changes."""
        mujoco.mj_setState(self._model, self._data, row, FULL_STATE)
        found: dict[str, list[ModelChange]] = {}
        parts: list[list[ModelChange]] = []
        for entries, source in self._kinds():
            drawn = {key: draw({key: one}, seed, source) for key, one in entries.items()}
            found |= drawn
            parts.append([change for changes in drawn.values() for change in changes])
        model, start, disturbances, gains = parts
        late = 8 * len(self._simulations.time) * self._disturbable.kept_numbers(disturbances)
        if late > MAX_LATE_BYTES:
            raise BadValue(
                f"what such latencies keep takes {late >> 20} MB for {len(self._simulations.time)} simulations, "
                f"{MAX_LATE_BYTES >> 20} at most: draw shorter ones, or ask for fewer simulations"
            )
        checked = [self._parameters.checked(one) for one in model]
        in_order = [one for key in self._entries for one in found[key]]
        return DrawnWorld(seed, checked, start, disturbances, gains, in_order)

    def _kinds(self) -> list[tuple[Randomisation, ParameterSource]]:
        return [
            (self._of_model, self._parameters),
            (self._of_start, self._start),
            (self._disturbances, self._disturbable),
            (self._of_gains, self._gains),
        ]

    def begin(self, row: NDArray[np.float64], index: int, world: DrawnWorld) -> None:
        """Give simulation ``index`` its world, and put its start into ``row``.

        `settle` is to be called after the last of them.
        """
        for name, (values, compiled) in self._fields.items():
            values[index] = compiled
            flat = values[index].reshape(-1)
            for write in self._parameters.writes(world.of_model):
                if write.array == name:
                    flat[write.start : write.start + len(write.values)] = write.values
        if world.of_start:
            mujoco.mj_setState(self._model, self._data, row, FULL_STATE)
            self._start.write(world.of_start)
            mujoco.mj_getState(self._model, self._data, row, FULL_STATE)
        if self._disturber is not None:
            self._disturber.begin(index, world.disturbances, partial(generator, world.seed))
        self._gains.begin(index, world.gains)

    def end(self, index: int) -> None:
        """Give simulation ``index`` the compiled model, and disturb it no more."""
        for values, compiled in self._fields.values():
            values[index] = compiled
        if self._disturber is not None:
            self._disturber.begin(index, [], partial(generator, 0))
        self._gains.begin(index, [])

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
