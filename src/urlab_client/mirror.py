"""The local copy of the server's state: writes replies into the client's MjData.

Places in the state vectors are computed once per handshake, so that a step costs a few array writes. Callers hold
the client's data lock.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import mujoco
import numpy as np

from urlab_client.handles.articulation import Index, URLabArticulation
from urlab_client.handles.entity import URLabEntity

Blocks = Mapping[str, Mapping[str, Any]]


class Mirror:
    """Keeps one MjData equal to the server's, derived quantities included."""

    def __init__(
        self, model: Any, data: Any, articulations: Sequence[URLabArticulation], entities: Sequence[URLabEntity]
    ) -> None:
        self._model = model
        self._data = data
        self._articulations = [_ArticulationSlots(model, data, one) for one in articulations]
        self._free_qpos = _Rows(data.qpos, "qpos", 7, {one.name: one.qpos_offset for one in entities})
        self._free_qvel = _Rows(data.qvel, "qvel", 6, {one.name: one.qvel_offset for one in entities})
        bodies = {one.name: one.body_id for one in entities if 0 <= one.body_id < model.nbody}
        mocaps = {name: int(model.body_mocapid[i]) for name, i in bodies.items() if model.body_mocapid[i] >= 0}
        self._mocap_pos = _Rows(data.mocap_pos, "xpos", 3, {name: 3 * i for name, i in mocaps.items()})
        self._mocap_quat = _Rows(data.mocap_quat, "xquat", 4, {name: 4 * i for name, i in mocaps.items()})
        fixed = {one.name: bodies[one.name] for one in entities if one.name in bodies and one.qpos_offset is None}
        self._xpos = _Rows(data.xpos, "xpos", 3, {name: 3 * i for name, i in fixed.items()})
        self._xquat = _Rows(data.xquat, "xquat", 4, {name: 4 * i for name, i in fixed.items()})
        self._dragged_body = 0

    def absorb(self, reply: Mapping[str, Any]) -> None:
        """Take over the state of a reply and evaluate everything that follows from it.

        Poses of bodies without a free joint are the wire's. A free body's follow from its qpos, which is one
        integration ahead of the xpos that mj_step leaves.
        """
        blocks: Blocks = reply.get("per_articulation") or {}
        entities: Blocks = reply.get("entities") or {}
        self._data.time = reply.get("time", self._data.time)
        for slots in self._articulations:
            block = blocks.get(slots.name)
            if block is not None:
                slots.write(block)
        for rows in (self._free_qpos, self._free_qvel, self._mocap_pos, self._mocap_quat):
            rows.write(entities)
        mujoco.mj_forward(self._model, self._data)
        self._xpos.write(entities)
        self._xquat.write(entities)

    def reset(self) -> None:
        """Forget everything: the initial state, no controls, no forces. A reply that follows fills it."""
        mujoco.mj_resetData(self._model, self._data)
        self._dragged_body = 0

    def absorb_drag(self, block: Mapping[str, Any] | None) -> None:
        """Put somebody's drag on the local data, for the next local step; the previous one ends."""
        if self._dragged_body:
            self._data.xfrc_applied[self._dragged_body] = 0
        self._dragged_body = int(block.get("body_id") or 0) if block else 0
        if block and self._dragged_body:
            self._data.xfrc_applied[self._dragged_body] = block["xfrc"]

    def write_qpos(self, index: Index, qpos: Sequence[float]) -> None:
        """Write part of qpos and evaluate."""
        self._data.qpos[index] = qpos
        mujoco.mj_forward(self._model, self._data)

    def write_mocap(self, body: str, pos: Sequence[float], quat_wxyz: Sequence[float]) -> None:
        """Move a mocap body, where the local model has it, and evaluate."""
        found = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_BODY, body)
        mocap = int(self._model.body_mocapid[found]) if found >= 0 else -1
        if mocap >= 0:
            self._data.mocap_pos[mocap] = pos
            self._data.mocap_quat[mocap] = quat_wxyz
            mujoco.mj_forward(self._model, self._data)


class _ArticulationSlots:
    """Where the numbers of one articulation go."""

    def __init__(self, model: Any, data: Any, articulation: URLabArticulation) -> None:
        self.name = articulation.prefix
        self._qpos, self._qvel = data.qpos, data.qvel
        self._ctrl, self._act = data.ctrl, data.act
        self._qpos_index, self._qvel_index = articulation._qpos_index, articulation._qvel_index
        self._n_qpos = sum(joint.qpos_dim for joint in articulation.joints.values())
        self._n_qvel = sum(joint.qvel_dim for joint in articulation.joints.values())
        ids = [one.id for one in articulation.actuators.values()]
        self._ctrl_index = np.array(ids, dtype=np.intp)
        self._stateful = [local for local, i in enumerate(ids) if model.actuator_actnum[i] == 1]
        self._act_index = np.array([model.actuator_actadr[ids[local]] for local in self._stateful], dtype=np.intp)

    def write(self, block: Mapping[str, Any]) -> None:
        if self._n_qpos:
            self._qpos[self._qpos_index] = _exactly(block["qpos"], self._n_qpos)
            self._qvel[self._qvel_index] = _exactly(block["qvel"], self._n_qvel)
        ctrl = block.get("ctrl")
        if ctrl and len(ctrl) == len(self._ctrl_index):
            self._ctrl[self._ctrl_index] = ctrl
        act = block.get("act")
        if self._stateful and act and len(act) == len(self._ctrl_index):
            self._act[self._act_index] = [act[local] for local in self._stateful]


class _Rows:
    """Rows of ``width`` numbers by entity name: gathers one field of every entity's block, writes all at once.

    ``starts`` are places in the flattened target, None where an entity has no row.
    """

    def __init__(self, target: Any, key: str, width: int, starts: Mapping[str, int | None]) -> None:
        self._flat = target.reshape(-1)
        self._key = key
        self._width = width
        rows = {name: range(start, start + width) for name, start in starts.items() if start is not None}
        self._names = list(rows)
        self._index = np.array(list(rows.values()), dtype=np.intp).reshape(-1)

    def write(self, blocks: Blocks) -> None:
        if not self._names or not blocks:
            return
        key = self._key
        try:
            rows = [blocks[name][key] for name in self._names]
        except KeyError:
            self._write_some(blocks)
        else:
            self._flat[self._index] = np.fromiter(chain.from_iterable(rows), np.float64, len(self._index))

    def _write_some(self, blocks: Blocks) -> None:
        for name, row in zip(self._names, self._index.reshape(-1, self._width), strict=True):
            if self._key in blocks.get(name, {}):
                self._flat[row] = blocks[name][self._key]


def _exactly(values: Sequence[float], size: int) -> Sequence[float]:
    return values if len(values) == size else values[:size]
