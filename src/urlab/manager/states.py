"""States that are saved and restored: everything that the future of a simulation depends on.

A state is bytes: a header, MuJoCo's integration state (warm start included), the staged setpoints of every robot, which
trees of bodies sleep, and what each controller remembers. It fits the model that it was taken from, in this or another
process; restored in direct mode it goes on bit for bit. Time goes back with it; twists, step mode, control source,
pause, perturbations and the step counter are settings and stay as they are.
"""

import struct
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue, known
from urlab.manager.articulation import RunningArticulation
from urlab.physics import Engine
from urlab.physics.engine import FULL_STATE
from urlab.physics.sleeping import is_sleep, may_sleep, set_sleep, wake_all
from urlab_wire.enums import ControlSource
from urlab_wire.ops.runtime import StateBlock

MAX_STATES = 10_000
MAX_STATE_BYTES = 1 << 30
"""What one play keeps under names, in all."""

_MAGIC = b"URLABST2"
_HEADER = struct.Struct("<8s16sdII")
"""Magic, signature of the model, simulated time, the numbers of the state and of the setpoints."""

_LENGTH = struct.Struct("<I")


class StateCodec:
    """Takes and restores the state of one running scene. The owner of the physics lock calls it."""

    def __init__(self, engine: Engine, robots: Iterable[RunningArticulation]) -> None:
        self._engine = engine
        self._robots = tuple(robots)
        self._signature = _signature(engine.model)
        self._state = np.empty(mujoco.mj_stateSize(engine.model, FULL_STATE))
        self._setpoints = sum(len(ControlSource) * len(one.staged.active) for one in self._robots)
        self._sleep_at = _HEADER.size + 8 * (len(self._state) + self._setpoints)
        self._memories_at = self._sleep_at + engine.data.tree_asleep.nbytes

    def take(self) -> bytes:
        """The state as it is now."""
        engine, state = self._engine, self._state
        mujoco.mj_getState(engine.model, engine.data, state, FULL_STATE)
        head = _HEADER.pack(_MAGIC, self._signature, engine.data.time, len(state), self._setpoints)
        parts = [head, state.tobytes()]
        for robot in self._robots:
            parts += [robot.staged.staged(source).tobytes() for source in ControlSource]
        parts.append(engine.data.tree_asleep.tobytes())
        parts += [part for memory in self._memories() for part in (_LENGTH.pack(len(memory)), memory)]
        return b"".join(parts)

    def _memories(self) -> list[bytes]:
        return [b"" if one.controller is None else one.controller.memory() for one in self._robots]

    def restore(self, blob: bytes) -> None:
        """Go to a state, and evaluate it; BadValue, and nothing is changed, when it is not one of this model."""
        self._check(blob)
        memories = self._read_memories(blob)
        for robot, memory in zip(self._robots, memories, strict=True):
            if memory and robot.controller is None:
                raise BadValue(f"the state has a memory for a controller of {robot.prefix}, which has none")
        numbers = np.frombuffer(blob, np.float64, len(self._state) + self._setpoints, _HEADER.size)
        if not np.isfinite(numbers).all():
            raise BadValue("the state holds numbers that are not finite")
        state, setpoints = numbers[: len(self._state)], numbers[len(self._state) :]
        model, data = self._engine.model, self._engine.data
        asleep = np.frombuffer(blob, np.int32, model.ntree, self._sleep_at)
        if not is_sleep(model, asleep):
            raise BadValue("the state is damaged: it says of trees of bodies that they sleep with others that do not")
        for robot, memory in zip(self._robots, memories, strict=True):
            if robot.controller is not None:
                robot.controller.remember(memory)
        if may_sleep(model):
            wake_all(model, data)
        mujoco.mj_setState(model, data, state, FULL_STATE)
        self._engine.forward()
        mujoco.mj_setState(model, data, state, FULL_STATE)  # an evaluation may have moved the warm start
        if may_sleep(model):
            set_sleep(model, data, asleep)
        self._stage(setpoints)

    def _stage(self, setpoints: NDArray[np.float64]) -> None:
        start = 0
        for robot in self._robots:
            width = len(robot.staged.active)
            for source in ControlSource:
                robot.staged.replace(source, setpoints[start : start + width])
                start += width

    def _check(self, blob: bytes) -> None:
        if len(blob) < _HEADER.size or not blob.startswith(_MAGIC):
            raise BadValue(f"these {len(blob)} bytes are no state that this version knows: take one with save_state")
        _, signature, _, n_state, n_setpoints = _HEADER.unpack_from(blob)
        if signature != self._signature or (n_state, n_setpoints) != (len(self._state), self._setpoints):
            raise BadValue("the state is of another model (or another MuJoCo) than the one that runs")

    def _read_memories(self, blob: bytes) -> Sequence[bytes]:
        memories, start = [], self._memories_at
        for _ in self._robots:
            end = start + _LENGTH.size
            if end > len(blob):
                break
            (length,) = _LENGTH.unpack_from(blob, start)
            memories.append(blob[end : end + length])
            start = end + length
        if len(memories) != len(self._robots) or start != len(blob):
            raise BadValue(f"the state is damaged: it has {len(blob)} bytes")
        return memories


def state_row(blob: bytes) -> NDArray[np.float64]:
    """MuJoCo's integration state in the bytes of a saved state; a copy."""
    count: int = _HEADER.unpack_from(blob)[3]
    return np.frombuffer(blob, np.float64, count, _HEADER.size).copy()


def with_row(blob: bytes, row: NDArray[np.float64]) -> bytes:
    """A saved state with another integration state of the same model; setpoints and memories stay."""
    end = _HEADER.size + 8 * _HEADER.unpack_from(blob)[3]
    return blob[: _HEADER.size] + np.ascontiguousarray(row, np.float64).tobytes() + blob[end:]


class StateSlots:
    """The states that one play keeps under names. The owner of the physics lock changes it; any thread may list it."""

    def __init__(self) -> None:
        self._slots: dict[str, bytes] = {}
        self._bytes = 0

    def keep(self, name: str, blob: bytes) -> None:
        """Keep a state, instead of an earlier one of that name; BadValue when there is no room for it."""
        before = self._slots.get(name)
        size = self._bytes + len(blob) - len(before or b"")
        if before is None and len(self._slots) >= MAX_STATES:
            raise BadValue(f"{len(self._slots)} states are kept, and no more fit: delete_state some")
        if size > MAX_STATE_BYTES:
            raise BadValue(f"{self._bytes} bytes of states are kept, of {MAX_STATE_BYTES} that fit: delete_state some")
        self._slots[name] = blob
        self._bytes = size

    def get(self, name: str) -> bytes:
        """The state of that name; BadValue lists those that are kept."""
        if name not in self._slots:
            raise BadValue(f"no state {name!r} is kept; there are: {known(self._slots)}")
        return self._slots[name]

    def delete(self, name: str) -> bool:
        """Forget a state; whether it was there."""
        found = self._slots.pop(name, None)
        self._bytes -= len(found or b"")
        return found is not None

    def blocks(self) -> list[StateBlock]:
        """What is kept, in the order in which it was first saved."""
        return [
            StateBlock(name=name, time=_HEADER.unpack_from(blob)[2], size=len(blob))
            for name, blob in list(self._slots.items())
        ]


def _signature(model: Any) -> bytes:
    """Tells models apart by their names and structure, not by options that may change while they run."""
    sizes = [model.nq, model.nv, model.na, model.nu, model.nbody, model.nmocap, model.neq, mujoco.mj_version()]
    digest = blake2b(repr(sizes).encode(), digest_size=16)
    for array in (model.jnt_type, model.jnt_bodyid, model.body_parentid, model.actuator_trnid, model.eq_type):
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(bytes(model.names))
    return digest.digest()
