"""What disturbs a simulation while it runs: noise and latency of sensors, latency of actuators, pushes.

Each is a change like those of `urlab.physics.parameters`: ``sensor`` has ``noise_std``, ``bias`` and ``latency_s``,
``actuator`` has ``latency_s``, and ``push`` has ``force``: rows of begin and end (s) and a force (N, world) on a body.
Hooks of the engine do the work, and only while there is work: a simulation without disturbances has none of them.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue, did_you_mean, known
from urlab.mujoco_versions import actuator_count, controls_of
from urlab.physics.engine import Engine
from urlab.physics.queries import compiled_name
from urlab_wire.ops.stepping import ModelChange

DISTURBANCE_FIELDS: Mapping[str, Sequence[str]] = {
    "sensor": ("noise_std", "bias", "latency_s"),
    "actuator": ("latency_s",),
    "push": ("force",),
}
MAX_LATENCY_STEPS = 10_000

Array = NDArray[np.float64]
Generators = Callable[[str], np.random.Generator]
"""Random numbers by a word; the same word gives the same numbers."""


class Disturbances:
    """The disturbances of one engine. The owner of the physics lock calls `begin`; the rest runs in hooks."""

    def __init__(self, engine: Engine, prefixes: Iterable[str] = ()) -> None:
        self._engine = engine
        self._prefixes = tuple(prefixes)
        model = engine.model
        self._ids = {
            "sensor": {model.sensor(index).name: index for index in range(model.nsensor)},
            "actuator": {model.actuator(index).name: index for index in range(actuator_count(model))},
            "push": {model.body(i).name: i for i in range(model.nbody) if model.body_weldid[i] != 0},
        }
        self._sensors: _Sensors | None = None
        self._controls: _Controls | None = None
        self._pushes: _Pushes | None = None

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
            return 1, int(self._engine.model.sensor_dim[index])
        return (3, 3) if kind == "push" else (1, 1)

    def limits(self, kind: str, name: str, field: str) -> tuple[float, float]:  # noqa: ARG002 - the same for all
        """Noise and latency are not negative, and a latency is of so many steps at most."""
        if field == "latency_s":
            return 0.0, MAX_LATENCY_STEPS * float(self._engine.model.opt.timestep)
        return (0.0, np.inf) if field == "noise_std" else (-np.inf, np.inf)

    def value(self, kind: str, name: str, field: str) -> list[float]:
        """Without disturbances there are none."""
        return [0.0] * self.width(kind, name, field)[1]

    def begin(self, changes: Sequence[ModelChange], generators: Generators) -> None:
        """Disturb from here on with these, and with nothing that was before."""
        for part in (self._sensors, self._controls, self._pushes):
            if part is not None:
                part.end()
        of_kind = {kind: [one for one in changes if one.kind == kind] for kind in DISTURBANCE_FIELDS}
        engine, ids = self._engine, self._ids
        self._pushes = _Pushes(engine, of_kind["push"], ids["push"]) if of_kind["push"] else None
        self._controls = _Controls(engine, of_kind["actuator"], ids["actuator"]) if of_kind["actuator"] else None
        self._sensors = _Sensors(engine, of_kind["sensor"], ids["sensor"], generators) if of_kind["sensor"] else None

    def observe(self) -> None:
        """Disturb what sensors say after mj_forward, as after a step."""
        if self._sensors is not None:
            self._sensors.disturb()

    def _known(self, kind: str, field: str) -> Mapping[str, int]:
        fields = DISTURBANCE_FIELDS.get(kind, ())
        if field not in fields:
            raise BadValue(f"{kind!r} has no {field!r}{did_you_mean(field, fields)}; there are: {known(fields)}")
        return self._ids[kind]


class _Hooked:
    """Work before and after each sub-step: after everything that others do before it, and before what they do after."""

    def __init__(self, engine: Engine, before: Callable[[], None] | None, after: Callable[[], None]) -> None:
        self._engine, self._before, self._after = engine, before, after
        if before is not None:
            engine.pre_step.append(before)
        engine.post_step.insert(0, after)

    def end(self) -> None:
        if self._before is not None:
            self._engine.pre_step.remove(self._before)
        self._engine.post_step.remove(self._after)


class _Pushes(_Hooked):
    def __init__(self, engine: Engine, changes: Sequence[ModelChange], bodies: Mapping[str, int]) -> None:
        self._xfrc = engine.data.xfrc_applied
        self._rows = [
            (begin, end, bodies[one.name], np.array(force)) for one in changes for begin, end, *force in one.value
        ]
        self._kept: list[tuple[int, Array]] = []
        super().__init__(engine, self._push, self._take_back)

    def _push(self) -> None:
        self._take_back()  # of a sub-step that failed
        time = self._engine.data.time
        for begin, end, body, force in self._rows:
            if begin <= time < end:
                self._kept.append((body, self._xfrc[body].copy()))
                self._xfrc[body, :3] += force

    def _take_back(self) -> None:
        while self._kept:
            body, wrench = self._kept.pop()
            self._xfrc[body] = wrench


class _Controls(_Hooked):
    def __init__(self, engine: Engine, changes: Sequence[ModelChange], actuators: Mapping[str, int]) -> None:
        self._ctrl = engine.data.ctrl
        delays: dict[int, list[int]] = {}
        for change in changes:
            first, count = controls_of(engine.model, actuators[change.name])
            delays.setdefault(_steps(engine, change.value[0]), []).extend(range(first, first + count))
        self._delays = [(steps, np.array(index, dtype=np.intp)) for steps, index in delays.items() if steps]
        longest = max((steps for steps, _ in self._delays), default=0)
        start = self._ctrl.copy()
        self._history: deque[Array] = deque([start] * longest, maxlen=longest + 1)
        self._commanded = start
        super().__init__(engine, self._delay, self._show_commanded)

    def _delay(self) -> None:
        self._commanded = self._ctrl.copy()
        self._history.append(self._commanded)
        for steps, index in self._delays:
            self._ctrl[index] = self._history[-1 - steps][index]

    def _show_commanded(self) -> None:
        self._ctrl[:] = self._commanded


class _Sensors(_Hooked):
    def __init__(
        self, engine: Engine, changes: Sequence[ModelChange], sensors: Mapping[str, int], generators: Generators
    ) -> None:
        model, self._values = engine.model, engine.data.sensordata
        self._noises: list[tuple[slice, Array, np.random.Generator]] = []
        self._biases: list[tuple[slice, Array]] = []
        delays: list[tuple[slice, int]] = []
        for one in changes:
            first, dim = int(model.sensor_adr[sensors[one.name]]), int(model.sensor_dim[sensors[one.name]])
            where, value = slice(first, first + dim), np.asarray(one.value)
            if one.field == "noise_std":
                self._noises.append((where, value, generators(f"noise of {one.name}")))
            elif one.field == "bias":
                self._biases.append((where, value))
            else:
                delays.append((where, _steps(engine, one.value[0])))
        self._delays = [(where, steps) for where, steps in delays if steps]
        longest = max((steps for _, steps in self._delays), default=0)
        self._history: deque[Array] = deque(maxlen=longest + 1)
        super().__init__(engine, None, self.disturb)

    def disturb(self) -> None:
        values, history = self._values, self._history
        if self._delays:
            history.append(values.copy())
            for where, steps in self._delays:
                values[where] = history[max(0, len(history) - 1 - steps)][where]
        for where, bias in self._biases:
            values[where] += bias
        for where, std, rng in self._noises:
            values[where] += std * rng.standard_normal(where.stop - where.start)


def _steps(engine: Engine, latency_s: float) -> int:
    return round(latency_s / float(engine.model.opt.timestep))
