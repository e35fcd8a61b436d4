"""One MjModel and MjData, kept equal to the server's.

A reply is taken, its state written, and what follows from it evaluated: three stages, of which the last two may
wait until the data is read. What is taken is copied, because a reply belongs to the caller of ``step()``. Callers of
`Mirror` hold the client's data lock.
"""

from collections.abc import Mapping, Sequence

import mujoco

from urlab_client.handles.articulation import Index, URLabArticulation
from urlab_client.handles.entity import URLabEntity
from urlab_client.mirror.places import ArticulationSlots, Blocks, EntityRows
from urlab_wire.codec import Tree
from urlab_wire.ops.stepping import ModelWrites

_ENUMS = {
    "integrator": (mujoco.mjtIntegrator, "mjINT_"),
    "cone": (mujoco.mjtCone, "mjCONE_"),
    "solver": (mujoco.mjtSolver, "mjSOL_"),
}
_MASKS = ("disableflags", "enableflags")
_MULTICCD_OFF = int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
_SLEEP_ON = int(mujoco.mjtEnableBit.mjENBL_SLEEP)


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
