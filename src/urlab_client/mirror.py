"""The local copy of the server's state: brings replies into the client's MjData.

A reply is taken, its state written, and what follows from it evaluated: three stages, of which the last two may wait
until somebody looks. Callers hold the client's data lock.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco

from urlab_client.handles.articulation import Index, URLabArticulation
from urlab_client.handles.entity import URLabEntity
from urlab_client.mirror_slots import ArticulationSlots, Blocks, EntityRows

_SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)


class Mirror:
    """Keeps one MjData equal to the server's, derived quantities included.

    ``written``: time, qpos, qvel, act, ctrl and mocap poses are those of the last reply. ``settled``: so is everything
    that follows from them. However late that is, the result is what settling after each reply would have given. Both
    are set when the work is done, so that they may be read without the lock.
    """

    def __init__(
        self, model: Any, data: Any, articulations: Sequence[URLabArticulation], entities: Sequence[URLabEntity]
    ) -> None:
        self.written = self.settled = True
        self._model = model
        self._options = model.opt
        self._data = data
        self._articulations = [ArticulationSlots(model, data, one) for one in articulations]
        self._entities = EntityRows(model, data, entities)
        self._new_time: float | None = None
        self._remembers = bool(model.nhistory or model.nplugin or model.nflex or model.nplastic)
        self._dragged_body = 0

    @property
    def remembers(self) -> bool:
        """Whether an evaluation depends on those before it (delays, plugins, flexes, sleep): then none may be left
        out."""
        return self._remembers or bool(self._options.enableflags & _SLEEP)

    def take(self, reply: Mapping[str, Any]) -> None:
        """Remember the state of a reply; what it leaves out stays as earlier replies told it.

        Poses of bodies without a free joint are the wire's. A free body's follow from its qpos, which is one
        integration ahead of the xpos that mj_step leaves.
        """
        blocks: Blocks = reply.get("per_articulation") or {}
        entities: Blocks = reply.get("entities") or {}
        self.written = self.settled = False
        whole = self._entities.take(entities)
        if not whole:  # rows of an earlier reply must not be written after what this one says of the same joints
            self.write()
            self._entities.forget()
            self.written = False
        self._new_time = reply.get("time", self._new_time)
        for slots in self._articulations:
            block = blocks.get(slots.name)
            if block is not None:
                slots.take(block)
        if entities and not whole:
            self._settle_with(entities)

    def write(self) -> None:
        """Bring the state up to date."""
        if self.written:
            return
        time, self._new_time = self._new_time, None
        if time is not None:
            self._data.time = time
        for slots in self._articulations:
            slots.write()
        self._entities.write_state()
        self.written = True

    def settle(self) -> None:
        """Bring everything up to date."""
        if self.settled:
            return
        self.write()
        mujoco.mj_forward(self._model, self._data)
        self._entities.write_poses()
        self.settled = True

    def reset(self) -> None:
        """Forget everything: the initial state, no controls, no forces. A reply that follows fills it."""
        for slots in self._articulations:
            slots.forget()
        self._entities.forget()
        self._new_time = None
        self.written = self.settled = True
        mujoco.mj_resetData(self._model, self._data)
        self._dragged_body = 0

    def absorb_drag(self, block: Mapping[str, Any] | None) -> None:
        """Put somebody's drag on the local data, for the next local step; the previous one ends."""
        self.settle()
        if self._dragged_body:
            self._data.xfrc_applied[self._dragged_body] = 0
        self._dragged_body = int(block.get("body_id") or 0) if block else 0
        if block and self._dragged_body:
            self._data.xfrc_applied[self._dragged_body] = block["xfrc"]

    def write_qpos(self, index: Index, qpos: Sequence[float]) -> None:
        """Write part of qpos and evaluate."""
        self.settle()
        self._data.qpos[index] = qpos
        mujoco.mj_forward(self._model, self._data)

    def write_mocap(self, body: str, pos: Sequence[float], quat_wxyz: Sequence[float]) -> None:
        """Move a mocap body, where the local model has it, and evaluate."""
        self.settle()
        found = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_BODY, body)
        mocap = int(self._model.body_mocapid[found]) if found >= 0 else -1
        if mocap >= 0:
            self._data.mocap_pos[mocap] = pos
            self._data.mocap_quat[mocap] = quat_wxyz
            mujoco.mj_forward(self._model, self._data)

    def _settle_with(self, entities: Blocks) -> None:
        """Settle at once, with the entities of which a reply tells something."""
        self.write()
        self._entities.write_some_state(entities)
        mujoco.mj_forward(self._model, self._data)
        self._entities.write_some_poses(entities)
        self.settled = True
