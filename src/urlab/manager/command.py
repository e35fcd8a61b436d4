"""What a step asks for: setpoints and wrenches, checked as a whole before any of it is done."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue, UnknownArticulation, UnknownBody, known
from urlab.manager.articulation import RunningArticulation
from urlab.manager.forces import Wrench
from urlab.numbers import finite_numbers
from urlab_wire.enums import ControlMode
from urlab_wire.ops.stepping import ArticulationCommand

Commands = Mapping[str, ArticulationCommand | None]
Setpoints = Sequence[float] | NDArray[np.float64]


class StepCommand:
    """What was checked, per articulation: setpoints (None: those in force stay) and whether its controller is bypassed.

    ``wrenches`` are by body id.
    """

    __slots__ = ("articulations", "wrenches")

    def __init__(self) -> None:
        self.articulations: list[tuple[RunningArticulation, Setpoints | None, bool]] = []
        self.wrenches: list[tuple[int, Wrench]] = []

    def stage(self) -> None:
        """Put the setpoints in force; the caller holds the physics lock."""
        for articulation, values, raw in self.articulations:
            if values is not None:
                articulation.staged.put(values)
            articulation.bypass_controller = raw

    def end_window(self) -> None:
        """Controllers are bypassed for the window of one step only."""
        for articulation, _, raw in self.articulations:
            if raw:
                articulation.bypass_controller = False


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
        if not commands:
            return result
        for prefix, command in commands.items():
            articulation = self._articulations.get(prefix)
            if articulation is None:
                self._read_entity(prefix, command, result)
            elif command is not None:
                self._read_articulation(articulation, command, result)
        return result

    def _read_articulation(
        self, articulation: RunningArticulation, command: ArticulationCommand, result: StepCommand
    ) -> None:
        ctrl = command.ctrl or None  # an empty list is an absent one
        values: Setpoints | None = ctrl
        if command.ctrl_map:
            values = articulation.staged.merged(ctrl, command.ctrl_map)
        elif values is not None:
            articulation.staged.check(values)
        word = command.control_mode
        raw = word is not None and word != ControlMode.UE_CONTROLLER and _is_raw(articulation, word)
        result.articulations.append((articulation, values, raw))
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


def _is_raw(articulation: RunningArticulation, word: str) -> bool:
    lowered = word.lower()
    if lowered not in _CONTROL_WORDS:
        raise BadValue(f"control_mode of {articulation.prefix} must be {known(_CONTROL_WORDS)}, not {word!r}")
    return lowered == ControlMode.RAW


def _wrench(body: str, numbers: list[float]) -> Wrench:
    return finite_numbers(f"xfrc_applied of {body!r} (force, torque)", numbers, 6)


_CONTROL_WORDS = frozenset(str(word) for word in ControlMode)
