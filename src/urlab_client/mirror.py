"""The local copy of the server's state: ``model`` and ``data``, and how replies are brought into them.

A reply is taken, its state written, and what follows from it evaluated: three stages, of which the last two may
wait until the data is read. What is taken is copied, because a reply belongs to the caller of ``step()``. Places are
computed once per handshake. Callers of `Mirror` hold the client's data lock.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain

import mujoco
import numpy as np
import numpy.typing as npt

from urlab_client.handles.articulation import Index, URLabArticulation
from urlab_client.handles.entity import URLabEntity
from urlab_client.local_edits import LocalEdits
from urlab_client.lookup import FixedAttributes
from urlab_client.transports.repeated_blocks import KnownEntities
from urlab_wire.codec import Tree
from urlab_wire.ops.stepping import ModelWrites

Blocks = Mapping[str, Tree]
"""What a reply tells of articulations or entities, by name."""
Numbers = list[float] | npt.NDArray[np.float64]

_ENUMS = {
    "integrator": (mujoco.mjtIntegrator, "mjINT_"),
    "cone": (mujoco.mjtCone, "mjCONE_"),
    "solver": (mujoco.mjtSolver, "mjSOL_"),
}
_MASKS = ("disableflags", "enableflags")
_MULTICCD_OFF = int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
_SLEEP_ON = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
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


class Mirror:
    """Keeps one MjData equal to the server's, derived quantities included.

    ``written``: time, qpos, qvel, act, ctrl and mocap poses are those of the last reply. ``settled``: so is everything
    that follows from them. However late that is, the result is what settling after each reply would have given. Both
    are set when the work is done, so that they may be read without the lock.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        articulations: Sequence[URLabArticulation],
        entities: Sequence[URLabEntity],
    ) -> None:
        self.written = self.settled = True
        self._model = model
        self._options = model.opt
        self._data = data
        self._articulations = [ArticulationSlots(model, data, one) for one in articulations]
        self._entities = EntityRows(model, data, entities)
        self._new_time: float | None = None
        plastic = getattr(model, "nplastic", 0)  # there is none before MuJoCo 4
        self._remembers = bool(model.nhistory or model.nplugin or model.nflex or plastic)
        self._dragged: list[int] = []
        self._stepped_here = False

    @property
    def remembers(self) -> bool:
        """Whether an evaluation depends on those before it (delays, plugins, flexes, sleep): then none may be left
        out."""
        return self._remembers or bool(self._options.enableflags & _SLEEP_ON)

    def take(self, reply: Tree) -> None:
        """Remember the state of a reply; what it leaves out stays as earlier replies had it.

        Poses of bodies without a free joint are the wire's. A free body's follow from its qpos, which is one
        integration ahead of the xpos that mj_step leaves.
        """
        blocks: Blocks = reply.get("per_articulation") or {}
        entities: Blocks = reply.get("entities") or {}
        self.written = self.settled = self._stepped_here = False
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
        if self._stepped_here:
            self._evaluate_step()
        else:
            mujoco.mj_forward(self._model, self._data)
        self._entities.write_poses()
        self.settled = True

    def note_local_step(self) -> None:
        """The data was stepped here, or its state written: what follows from it is as old as mj_step leaves it."""
        self._entities.forget()
        self._stepped_here = True
        self.settled = False

    def _evaluate_step(self) -> None:
        """Evaluate after a local step, so that the next one is the same as without: its warm start stays.

        Where evaluations depend on those before, only the poses are brought up to date.
        """
        self._stepped_here = False
        if self.remembers:
            mujoco.mj_kinematics(self._model, self._data)
            mujoco.mj_comPos(self._model, self._data)
            return
        warm_start = self._data.qacc_warmstart.copy()
        mujoco.mj_forward(self._model, self._data)
        self._data.qacc_warmstart[:] = warm_start

    def reset(self) -> None:
        """Forget everything: the initial state, no controls, no forces. A reply that follows fills it."""
        for slots in self._articulations:
            slots.forget()
        self._entities.forget()
        self._new_time = None
        self.written = self.settled = True
        self._stepped_here = False
        mujoco.mj_resetData(self._model, self._data)
        self._dragged = []

    def absorb_drags(self, blocks: Sequence[Tree]) -> None:
        """Put what holds bodies on the server on the local data, for the next local step; what did before ends."""
        self._data.xfrc_applied[self._dragged] = 0
        held = {int(block["body_id"]): block["xfrc"] for block in blocks if block.get("body_id")}
        self._dragged = list(held)
        for body, xfrc in held.items():
            self._data.xfrc_applied[body] = xfrc

    def write_equalities(self, active: Mapping[str, bool]) -> None:
        """Switch equality constraints, where the local model has them, and evaluate."""
        self.settle()
        for name, on in active.items():
            found = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_EQUALITY, name)
            if found >= 0:
                self._data.eq_active[found] = on
        mujoco.mj_forward(self._model, self._data)

    def write_model(self, changed: ModelWrites) -> None:
        """Bring the local model up to date with what was changed in the server's, and evaluate."""
        self.settle()
        model = self._model
        for write in changed.writes:
            option = write.array.removeprefix("opt.")
            if option != write.array and len(write.values) == 1:
                setattr(model.opt, option, write.values[0])
            else:
                array = getattr(model.opt, option) if option != write.array else getattr(model, write.array)
                array.reshape(-1)[write.start : write.start + len(write.values)] = write.values
        if changed.derive:
            mujoco.mj_setConst(model, mujoco.MjData(model))
        mujoco.mj_forward(model, self._data)

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


class LocalData(FixedAttributes):
    """``model`` and ``data``, both None where there is no local model.

    Their types leave the None out: scripts that use them have a local model, and need not ask at every line.

    Late data never shows: reading brings it up to date, and from the first reading of ``data`` on, which the
    caller may keep, every reply is brought into it at once. Handles look without keeping anything.
    """

    def __init__(self) -> None:
        self._model: mujoco.MjModel | None = None
        self._data: mujoco.MjData | None = None
        self._watched = False
        self._mirror: Mirror | None = None
        self._data_lock = threading.RLock()
        self._edits = LocalEdits()

    @property
    def model(self) -> mujoco.MjModel:
        """The local `mujoco.MjModel`, None without one: this client's own copy of what the server compiled.

        In puppet mode it is what is simulated, so edits count. In direct and live mode the server simulates its own
        model: edits here (friction, mass, gains, ...) change only what is evaluated here, never the server, and the
        next step or reset warns of them (`URLabLocalEditWarning`). There, ``runtime.set_model_params`` and
        ``runtime.set_sim_options`` change the server's model, and this one with it.
        """
        self._evaluated_data()  # with the model as it is: the caller may be about to change it
        self._edits.model_read(self._model)
        return self._model

    @property
    def data(self) -> mujoco.MjData:
        """The local `mujoco.MjData`, None without one. The caller may keep it: every later step brings it up to date.

        A handshake (``discover()``, ``sim.start()``) makes a new one. In direct and live mode what is written here
        stays here, and the next step overwrites it.
        """
        if not self._watched:
            with self._data_lock:
                self._evaluated_data()
                self._watched = self._data is not None
        return self._data

    def _evaluated_data(self) -> mujoco.MjData | None:
        """The data, current, for a caller who does not keep it."""
        mirror = self._mirror
        if mirror is not None and not mirror.settled:
            with self._data_lock:
                mirror.settle()
        return self._data

    def _written_data(self) -> mujoco.MjData | None:
        """The data, of which only the state (qpos, qvel, ...) is current, for a caller who does not keep it."""
        mirror = self._mirror
        if mirror is not None and not mirror.written:
            with self._data_lock:
                mirror.write()
        return self._data

    def _renew_data(self, model: mujoco.MjModel | None) -> None:
        """Begin with new data, which no caller has yet. The caller holds the lock."""
        self._mirror = None
        self._model, self._data, self._watched = model, None, False
        self._edits = LocalEdits()
        if model is not None:
            self._data = mujoco.MjData(model)
            mujoco.mj_forward(model, self._data)

    def _take_model(self, changed: ModelWrites) -> None:
        """Follow a change of the server's model, where there is a local one. The caller holds the lock."""
        if self._mirror is not None:
            self._mirror.write_model(changed)
            self._edits.follow(self._model)

    def _mirror_into_data(self, articulations: Sequence[URLabArticulation], entities: Sequence[URLabEntity]) -> None:
        """Let replies about these handles go into the data, where there is one. The caller holds the lock."""
        self._evaluated_data()
        self._mirror = None
        if self._model is not None and self._data is not None:
            self._mirror = Mirror(self._model, self._data, articulations, entities)

    def _take_local_step(self, drags: Sequence[Tree]) -> None:
        """Follow a step that was made here: at once where a caller has the data, else when it is read. Locked."""
        mirror = self._mirror
        if mirror is not None:
            mirror.note_local_step()
            if self._watched:
                mirror.settle()
            mirror.absorb_drags(drags)

    def _take_state(self, reply: Tree, *, at_once: bool) -> None:
        """Follow a reply: ``at_once``, or where a caller has the data, or else when it is read. With the lock held."""
        mirror = self._mirror
        if mirror is not None:
            mirror.take(reply)
            if at_once or self._watched or mirror.remembers:
                mirror.settle()


def mirror_options(opt: mujoco.MjOption, options: Tree) -> None:
    """Write echoed options into an mjOption; what has no place there is left out. Named fields win over masks."""
    for name in _MASKS:
        if name in options:
            setattr(opt, name, int(options[name]))
    for name, value in options.items():
        if name in _ENUMS:
            words, stem = _ENUMS[name]
            setattr(opt, name, int(getattr(words, f"{stem}{str(value).upper()}")))
        elif isinstance(value, list | tuple):
            getattr(opt, name)[:] = value
        elif name not in _MASKS and hasattr(opt, name):
            setattr(opt, name, type(getattr(opt, name))(value))
    if "enable_multiccd" in options:
        opt.disableflags = _with_bit(opt.disableflags, _MULTICCD_OFF, not options["enable_multiccd"])
    if "enable_sleep" in options:
        opt.enableflags = _with_bit(opt.enableflags, _SLEEP_ON, bool(options["enable_sleep"]))


def _with_bit(mask: int, bit: int, on: bool) -> int:
    return mask | bit if on else mask & ~bit
