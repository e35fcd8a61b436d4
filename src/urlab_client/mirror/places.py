"""Where in the local data the numbers of a reply go. Places are computed once per handshake."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain

import mujoco
import numpy as np
import numpy.typing as npt

from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.entity import URLabEntity
from urlab_client.transports.repeated_blocks import KnownEntities
from urlab_wire.codec import Tree

Blocks = Mapping[str, Tree]
"""What a reply tells of articulations or entities, by name."""
Numbers = list[float] | npt.NDArray[np.float64]

_WIDTHS = {"qpos": 7, "qvel": 6, "xpos": 3, "xquat": 4}


class ArticulationSlots:
    """The places of one articulation. The numbers of several replies are merged: of each field, the last one counts."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, articulation: URLabArticulation) -> None:
        self.name = articulation.prefix
        self._qpos, self._qvel, self._ctrl, self._act = data.qpos, data.qvel, data.ctrl, data.act
        self._qpos_index, self._qvel_index = articulation._qpos_index, articulation._qvel_index
        self._n_qpos = sum(joint.qpos_dim for joint in articulation.joints.values())
        self._n_qvel = sum(joint.qvel_dim for joint in articulation.joints.values())
        ids = list(dict.fromkeys(one.id for one in articulation.actuators.values()))
        self._n_ctrl = len(articulation.actuators)
        self._ctrl_index = np.array([one.ctrl_id for one in articulation.actuators.values()], dtype=np.intp)
        counts = [int(model.actuator_actnum[i]) for i in ids]
        self._stateful = [local for local, count in enumerate(counts) if count]
        firsts = [int(model.actuator_actadr[ids[local]]) for local in self._stateful]
        further = [
            first + i for local, first in zip(self._stateful, firsts, strict=True) for i in range(1, counts[local])
        ]
        self._stateful += range(len(ids), len(ids) + len(further))  # behind one for each actuator, as replies have them
        self._act_index = np.array(firsts + further, dtype=np.intp)
        self._n_act = len(ids) + len(further)
        self.forget()

    def forget(self) -> None:
        """Drop what was taken and not written."""
        self._new_qpos: Sequence[float] | None = None
        self._new_qvel: Sequence[float] | None = None
        self._new_ctrl: Sequence[float] | None = None
        self._new_act: Sequence[float] | None = None

    def take(self, block: Tree) -> None:
        """Copy the numbers of a reply; KeyError or ValueError where it lacks the joints' state."""
        if self._n_qpos:
            self._new_qpos = self._exactly("qpos", block, self._n_qpos)
            self._new_qvel = self._exactly("qvel", block, self._n_qvel)
        ctrl = block.get("ctrl")
        if ctrl and len(ctrl) == self._n_ctrl:
            self._new_ctrl = tuple(ctrl)
        if self._stateful:
            act = block.get("act")
            if act and len(act) == self._n_act:
                self._new_act = [act[local] for local in self._stateful]

    def write(self) -> None:
        """Put what was taken into the data."""
        qpos, qvel, ctrl, act = self._new_qpos, self._new_qvel, self._new_ctrl, self._new_act
        self.forget()
        if qpos is not None:
            self._qpos[self._qpos_index] = qpos
        if qvel is not None:
            self._qvel[self._qvel_index] = qvel
        if ctrl is not None:
            self._ctrl[self._ctrl_index] = ctrl
        if act is not None:
            self._act[self._act_index] = act

    def _exactly(self, key: str, block: Tree, size: int) -> Sequence[float]:
        values = tuple(block[key])
        if len(values) < size:
            raise ValueError(f"the reply has {len(values)} {key} of {self.name!r}, whose joints have {size}")
        return values if len(values) == size else values[:size]


class EntityRows:
    """The places of all plain entities: qpos and qvel of the free ones, xpos and xquat of the others.

    The poses of mocap bodies are state as well. Poses in ``xpos`` and ``xquat`` of the data are derived: they are
    written after an evaluation, which would overwrite them, and hold until the next one.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, entities: Sequence[URLabEntity]) -> None:
        moving = [one for one in entities if not 0 <= one.body_id < model.nbody or _can_move(model, one.body_id)]
        self._all = _EntityCells(model, data, entities)
        self._moving = _EntityCells(model, data, moving)
        self.forget()

    def forget(self) -> None:
        """Drop what was taken and not written."""
        self._taken = self._all
        self._new_state: Numbers | None = None
        self._new_poses: Numbers | None = None

    def take(self, blocks: Blocks) -> bool:
        """Copy the numbers of a reply, instead of those of earlier ones; False if it does not tell all of them.

        Of a reply whose fixed bodies are known to be as before only the others count: evaluations place the fixed ones.
        """
        self._taken = self._moving if isinstance(blocks, KnownEntities) else self._all
        if not self._taken.cells:
            return True
        try:
            rows = [blocks[name][key] for name, key in self._taken.cells]
        except KeyError:
            return False
        numbers, size = list(chain.from_iterable(rows)), self._taken.size
        if len(numbers) != size:
            raise ValueError(f"the reply has {len(numbers)} numbers in entities, where {size} are expected")
        self._new_state = self._new_poses = numbers
        return True

    def write_state(self) -> None:
        """Put the state that was taken into the data."""
        taken, self._new_state = self._new_state, None
        if taken is not None:
            self._new_poses = numbers = np.array(taken, dtype=np.float64)
            _write(self._taken.state, numbers)

    def write_poses(self) -> None:
        """Put the poses that were taken into the data, right after an evaluation."""
        taken, self._new_poses = self._new_poses, None
        if taken is not None:
            _write(self._taken.poses, np.asarray(taken, dtype=np.float64))

    def write_some_state(self, blocks: Blocks) -> None:
        """Put as much state into the data as the blocks tell."""
        for rows in self._all.state:
            rows.write_some(blocks)

    def write_some_poses(self, blocks: Blocks) -> None:
        """Put as many poses into the data as the blocks tell, right after an evaluation."""
        for rows in self._all.poses:
            rows.write_some(blocks)


class _EntityCells:
    """Which numbers of a reply belong to some entities, and where in the data they go."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, entities: Sequence[URLabEntity]) -> None:
        free_qpos = {one.name: one.qpos_offset for one in entities if one.qpos_offset is not None}
        free_qvel = {one.name: one.qvel_offset for one in entities if one.qvel_offset is not None}
        bodies = {one.name: one.body_id for one in entities if 0 <= one.body_id < model.nbody}
        fixed = {name: i for name, i in bodies.items() if name not in free_qpos}
        mocaps = {name: int(model.body_mocapid[i]) for name, i in fixed.items() if model.body_mocapid[i] >= 0}
        fixed = {**{name: fixed[name] for name in mocaps}, **fixed}  # mocap bodies first: both kinds are one stretch
        columns: dict[str, Mapping[str, int]] = {"qpos": free_qpos, "qvel": free_qvel, "xpos": fixed, "xquat": fixed}
        self.cells = [(name, key) for key, names in columns.items() for name in names]
        *firsts, self.size = accumulate((_WIDTHS[key] * len(names) for key, names in columns.items()), initial=0)
        qpos, qvel, xpos, xquat = firsts
        self.state = (
            _Rows(data.qpos, "qpos", qpos, free_qpos),
            _Rows(data.qvel, "qvel", qvel, free_qvel),
            _Rows(data.mocap_pos, "xpos", xpos, _times(3, mocaps)),
            _Rows(data.mocap_quat, "xquat", xquat, _times(4, mocaps)),
        )
        self.poses = (
            _Rows(data.xpos, "xpos", xpos, _times(3, fixed)),
            _Rows(data.xquat, "xquat", xquat, _times(4, fixed)),
        )


class _Rows:
    """One field of some entities, a row each. ``first`` is where their numbers begin among those that are taken,
    ``starts`` are places in the flattened target."""

    def __init__(self, target: npt.NDArray[np.float64], key: str, first: int, starts: Mapping[str, int]) -> None:
        self._flat = target.reshape(-1)
        self._key = key
        self._rows = {name: slice(start, start + _WIDTHS[key]) for name, start in starts.items()}
        places = [place for row in self._rows.values() for place in range(row.start, row.stop)]
        self._index = np.array(places, dtype=np.intp)
        self._source = slice(first, first + len(places))

    def write(self, numbers: npt.NDArray[np.float64]) -> None:
        if self._rows:
            self._flat[self._index] = numbers[self._source]

    def write_some(self, blocks: Blocks) -> None:
        for name, row in self._rows.items():
            if self._key in blocks.get(name, {}):
                self._flat[row] = blocks[name][self._key]


def _can_move(model: mujoco.MjModel, body: int) -> bool:
    """Whether a joint or a mocap pose moves it; else its pose is where every evaluation puts it."""
    return bool(model.body_weldid[body] != 0 or model.body_mocapid[model.body_rootid[body]] >= 0)


def _write(all_rows: Iterable[_Rows], numbers: npt.NDArray[np.float64]) -> None:
    for rows in all_rows:
        rows.write(numbers)


def _times(width: int, rows: Mapping[str, int]) -> dict[str, int]:
    return {name: width * row for name, row in rows.items()}
