"""The rows of the state stream: a small binary message per joint, sensor, free body and twist.

Where each row's numbers are is worked out once per scene. Of the rows that are wanted, all float32 ones are filled
together: a gather per array, one copy, and a slice per row.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np

from urlab.compile import CompiledArticulation, CompiledScene
from urlab.compile.compiled_scene import CompiledEntity, JointSlot
from urlab.config import RowLayout
from urlab.manager.observation import Array, Sources
from urlab_wire.streams import RowKind, pack_actions, row_topic, scene_topic

Message = tuple[bytes, bytes]
"""Topic and payload."""

Wanted = Callable[[bytes], bool]
_FREE = int(mujoco.mjtJoint.mjJNT_FREE)
_WORD_BYTES = 4


class _FloatRow(NamedTuple):
    """A row of int32 words and then float32 words; these are (name of an array, index in it)."""

    topic: bytes
    header: tuple[int, ...]
    words: tuple[tuple[str, int], ...]


class _RawRow(NamedTuple):
    """A row that is some float64 numbers as they are in memory."""

    topic: bytes
    numbers: Array


class _ActionsRow(NamedTuple):
    """The row of one robot's bit field, which is sent only when it is not 0."""

    topic: bytes
    robot: int


class Selection:
    """Some rows of a scene, ready to be filled."""

    def __init__(
        self,
        floats: "_FloatRows | None",
        raws: Sequence[_RawRow],
        actions: Sequence[_ActionsRow],
        sources: Sources,
    ) -> None:
        self._floats = floats
        self._raws = raws
        self._actions = actions
        self._sources = sources

    def take(self) -> list[Message]:
        """The rows with the numbers of this moment; the owner of the physics lock calls it."""
        messages = [] if self._floats is None else self._floats.take()
        messages += [(topic, numbers.tobytes()) for topic, numbers in self._raws]
        for topic, robot in self._actions:
            actions = int(self._sources.actions[robot])
            if actions:
                messages.append((topic, pack_actions(actions)))
        return messages


class StateRows:
    """Every row of one scene in one layout. ``sources`` and ``data`` are the simulation's; nothing is written."""

    def __init__(self, scene: CompiledScene, sources: Sources, data: Any, layout: RowLayout) -> None:
        robots = scene.articulations
        build = _RowBuilder(sources, layout)
        self._sources = sources
        self._arrays = {
            "qpos": sources.qpos,
            "qvel": sources.qvel,
            "qacc": data.qacc,
            "sensordata": sources.sensordata,
            "twist": sources.twist.reshape(-1),
        }
        self._floats = [row for index, robot in enumerate(robots) for row in build.float_rows(index, robot)]
        self._raws = [row for robot in robots for row in build.base_rows(robot)]
        self._raws += [row for entity in scene.entities for row in build.scene_rows(entity)]
        self._actions = [
            _ActionsRow(row_topic(robot.prefix, RowKind.ACTIONS).encode(), index)
            for index, robot in enumerate(robots)
            if robot.sidecar.twist
        ]

    @property
    def topics(self) -> list[bytes]:
        """The topics of all rows."""
        floats, raws = [row.topic for row in self._floats], [row.topic for row in self._raws]
        return floats + raws + [row.topic for row in self._actions]

    def select(self, wanted: Wanted) -> Selection | None:
        """The rows whose topics are wanted; None when there are none. Any thread may call it."""
        floats = [row for row in self._floats if wanted(row.topic)]
        raws = [row for row in self._raws if wanted(row.topic)]
        actions = [row for row in self._actions if wanted(row.topic)]
        if not (floats or raws or actions):
            return None
        return Selection(_FloatRows(floats, self._arrays) if floats else None, raws, actions, self._sources)


class _RowBuilder:
    """Says which rows a scene has, and what is in them."""

    def __init__(self, sources: Sources, layout: RowLayout) -> None:
        self._sources = sources
        self._v2 = layout is RowLayout.V2

    def float_rows(self, index: int, robot: CompiledArticulation) -> Iterable[_FloatRow]:
        """Joints, sensors and twist of a robot; in v2 its free bodies too."""
        for joint in robot.joints:
            if joint.kind != _FREE:
                yield self._joint(robot.prefix, joint)
            elif self._v2:
                yield self._free_joint(robot.prefix, joint)
        for sensor in robot.sensors:
            numbers = _words("sensordata", range(sensor.data.start, sensor.data.stop))
            header = (sensor.id, len(numbers)) if self._v2 else (sensor.id,)
            yield _FloatRow(row_topic(robot.prefix, RowKind.SENSOR, sensor.short).encode(), header, numbers)
        if robot.sidecar.twist:
            twist = _words("twist", range(3 * index, 3 * index + 3))
            yield _FloatRow(row_topic(robot.prefix, RowKind.TWIST).encode(), (), twist)

    def base_rows(self, robot: CompiledArticulation) -> Iterable[_RawRow]:
        """In v1 a free body is its qpos: position, quaternion w x y z."""
        if not self._v2:
            for joint in robot.joints:
                if joint.kind == _FREE:
                    yield _RawRow(_base_topic(robot.prefix, joint), self._sources.qpos[joint.qpos])

    def scene_rows(self, entity: CompiledEntity) -> Iterable[_RawRow]:
        """v1 knows no entities."""
        if not self._v2:
            return
        parts = {"xpos": self._sources.xpos[entity.body_id], "xquat": self._sources.xquat[entity.body_id]}
        if entity.free_joint is not None:
            parts["qpos"] = self._sources.qpos[entity.free_joint.qpos]
            parts["qvel"] = self._sources.qvel[entity.free_joint.qvel]
        for field, numbers in parts.items():
            yield _RawRow(scene_topic(entity.name, field).encode(), numbers)

    def _joint(self, prefix: str, joint: JointSlot) -> _FloatRow:
        q, v = joint.qpos.start, joint.qvel.start
        words = (("qpos", q), ("qvel", v), ("qacc", v))
        return _FloatRow(row_topic(prefix, RowKind.JOINT, joint.short).encode(), (joint.id,), words)

    def _free_joint(self, prefix: str, joint: JointSlot) -> _FloatRow:
        q, v = joint.qpos.start, joint.qvel.start
        pose_xyzw = _words("qpos", (q, q + 1, q + 2, q + 4, q + 5, q + 6, q + 3))
        return _FloatRow(_base_topic(prefix, joint), (), pose_xyzw + _words("qvel", range(v, v + 6)))


class _FloatRows:
    """Rows of 4-byte words in one buffer. ``_moves`` says which numbers go where in it."""

    def __init__(self, rows: Sequence[_FloatRow], arrays: Mapping[str, Array]) -> None:
        self._spans: list[tuple[bytes, int, int]] = []
        self._words = np.zeros(sum(len(row.header) + len(row.words) for row in rows), dtype="<f4")
        integers = self._words.view("<i4")
        moves: dict[str, tuple[list[int], list[int]]] = {}
        place = 0
        for row in rows:
            begin = place
            place += len(row.header)
            integers[begin:place] = row.header
            for array, index in row.words:
                places, indices = moves.setdefault(array, ([], []))
                places.append(place)
                indices.append(index)
                place += 1
            self._spans.append((row.topic, _WORD_BYTES * begin, _WORD_BYTES * place))
        self._moves = [(np.array(to), arrays[name], np.array(at)) for name, (to, at) in moves.items()]

    def take(self) -> list[Message]:
        """Fill the rows. What is beyond float32 becomes infinite, as it does in C."""
        with np.errstate(over="ignore"):
            for places, array, indices in self._moves:
                self._words[places] = array.take(indices)
        filled = self._words.tobytes()
        return [(topic, filled[begin:end]) for topic, begin, end in self._spans]


def _words(array: str, indices: Iterable[int]) -> tuple[tuple[str, int], ...]:
    return tuple((array, index) for index in indices)


def _base_topic(prefix: str, joint: JointSlot) -> bytes:
    return row_topic(prefix, RowKind.BASE_STATE, joint.short).encode()
