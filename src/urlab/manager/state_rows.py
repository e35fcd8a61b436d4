"""The rows of a scene's state stream: which there are, and where their numbers are in the simulation's arrays.

What stands in a row, and how rows are packed, says `urlab_wire.rows`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import mujoco

from urlab.compile import CompiledArticulation, CompiledScene
from urlab.compile.compiled_scene import CompiledEntity, JointSlot
from urlab.manager.observation import ObservedArrays
from urlab_wire.enums import RowLayout
from urlab_wire.rows import (
    Message,
    Place,
    PlacedRow,
    RowPacker,
    base_state_row,
    joint_row,
    pack_actions,
    scene_row,
    sensor_row,
    twist_row,
)
from urlab_wire.streams import RowKind, row_topic, scene_topic

Wanted = Callable[[bytes], bool]
_FREE = int(mujoco.mjtJoint.mjJNT_FREE)


class RowSelection:
    """Some rows of a scene, ready to be packed. ``actions`` are topics of bit fields and the robots they belong to."""

    def __init__(self, packer: RowPacker, actions: Sequence[tuple[bytes, int]], sources: ObservedArrays) -> None:
        self._packer = packer
        self._actions = actions
        self._sources = sources

    def take(self) -> list[Message]:
        """The rows with the numbers of this moment; the owner of the physics lock calls it."""
        messages = self._packer.pack()
        for topic, robot in self._actions:
            actions = int(self._sources.actions[robot])
            if actions:  # a robot without pressed buttons has no such row
                messages.append((topic, pack_actions(actions)))
        return messages


class StateRows:
    """Every row of one scene in one layout. ``sources`` and ``data`` are the simulation's; nothing is written."""

    def __init__(self, scene: CompiledScene, sources: ObservedArrays, data: Any, layout: RowLayout) -> None:
        self._sources = sources
        self._arrays = {
            "qpos": sources.qpos,
            "qvel": sources.qvel,
            "qacc": data.qacc,
            "sensordata": sources.sensordata,
            "twist": sources.twist.reshape(-1),
            "xpos": sources.xpos.reshape(-1),
            "xquat": sources.xquat.reshape(-1),
        }
        robots = scene.articulations
        self._rows = [row for index, robot in enumerate(robots) for row in _robot_rows(index, robot, layout)]
        if layout is RowLayout.V2:  # v1 knows no entities
            self._rows += [row for entity in scene.entities for row in _entity_rows(entity)]
        self._actions = [
            (row_topic(robot.prefix, RowKind.ACTIONS).encode(), index)
            for index, robot in enumerate(robots)
            if robot.sidecar.twist
        ]

    @property
    def topics(self) -> list[bytes]:
        """The topics of all rows."""
        return [topic for topic, _ in (*self._rows, *self._actions)]

    def select(self, wanted: Wanted) -> RowSelection | None:
        """The rows whose topics are wanted; None when there are none. Any thread may call it."""
        rows = [row for row in self._rows if wanted(row[0])]
        actions = [row for row in self._actions if wanted(row[0])]
        if not (rows or actions):
            return None
        return RowSelection(RowPacker(rows, self._arrays), actions, self._sources)


def _robot_rows(index: int, robot: CompiledArticulation, layout: RowLayout) -> Iterator[PlacedRow]:
    """Joints, free bodies, sensors and twist of a robot."""
    for joint in robot.joints:
        yield _joint(robot.prefix, joint, layout)
    for sensor in robot.sensors:
        row = sensor_row(sensor.id, _places("sensordata", _indices(sensor.data)), layout)
        yield row_topic(robot.prefix, RowKind.SENSOR, sensor.short).encode(), row
    if robot.sidecar.twist:
        twist = twist_row(_places("twist", range(3 * index, 3 * index + 3)))
        yield row_topic(robot.prefix, RowKind.TWIST).encode(), twist


def _joint(prefix: str, joint: JointSlot, layout: RowLayout) -> PlacedRow:
    if joint.kind == _FREE:
        row = base_state_row(_places("qpos", _indices(joint.qpos)), _places("qvel", _indices(joint.qvel)), layout)
        return row_topic(prefix, RowKind.BASE_STATE, joint.short).encode(), row
    q, v = joint.qpos.start, joint.qvel.start
    row = joint_row(joint.id, ("qpos", q), ("qvel", v), ("qacc", v))
    return row_topic(prefix, RowKind.JOINT, joint.short).encode(), row


def _entity_rows(entity: CompiledEntity) -> Iterator[PlacedRow]:
    body = entity.body_id
    fields = {"xpos": range(3 * body, 3 * body + 3), "xquat": range(4 * body, 4 * body + 4)}
    if entity.free_joint is not None:
        fields |= {"qpos": _indices(entity.free_joint.qpos), "qvel": _indices(entity.free_joint.qvel)}
    for field, indices in fields.items():
        yield scene_topic(entity.name, field).encode(), scene_row(_places(field, indices))


def _places(array: str, indices: Iterable[int]) -> list[Place]:
    return [(array, index) for index in indices]


def _indices(part: slice) -> range:
    return range(part.start, part.stop)
