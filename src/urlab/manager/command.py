"""What a step asks for: checked as a whole before any of it is done."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue, DimMismatch, UnknownArticulation, UnknownBody, known
from urlab.manager.articulation import RunningArticulation
from urlab.manager.wrenches import Wrench
from urlab_wire.enums import ControlMode
from urlab_wire.ops.stepping import ArticulationCommand

Commands = Mapping[str, ArticulationCommand | None]


@dataclass(slots=True)
class StepCommand:
    """Checked setpoints per articulation, which of them bypass their controller, and wrenches by body id."""

    setpoints: list[tuple[RunningArticulation, Sequence[float] | NDArray[np.float64]]] = field(default_factory=list)
    raw: list[tuple[RunningArticulation, bool]] = field(default_factory=list)
    wrenches: list[tuple[int, Wrench]] = field(default_factory=list)

    def stage(self) -> None:
        """Put the setpoints in force; the caller holds the physics lock."""
        for articulation, values in self.setpoints:
            articulation.staged.put(values)
        for articulation, raw in self.raw:
            articulation.bypass_controller = raw


class CommandReader:
    """Reads the ``per_articulation`` of a step against one scene."""

    def __init__(
        self,
        articulations: Mapping[str, RunningArticulation],
        entity_names: frozenset[str],
        body_id: Callable[[str], int | None],
    ) -> None:
        self._articulations = articulations
        self._entity_names = entity_names
        self._body_id = body_id

    def read(self, commands: Commands | None) -> StepCommand:
        """Check everything that a step asks; nothing is changed yet."""
        result = StepCommand()
        for prefix, command in (commands or {}).items():
            articulation = self._articulations.get(prefix)
            if articulation is None:
                self._read_entity(prefix, command, result)
            elif command is not None:
                self._read_articulation(articulation, command, result)
        return result

    def _read_articulation(
        self, articulation: RunningArticulation, command: ArticulationCommand, result: StepCommand
    ) -> None:
        if command.ctrl_map:
            result.setpoints.append((articulation, articulation.staged.merged(command.ctrl, command.ctrl_map)))
        elif command.ctrl is not None:
            result.setpoints.append((articulation, articulation.staged.check(command.ctrl)))
        result.raw.append((articulation, _is_raw(articulation, command.control_mode)))
        if command.xfrc_applied:
            self._read_wrenches(articulation, command.xfrc_applied, result)

    def _read_wrenches(
        self, articulation: RunningArticulation, wrenches: Mapping[str, list[float]], result: StepCommand
    ) -> None:
        for body, wrench in wrenches.items():
            body_id = articulation.body_id(body)
            body_id = self._body_id(body) if body_id is None else body_id
            if body_id is None:
                raise UnknownBody(
                    f"{articulation.prefix} has no body {body!r}; it has: "
                    f"{known(one.short for one in articulation.compiled.bodies)}"
                )
            result.wrenches.append((body_id, _wrench(body, wrench)))

    def _read_entity(self, name: str, command: ArticulationCommand | None, result: StepCommand) -> None:
        if name not in self._entity_names:
            raise UnknownArticulation(
                f"there is no articulation {name!r}; there are: {known(self._articulations)} "
                f"(entities that take xfrc_applied: {known(self._entity_names)})"
            )
        if command is None:
            return
        if command.ctrl or command.ctrl_map:
            raise UnknownArticulation(f"{name!r} is an entity and has no actuators: it takes xfrc_applied only")
        for body, wrench in (command.xfrc_applied or {}).items():
            body_id = self._body_id(body)
            if body_id is None:
                raise UnknownBody(f"entity {name!r} has no body {body!r}; there are: {known(self._entity_names)}")
            result.wrenches.append((body_id, _wrench(body, wrench)))


def _is_raw(articulation: RunningArticulation, word: str | None) -> bool:
    if word is None or word == ControlMode.UE_CONTROLLER:
        return False
    lowered = word.lower()
    if lowered not in _CONTROL_WORDS:
        raise BadValue(f"control_mode of {articulation.prefix} must be {known(_CONTROL_WORDS)}, not {word!r}")
    return lowered == ControlMode.RAW


def _wrench(body: str, numbers: list[float]) -> Wrench:
    if len(numbers) != 6:
        raise DimMismatch(f"xfrc_applied of {body!r} takes 6 numbers (force, torque), but has {len(numbers)}")
    wrench = np.array(numbers, dtype=np.float64)
    if not np.isfinite(wrench).all():
        raise BadValue(f"xfrc_applied of {body!r} must be finite, but is {numbers}")
    return wrench


_CONTROL_WORDS = frozenset(str(word) for word in ControlMode)
