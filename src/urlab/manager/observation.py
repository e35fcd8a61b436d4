"""The state as a client sees it, at three levels of detail; only what is asked for is read.

Where each robot's numbers are is worked out once per scene. Arrays are turned into lists whole and then sliced,
which is far cheaper than visiting elements. `urlab.manager.packed` compiles what this module says into bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from urlab.compile import CompiledArticulation, CompiledScene
from urlab.physics import Snapshot
from urlab_wire.enums import ObservationLevel
from urlab_wire.ops.stepping import ArticulationState, BodyPose, EntityState, TwistBlock

Floats = list[float]
Array = NDArray[np.float64]


class View(NamedTuple):
    """How a client wants to see the state: how much of it, and whether packed as msgpack bytes."""

    level: ObservationLevel = ObservationLevel.STANDARD
    packed: bool = False


class PlainBlocks(NamedTuple):
    """Robots and entities by name."""

    articulations: dict[str, ArticulationState]
    entities: dict[str, EntityState]


@dataclass(slots=True)
class Observation:
    """The state at one moment, as a reply shows it. ``steps`` is the counter's total at that moment.

    Robots and entities are ``blocks``: by name, or packed as msgpack bytes when the caller asked for that.
    ``extras`` are the fields that only some replies have: ``perturbation``, ``replay``, ``warnings``.
    """

    time: float
    steps: int
    blocks: PlainBlocks | bytes
    extras: dict[str, Any]
    snapshot: Snapshot | None = None
    """A copy of that state, for cameras that draw it later; only when it was asked for."""


DATA_FIELDS = ("qpos", "qvel", "ctrl", "act", "sensordata", "xpos", "xquat", "actuator_force")
"""The arrays of MjData that observations are read from."""


@dataclass(frozen=True)
class ObservedArrays:
    """The arrays that observations are read from: views into MjData, and the commands that a robot's policy reads.

    ``twist`` has a row (vx, vy, yaw rate) per robot, ``actions`` a bit field; both are views of ``commands``.
    ``buffer_bytes`` is the size of the allocation that MjData keeps its arrays in.
    """

    qpos: Array
    qvel: Array
    ctrl: Array
    act: Array
    sensordata: Array
    xpos: Array
    xquat: Array
    actuator_force: Array
    twist: Array
    actions: NDArray[np.int64]
    commands: Array
    buffer_bytes: int

    @classmethod
    def of(cls, data: Any, robots: int) -> "ObservedArrays":
        """Views into a simulation's data, and room for the twists of its robots."""
        commands = np.zeros(4 * robots)
        twist, actions = np.split(commands, [3 * robots])
        return cls(
            **{name: getattr(data, name) for name in DATA_FIELDS},
            twist=twist.reshape(robots, 3),
            actions=actions.view(np.int64),
            commands=commands,
            buffer_bytes=data.nbuffer,
        )


class Observer:
    """Reads one scene's sources. The owner of the physics lock calls it."""

    def __init__(self, scene: CompiledScene, sources: ObservedArrays) -> None:
        self._sources = sources
        self._robots = [_RobotView(one, scene.model.actuator_actnum) for one in scene.articulations]
        self._entity_ids = np.array([one.body_id for one in scene.entities], dtype=np.intp)
        self._entities = [
            (one.name, one.free_joint.qpos, one.free_joint.qvel) if one.free_joint else (one.name, None, None)
            for one in scene.entities
        ]

    def articulations(self, level: ObservationLevel) -> dict[str, ArticulationState]:
        """Every robot at that level."""
        qpos, qvel = self._sources.qpos.tolist(), self._sources.qvel.tolist()
        states = {
            robot.prefix: ArticulationState(qpos=robot.qpos(qpos), qvel=robot.qvel(qvel)) for robot in self._robots
        }
        if level is not ObservationLevel.MINIMAL:
            self._add_standard(states)
        if level is ObservationLevel.FULL:
            self._add_full(states)
        return states

    def entities(self) -> dict[str, EntityState]:
        """Every entity; they are the same at all levels."""
        sources = self._sources
        qpos, qvel = sources.qpos.tolist(), sources.qvel.tolist()
        xpos, xquat = sources.xpos[self._entity_ids].tolist(), sources.xquat[self._entity_ids].tolist()
        return {
            name: EntityState(xpos=position, xquat=quat)
            if in_qpos is None or in_qvel is None
            else EntityState(xpos=position, xquat=quat, qpos=qpos[in_qpos], qvel=qvel[in_qvel])
            for (name, in_qpos, in_qvel), position, quat in zip(self._entities, xpos, xquat, strict=True)
        }

    def _add_standard(self, states: dict[str, ArticulationState]) -> None:
        sources = self._sources
        ctrl, act, sensors = sources.ctrl.tolist(), sources.act.tolist(), sources.sensordata.tolist()
        for robot, twist, actions in zip(self._robots, sources.twist.tolist(), sources.actions.tolist(), strict=True):
            state = states[robot.prefix]
            state.ctrl = robot.controlled(ctrl)
            state.act = robot.act(act)
            state.sensors = {name: sensors[where] for name, where in robot.sensors}
            if robot.has_twist:
                vx, vy, yaw_rate = twist
                state.twist = TwistBlock(linear=[vx, vy, 0.0], angular=[0.0, 0.0, yaw_rate])
                state.actions = actions

    def _add_full(self, states: dict[str, ArticulationState]) -> None:
        sources = self._sources
        xpos, xquat, force = sources.xpos.tolist(), sources.xquat.tolist(), sources.actuator_force.tolist()
        for robot in self._robots:
            state = states[robot.prefix]
            state.bodies = {name: BodyPose(xpos=xpos[body], xquat=xquat[body]) for name, body in robot.bodies}
            state.actuator_force = robot.forces(force)


class _RobotView:
    """Where one robot's numbers are in the arrays of the whole scene."""

    def __init__(self, robot: CompiledArticulation, activations: Sequence[int]) -> None:
        """``activations`` says how many every actuator of the model has."""
        self.prefix = robot.prefix
        self.has_twist = robot.sidecar.twist
        self.qpos = _Picker([index for joint in robot.joints for index in _indices(joint.qpos)])
        self.qvel = _Picker([index for joint in robot.joints for index in _indices(joint.qvel)])
        self.controlled = _Picker([control.id for control in robot.controls])
        self._force_index = [control.force_index for control in robot.controls]
        self.sensors = [(sensor.short, sensor.data) for sensor in robot.sensors]
        self.bodies = [(body.short, body.id) for body in robot.bodies]
        self._act_index = [actuator.act_index for actuator in robot.actuators]
        self._act_index += [
            actuator.act_index + further
            for actuator in robot.actuators
            if actuator.act_index is not None
            for further in range(1, int(activations[actuator.id]))
        ]

    def forces(self, force: Floats) -> Floats:
        """One force per control, 0 for those that have none."""
        return [0.0 if index is None else force[index] for index in self._force_index]

    def act(self, act: Floats) -> Floats:
        """One activation per actuator, 0 for those that have none; then the further ones of those with several."""
        return [0.0 if index is None else act[index] for index in self._act_index]


class _Picker:
    """Picks one robot's entries out of a list: a slice when they lie together, as they nearly always do."""

    def __init__(self, indices: Sequence[int]) -> None:
        self._indices = list(indices)
        start = self._indices[0] if self._indices else 0
        together = self._indices == list(range(start, start + len(self._indices)))
        self._slice = slice(start, start + len(self._indices)) if together else None

    def __call__(self, values: Floats) -> Floats:
        if self._slice is not None:
            return values[self._slice]
        return [values[index] for index in self._indices]


def _indices(part: slice) -> range:
    return range(part.start, part.stop)
