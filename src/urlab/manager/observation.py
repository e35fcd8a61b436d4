"""The state as a client sees it, at three levels of detail; only what is asked for is read.

Where each robot's numbers are is worked out once per scene. Arrays are turned into lists whole and then sliced,
which is far cheaper than visiting elements.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from urlab.compile import CompiledScene
from urlab.manager.articulation import RunningArticulation
from urlab_wire.enums import ObservationLevel
from urlab_wire.ops.stepping import ArticulationState, BodyPose, EntityState, TwistBlock

Floats = list[float]


class Observer:
    """Reads one engine's data. The owner of the physics lock calls it."""

    def __init__(self, scene: CompiledScene, articulations: Sequence[RunningArticulation], data: Any) -> None:
        self._data = data
        self._robots = [_RobotView(one) for one in articulations]
        self._entity_ids = np.array([one.body_id for one in scene.entities], dtype=np.intp)
        self._entities = [
            (one.name, one.free_joint.qpos, one.free_joint.qvel) if one.free_joint else (one.name, None, None)
            for one in scene.entities
        ]

    def observe(self, level: ObservationLevel) -> tuple[dict[str, ArticulationState], dict[str, EntityState]]:
        """Every robot at that level, and every entity."""
        qpos, qvel = self._data.qpos.tolist(), self._data.qvel.tolist()
        states = {
            robot.prefix: ArticulationState(qpos=robot.qpos(qpos), qvel=robot.qvel(qvel)) for robot in self._robots
        }
        if level is not ObservationLevel.MINIMAL:
            self._add_standard(states)
        if level is ObservationLevel.FULL:
            self._add_full(states)
        return states, self._observe_entities(qpos, qvel)

    def _observe_entities(self, qpos: Floats, qvel: Floats) -> dict[str, EntityState]:
        if not self._entities:
            return {}
        xpos, xquat = self._data.xpos[self._entity_ids].tolist(), self._data.xquat[self._entity_ids].tolist()
        return {
            name: EntityState(xpos=position, xquat=quat)
            if in_qpos is None or in_qvel is None
            else EntityState(xpos=position, xquat=quat, qpos=qpos[in_qpos], qvel=qvel[in_qvel])
            for (name, in_qpos, in_qvel), position, quat in zip(self._entities, xpos, xquat, strict=True)
        }

    def _add_standard(self, states: dict[str, ArticulationState]) -> None:
        ctrl, act, sensors = self._data.ctrl.tolist(), self._data.act.tolist(), self._data.sensordata.tolist()
        for robot in self._robots:
            state = states[robot.prefix]
            state.ctrl = robot.actuated(ctrl)
            state.act = robot.act(act)
            state.sensors = {name: sensors[where] for name, where in robot.sensors}
            if robot.twist is not None:
                state.twist = TwistBlock(linear=robot.twist.linear, angular=robot.twist.angular)
                state.actions = robot.twist.actions

    def _add_full(self, states: dict[str, ArticulationState]) -> None:
        xpos, xquat = self._data.xpos.tolist(), self._data.xquat.tolist()
        force = self._data.actuator_force.tolist()
        for robot in self._robots:
            state = states[robot.prefix]
            state.bodies = {name: BodyPose(xpos=xpos[body], xquat=xquat[body]) for name, body in robot.bodies}
            state.actuator_force = robot.actuated(force)


class _RobotView:
    """Where one robot's numbers are in the arrays of the whole scene."""

    def __init__(self, robot: RunningArticulation) -> None:
        compiled = robot.compiled
        self.prefix = robot.prefix
        self.twist = robot.twist
        self.qpos = _Picker([index for joint in compiled.joints for index in _indices(joint.qpos)])
        self.qvel = _Picker([index for joint in compiled.joints for index in _indices(joint.qvel)])
        self.actuated = _Picker([actuator.id for actuator in compiled.actuators])
        self.sensors = [(sensor.short, sensor.data) for sensor in compiled.sensors]
        self.bodies = [(body.short, body.id) for body in compiled.bodies]
        self._act_index = [actuator.act_index for actuator in compiled.actuators]

    def act(self, act: Floats) -> Floats:
        """One activation per actuator, 0 for those that have none."""
        return [0.0 if index is None else act[index] for index in self._act_index]


class _Picker:
    """Picks one robot's entries out of a list: a slice when they lie together, as they nearly always do."""

    def __init__(self, indices: list[int]) -> None:
        self._indices = indices
        together = indices == list(range(indices[0], indices[0] + len(indices))) if indices else True
        start = indices[0] if indices else 0
        self._slice = slice(start, start + len(indices)) if together else None

    def __call__(self, values: Floats) -> Floats:
        if self._slice is not None:
            return values[self._slice]
        return [values[index] for index in self._indices]


def _indices(part: slice) -> range:
    return range(part.start, part.stop)
