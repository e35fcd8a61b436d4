"""What disturbs a simulation while it runs: noise and latency of sensors, latency of actuators, pushes.

Each is a change like those of `urlab.physics.parameters`: ``sensor`` has ``noise_std``, ``bias`` and ``latency_s``,
``actuator`` has ``latency_s``, and ``push`` has ``force``: rows of begin and end (s) and a force (N, world) on a body.
The same code disturbs one engine, by hooks, and each simulation of a batch. Only what is disturbed has any work.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue, did_you_mean, known
from urlab.mujoco_versions import actuator_count, controls_of
from urlab.physics.batch import SimulationBatch
from urlab.physics.engine import Engine
from urlab.physics.queries import compiled_name
from urlab_wire.ops.stepping import ModelChange

DISTURBANCE_FIELDS: Mapping[str, Sequence[str]] = {
    "sensor": ("noise_std", "bias", "latency_s"),
    "actuator": ("latency_s",),
    "push": ("force",),
}
MAX_LATENCY_STEPS = 10_000
_NOISE_STEPS = 16
"""Steps whose noise is drawn at once: for 1024 quadrupeds a draw for each step takes eight times as long, 160 ms."""

Array = NDArray[np.float64]
Generators = Callable[[str], np.random.Generator]
"""Random numbers by a word; the same word gives the same numbers."""


class DisturbedArrays(Protocol):
    """What is disturbed of one simulation, as `MjData` has it: its arrays can be written."""

    @property
    def time(self) -> float:
        """Simulated seconds."""

    @property
    def ctrl(self) -> Array:
        """(nu,)."""

    @property
    def xfrc_applied(self) -> Array:
        """(nbody, 6)."""

    @property
    def sensordata(self) -> Array:
        """(nsensordata,)."""


class DisturbanceParameters:
    """The disturbances that a model can have, as parameters to draw."""

    def __init__(self, model: Any, prefixes: Iterable[str] = ()) -> None:
        self._model = model
        self._prefixes = tuple(prefixes)
        self._ids = {
            "sensor": {model.sensor(index).name: index for index in range(model.nsensor)},
            "actuator": {model.actuator(index).name: index for index in range(actuator_count(model))},
            "push": {model.body(i).name: i for i in range(model.nbody) if model.body_weldid[i] != 0},
        }

    def names(self, kind: str, field: str) -> Sequence[str]:
        """The compiled names of sensors, actuators, or bodies that a force can move."""
        return tuple(self._known(kind, field))

    def find(self, kind: str, name: str, field: str) -> str:
        """The compiled name that ``name`` means; BadValue lists those that exist."""
        words = "body that a force can move" if kind == "push" else kind
        return compiled_name(words, name, self._known(kind, field), self._prefixes, BadValue)

    def width(self, kind: str, name: str, field: str) -> tuple[int, int]:
        """One number for each of a sensor's, or one for all of them; else one, or three of a force."""
        index = self._known(kind, field)[name]
        if field in ("noise_std", "bias"):
            return 1, int(self._model.sensor_dim[index])
        return (3, 3) if kind == "push" else (1, 1)

    def limits(self, kind: str, name: str, field: str) -> tuple[float, float]:  # noqa: ARG002 - the same for all
        """Noise and latency are not negative, and a latency is of so many steps at most."""
        if field == "latency_s":
            return 0.0, MAX_LATENCY_STEPS * float(self._model.opt.timestep)
        return (0.0, np.inf) if field == "noise_std" else (-np.inf, np.inf)

    def value(self, kind: str, name: str, field: str) -> list[float]:
        """Without disturbances there are none."""
        return [0.0] * self.width(kind, name, field)[1]

    def made(
        self, changes: Sequence[ModelChange], generators: Generators, arrays: DisturbedArrays
    ) -> "list[Disturbance]":
        """What disturbs a simulation from here on, in the order in which it acts before a sub-step."""
        of_kind = {kind: [one for one in changes if one.kind == kind] for kind in DISTURBANCE_FIELDS}
        model, ids, parts = self._model, self._ids, list[Disturbance]()
        if of_kind["push"]:
            parts.append(_Pushes(arrays, of_kind["push"], ids["push"]))
        if of_kind["actuator"]:
            parts.append(_Controls(model, arrays, of_kind["actuator"], ids["actuator"]))
        if of_kind["sensor"]:
            parts.append(_Sensors(model, arrays, of_kind["sensor"], ids["sensor"], generators))
        return parts

    def kept_numbers(self, changes: Sequence[ModelChange]) -> int:
        """How many numbers latencies keep for one simulation."""
        latest = {"sensor": 0, "actuator": 0}
        for one in changes:
            if one.field == "latency_s":
                latest[one.kind] = max(latest[one.kind], latency_steps(self._model, one.value[0]))
        return int(latest["sensor"] * self._model.nsensordata + latest["actuator"] * self._model.nu)

    def _known(self, kind: str, field: str) -> Mapping[str, int]:
        fields = DISTURBANCE_FIELDS.get(kind, ())
        if field not in fields:
            raise BadValue(f"{kind!r} has no {field!r}{did_you_mean(field, fields)}; there are: {known(fields)}")
        return self._ids[kind]


class Disturbances(DisturbanceParameters):
    """The disturbances of one engine. The owner of the physics lock calls `begin`; the rest runs in hooks."""

    def __init__(self, engine: Engine, prefixes: Iterable[str] = ()) -> None:
        super().__init__(engine.model, prefixes)
        self._engine = engine
        self._parts: list[Disturbance] = []
        self._begun: tuple[Sequence[ModelChange], Generators] | None = None

    def begin(self, changes: Sequence[ModelChange], generators: Generators) -> None:
        """Disturb from here on with these, and with nothing that was before."""
        pre_step, post_step = self._engine.pre_step, self._engine.post_step
        for part in self._parts:
            if part.acts_before:
                pre_step.remove(part.before)
            post_step.remove(part.after)
        self._parts = self.made(changes, generators, self._engine.data)
        self._begun = changes, generators
        for part in self._parts:  # after what others do before a sub-step, and before what they do after it
            if part.acts_before:
                pre_step.append(part.before)
            post_step.insert(0, part.after)

    def restart(self) -> None:
        """Begin again with the same, at another state: nothing is on its way, and noise begins anew."""
        if self._begun is not None:
            self.begin(*self._begun)

    def observe(self) -> None:
        """Disturb what sensors say after mj_forward, as after a step."""
        for part in self._parts:
            part.observe()


class BatchDisturbances:
    """Those of the simulations of a batch, each with its own. It takes part in every sub-step of the batch."""

    def __init__(self, batch: SimulationBatch, parameters: DisturbanceParameters) -> None:
        self._parameters = parameters
        self._sensordata = batch.sensordata
        self._seen = np.array(batch.sensordata)
        self._rows = [_BatchRow(batch, self._seen, index) for index in range(len(batch.time))]
        self._parts: dict[int, list[Disturbance]] = {}
        batch.disturb(self, self._seen)

    def begin(self, index: int, changes: Sequence[ModelChange], generators: Generators) -> None:
        """Disturb one simulation from here on with these, and with nothing that was before."""
        self._parts[index] = self._parameters.made(changes, generators, self._rows[index])

    @property
    def is_active(self) -> bool:
        """Whether any simulation is disturbed."""
        return any(self._parts.values())

    def before(self) -> None:
        """Before a sub-step of all."""
        for parts in self._parts.values():
            for part in parts:
                if part.acts_before:
                    part.before()

    def after(self) -> None:
        """After a sub-step of all."""
        self._seen[:] = self._sensordata
        for parts in self._parts.values():
            for part in reversed(parts):
                part.after()

    def observe(self, ids: NDArray[np.intp]) -> None:
        """After an evaluation of some: disturb what their sensors say, as after a step."""
        self._seen[ids] = self._sensordata[ids]
        for index in ids.tolist():
            for part in self._parts.get(index, ()):
                part.observe()


class _BatchRow:
    """The arrays of one simulation of a batch."""

    def __init__(self, batch: SimulationBatch, sensordata: Array, index: int) -> None:
        self._times, self._index = batch.time, index
        self.ctrl: Array = batch.ctrl[index]
        self.xfrc_applied: Array = batch.xfrc_applied[index]
        self.sensordata: Array = sensordata[index]

    @property
    def time(self) -> float:
        return float(self._times[self._index])


class Disturbance:
    """One kind of disturbance of one simulation."""

    acts_before: ClassVar[bool] = True
    """Whether it has something to do before a sub-step."""

    def before(self) -> None:
        """Before a sub-step, after everything that others do before it."""

    def after(self) -> None:
        """After a sub-step, before everything that others do after it."""

    def observe(self) -> None:
        """After an evaluation without a step."""


class _Pushes(Disturbance):
    def __init__(self, arrays: DisturbedArrays, changes: Sequence[ModelChange], bodies: Mapping[str, int]) -> None:
        self._arrays, self._xfrc = arrays, arrays.xfrc_applied
        self._rows = [
            (begin, end, bodies[one.name], np.array(force)) for one in changes for begin, end, *force in one.value
        ]
        self._kept: list[tuple[int, Array]] = []

    def before(self) -> None:
        self.after()  # of a sub-step that failed
        time = self._arrays.time
        for begin, end, body, force in self._rows:
            if begin <= time < end:
                self._kept.append((body, self._xfrc[body].copy()))
                self._xfrc[body, :3] += force

    def after(self) -> None:
        while self._kept:
            body, wrench = self._kept.pop()
            self._xfrc[body] = wrench


class _History:
    """Rows of numbers, of which each is read so many rows later; before the first row, the first."""

    def __init__(self, steps: Sequence[int]) -> None:
        self._steps, self._columns = np.array(steps, dtype=np.intp), np.arange(len(steps))
        self._rows = np.empty((max(steps) + 1, len(steps)))
        self._count = 0

    def push(self, row: Array) -> Array:
        """Take the newest row; what is read now."""
        length, newest = len(self._rows), self._count
        self._rows[newest % length] = row
        self._count += 1
        late: Array = self._rows[(newest - np.minimum(self._steps, newest)) % length, self._columns]
        return late


class _Controls(Disturbance):
    def __init__(
        self, model: Any, arrays: DisturbedArrays, changes: Sequence[ModelChange], actuators: Mapping[str, int]
    ) -> None:
        self._ctrl = arrays.ctrl
        delays: dict[int, int] = {}
        for change in changes:
            first, count = controls_of(model, actuators[change.name])
            delays |= dict.fromkeys(range(first, first + count), latency_steps(model, change.value[0]))
        self._columns = np.array(list(delays), dtype=np.intp)
        self._history = _History(list(delays.values()))
        self._history.push(self._ctrl[self._columns])
        self._commanded = self._ctrl.copy()

    def before(self) -> None:
        self._commanded[:] = self._ctrl
        self._ctrl[self._columns] = self._history.push(self._ctrl[self._columns])

    def after(self) -> None:
        self._ctrl[:] = self._commanded


class _Sensors(Disturbance):
    acts_before = False

    def __init__(
        self,
        model: Any,
        arrays: DisturbedArrays,
        changes: Sequence[ModelChange],
        sensors: Mapping[str, int],
        generators: Generators,
    ) -> None:
        self._values = arrays.sensordata
        columns: dict[str, list[int]] = {"noise_std": [], "bias": [], "latency_s": []}
        numbers: dict[str, list[float]] = {name: [] for name in columns}
        self._sources: list[tuple[int, np.random.Generator]] = []
        for one in changes:
            first, dim = int(model.sensor_adr[sensors[one.name]]), int(model.sensor_dim[sensors[one.name]])
            columns[one.field] += range(first, first + dim)
            numbers[one.field] += np.broadcast_to(one.value, dim).tolist()
            if one.field == "noise_std":
                self._sources.append((dim, generators(f"noise of {one.name}")))
        self._noisy, self._biased, self._late = (np.array(one, dtype=np.intp) for one in columns.values())
        self._std, self._bias = np.array(numbers["noise_std"]), np.array(numbers["bias"])
        steps = [latency_steps(model, latency_s) for latency_s in numbers["latency_s"]]
        self._history = _History(steps) if steps else None
        self._noise: deque[Array] = deque()

    def after(self) -> None:
        values = self._values
        if self._history is not None:
            values[self._late] = self._history.push(values[self._late])
        if len(self._biased):
            values[self._biased] += self._bias
        if self._sources:
            if not self._noise:  # several at once, as single draws would give them
                drawn = [rng.standard_normal((_NOISE_STEPS, dim)) for dim, rng in self._sources]
                self._noise.extend(self._std * np.concatenate(drawn, axis=1))
            values[self._noisy] += self._noise.popleft()

    def observe(self) -> None:
        self.after()


def latency_steps(model: Any, latency_s: float) -> int:
    """A latency in whole steps."""
    return round(latency_s / float(model.opt.timestep))
