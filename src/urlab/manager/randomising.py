"""Randomisation of one running scene: what a reset draws, where it goes, and what was drawn last.

Every kind and field is a parameter of one of five: the compiled model, the start of a simulation, what disturbs it
while it runs, the gains of controllers, and the noise of cameras. All are written under the physics lock.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from urlab.cameras.noise import NOISE_FIELDS, CameraNoise
from urlab.control.pd_law import GAIN_FIELDS, LARGEST_GAIN
from urlab.errors import BadValue, did_you_mean, known
from urlab.manager.articulation import RunningArticulation
from urlab.physics import Engine
from urlab.physics.disturbances import DISTURBANCE_FIELDS, Disturbances
from urlab.physics.model_changes import ModelChanges
from urlab.physics.parameters import FIELDS
from urlab.physics.queries import compiled_name
from urlab.physics.start_state import START_FIELDS, StartState
from urlab.scene.randomisation import (
    ParameterSource,
    Randomisation,
    check,
    draw,
    generator,
    parse_randomisation,
)
from urlab_wire.ops.stepping import ModelChange, ModelWrites, RandomizedBlock

_KINDS = {*FIELDS, *START_FIELDS, *DISTURBANCE_FIELDS, *GAIN_FIELDS}


class ControllerGains:
    """The gains of PD controllers as parameters, by the compiled names of the joints that they drive."""

    def __init__(self, robots: Iterable[RunningArticulation]) -> None:
        self._joints = {
            joint.name: (one.controller, joint.short)
            for one in robots
            if one.controller is not None
            for joint in one.compiled.joints
            if joint.short in one.controller.params().get("kp", {})
        }
        self._prefixes = tuple(dict.fromkeys(one.prefix for one in robots))
        self._before: dict[tuple[str, str], tuple[float, float]] = {}

    def names(self, kind: str, field: str) -> Sequence[str]:  # noqa: ARG002 - the same for all
        """The compiled names of the joints."""
        return tuple(self._joints)

    def find(self, kind: str, name: str, field: str) -> str:  # noqa: ARG002
        """The compiled name that ``name`` means; BadValue lists those that exist."""
        return compiled_name("joint with a controller", name, self._joints, self._prefixes, BadValue)

    def width(self, kind: str, name: str, field: str) -> tuple[int, int]:  # noqa: ARG002
        """One number."""
        return 1, 1

    def limits(self, kind: str, name: str, field: str) -> tuple[float, float]:  # noqa: ARG002
        """No gain is negative."""
        return 0.0, LARGEST_GAIN

    def value(self, kind: str, name: str, field: str) -> list[float]:  # noqa: ARG002
        """The gain in force."""
        controller, short = self._joints[name]
        return [float(controller.params()[field][short])]

    def begin(self, changes: Sequence[ModelChange]) -> None:
        """Take back what was drawn before, where it is still in force; then set these."""
        for (name, field), (before, drawn) in self._before.items():
            if self.value("controller", name, field) == [drawn]:
                self._configure(name, field, before)
        self._before = {}
        for one in changes:
            self._before[one.name, one.field] = (self.value(one.kind, one.name, one.field)[0], one.value[0])
            self._configure(one.name, one.field, one.value[0])

    def _configure(self, name: str, field: str, value: float) -> None:
        controller, short = self._joints[name]
        controller.configure({field: {short: value}})


class Randomising:
    """What one scene can draw. The owner of the physics lock calls it, but for `plan`."""

    def __init__(
        self,
        engine: Engine,
        prefixes: Sequence[str],
        robots: Iterable[RunningArticulation],
        noise: CameraNoise,
        table: Mapping[str, Any],
    ) -> None:
        """``table`` is the level's own; BadValue when the scene has not what it names."""
        self._engine = engine
        self._prefixes = tuple(prefixes)
        self.changes = ModelChanges(engine, prefixes)
        """What is changed in the model."""

        self._robots = tuple(robots)
        self._noise = noise
        self.drawn: RandomizedBlock | None = None
        """What is in force of the last reset."""

        self._disturbs = False
        self._level = parse_randomisation(table)
        check(self._level, self)

    @cached_property
    def _start(self) -> StartState:
        return StartState(self._engine.model, self._engine.data, self._prefixes)

    @cached_property
    def _disturbances(self) -> Disturbances:
        return Disturbances(self._engine, self._prefixes)

    @cached_property
    def _gains(self) -> ControllerGains:
        return ControllerGains(self._robots)

    @property
    def model_version(self) -> int:
        """Grows whenever the model changes; 0 while it is as it was compiled. Any thread."""
        return self.changes.version

    # -- a reset ------------------------------------------------------------------------------------------------

    def plan(self, seed: int | None, randomize: bool | Mapping[str, Any] | None) -> "Plan | None":
        """What a reset is to draw; None for nothing. BadValue says what is wrong with the entries. Any thread."""
        if randomize is False or (randomize is None and seed is None):
            return None
        if isinstance(randomize, Mapping):
            entries = parse_randomisation(randomize)
            check(entries, self)
        elif randomize and not self._level:
            raise BadValue("this level has no [randomize] table: give the entries themselves, or write one")
        else:
            entries = self._level
        if not entries:
            return None
        return Plan(entries, secrets.randbits(63) if seed is None else seed, self)

    def apply_model(self, plan: "Plan | None") -> ModelWrites | None:
        """Before the data is reset: the model as the plan draws it, or as it was; None when it stays as it is."""
        if plan is None:
            return self.changes.begin_anew()
        return self.changes.begin_anew(self.changes.check(plan.draw(FIELDS)))

    def apply_start(self, plan: "Plan | None") -> None:
        """At the start, before mj_forward: poses, gains and what will disturb the simulation."""
        self.drawn = None
        if plan is None and not self._disturbs:
            return
        if self._disturbs:
            self._gains.begin([])
        start = plan.draw(START_FIELDS) if plan else []
        disturbances = plan.draw(DISTURBANCE_FIELDS) if plan else []
        gains = plan.draw(GAIN_FIELDS) if plan else []
        noise = plan.draw(NOISE_FIELDS) if plan else []
        self._noise.begin(noise, plan.seed if plan else 0)
        if start:
            self._start.write(start)
        if gains:
            self._gains.begin(gains)
        if disturbances or self._disturbs:
            self._disturbances.begin(disturbances, partial(generator, plan.seed) if plan else generator_of_nothing)
        self._disturbs = bool(disturbances or gains or noise)
        if plan is not None:
            self.drawn = RandomizedBlock(seed=plan.seed, changes=plan.all_changes)

    def observe(self) -> None:
        """After mj_forward: what sensors say is disturbed as after a step."""
        if self._disturbs:
            self._disturbances.observe()

    def restart(self) -> None:
        """At a restored state, after mj_forward: disturb it as if it had been reset to there."""
        if self._disturbs:
            self._disturbances.restart()
            self._disturbances.observe()

    # -- parameters by kind and field ---------------------------------------------------------------------------

    def names(self, kind: str, field: str) -> Sequence[str]:
        """The compiled names of the elements of a kind."""
        return self._source(kind, field).names(kind, field)

    def find(self, kind: str, name: str, field: str) -> str:
        """The compiled name that a name means."""
        if kind == "texture":
            return self.changes.parameters.find(kind, name, field)
        return self._source(kind, field).find(kind, name, field)

    def width(self, kind: str, name: str, field: str) -> tuple[int, int]:
        """The fewest and the most numbers that the field takes."""
        return self._source(kind, field).width(kind, name, field)

    def value(self, kind: str, name: str, field: str) -> list[float]:
        """The numbers that it has without randomisation."""
        return self._source(kind, field).value(kind, name, field)

    def limits(self, kind: str, name: str, field: str) -> tuple[float, float]:
        """Between what its numbers are kept."""
        return self._source(kind, field).limits(kind, name, field)

    def _source(self, kind: str, field: str) -> ParameterSource:
        if kind not in _KINDS:
            raise BadValue(f"there is no kind {kind!r}{did_you_mean(kind, _KINDS)}; there are: {known(_KINDS)}")
        if field in FIELDS.get(kind, ()):
            return self.changes.parameters
        if field in START_FIELDS.get(kind, ()):
            return self._start
        if field in DISTURBANCE_FIELDS.get(kind, ()):
            return self._disturbances
        if field in GAIN_FIELDS.get(kind, ()):
            return self._gains
        if field in NOISE_FIELDS.get(kind, ()):
            return self._noise
        tables = (FIELDS, START_FIELDS, DISTURBANCE_FIELDS, GAIN_FIELDS, NOISE_FIELDS)
        fields = [name for table in tables for name in table.get(kind, ())]
        raise BadValue(f"{kind} has no field {field!r}{did_you_mean(field, fields)}; there are: {known(fields)}")


class Plan:
    """Entries and a seed, of which a reset draws in the order in which it gets to them."""

    def __init__(self, entries: Randomisation, seed: int, source: ParameterSource) -> None:
        self.seed = seed
        self._entries, self._source = entries, source
        self._drawn: dict[str, list[ModelChange]] = {}

    def draw(self, fields: Mapping[str, Iterable[str]]) -> list[ModelChange]:
        """The draws of those entries whose kind and field are among these."""
        mine = {key: one for key, one in self._entries.items() if one.field in fields.get(one.kind, ())}
        found = {key: draw({key: one}, self.seed, self._source) for key, one in mine.items()}
        self._drawn |= found
        return [change for changes in found.values() for change in changes]

    @property
    def all_changes(self) -> list[ModelChange]:
        """Everything that was drawn, in the order of the entries."""
        return [change for key in self._entries for change in self._drawn.get(key, ())]


def generator_of_nothing(word: str) -> Any:
    """For no disturbances: nothing asks for random numbers then."""
    raise AssertionError(f"nothing was drawn, and yet random numbers are wanted for {word}")
