"""One coherent frame of the simulation, for the threads that do not step it."""

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_PARTS = (
    ("time", mujoco.mjtState.mjSTATE_TIME),
    ("qpos", mujoco.mjtState.mjSTATE_QPOS),
    ("qvel", mujoco.mjtState.mjSTATE_QVEL),
    ("act", mujoco.mjtState.mjSTATE_ACT),
    ("ctrl", mujoco.mjtState.mjSTATE_CTRL),
    ("mocap_pos", mujoco.mjtState.mjSTATE_MOCAP_POS),
    ("mocap_quat", mujoco.mjtState.mjSTATE_MOCAP_QUAT),
)
_WANTED = sum(int(bit) for _, bit in _PARTS)


class Snapshot:
    """Copies of one state; ``frame_id`` grows with every snapshot of an engine. The arrays are read-only."""

    __slots__ = ("_layout", "_state", "frame_id", "qacc", "sensordata", "xpos", "xquat")

    def __init__(self, frame_id: int, layout: dict[str, slice], state: Array, data: Any) -> None:
        self.frame_id = frame_id
        self._layout = layout
        self._state = state
        self.qacc: Array = data.qacc.copy()
        self.sensordata: Array = data.sensordata.copy()
        self.xpos: Array = data.xpos.copy()
        self.xquat: Array = data.xquat.copy()
        for array in (state, self.qacc, self.sensordata, self.xpos, self.xquat):
            array.flags.writeable = False

    @property
    def sim_time(self) -> float:
        """Simulated seconds."""
        return float(self._state[0])

    @property
    def qpos(self) -> Array:
        """Joint positions, (nq,)."""
        return self._state[self._layout["qpos"]]

    @property
    def qvel(self) -> Array:
        """Joint velocities, (nv,)."""
        return self._state[self._layout["qvel"]]

    @property
    def act(self) -> Array:
        """Activations, (na,)."""
        return self._state[self._layout["act"]]

    @property
    def ctrl(self) -> Array:
        """Controls, (nu,)."""
        return self._state[self._layout["ctrl"]]

    @property
    def mocap_pos(self) -> Array:
        """Positions of the mocap bodies, (nmocap, 3)."""
        return self._state[self._layout["mocap_pos"]].reshape(-1, 3)

    @property
    def mocap_quat(self) -> Array:
        """Orientations of the mocap bodies, w, x, y, z, (nmocap, 4)."""
        return self._state[self._layout["mocap_quat"]].reshape(-1, 4)


class ContactSnapshot:
    """Copies of the contacts of one state, in MuJoCo's order; of every array the first axis is the contact."""

    __slots__ = (
        "_address", "_dim", "_efc_force", "_friction", "_pyramidal",
        "dist", "flex", "frame_id", "geom", "normal", "pos",
    )  # fmt: skip

    def __init__(self, model: Any, data: Any, frame_id: int) -> None:
        """Copy; the caller holds the physics lock."""
        contact = data.contact
        self.frame_id = frame_id
        self.geom = contact.geom.copy()
        """Ids of both sides, -1 for a flex, (n, 2)."""
        self.flex = contact.flex.copy()
        """Ids of both sides, -1 for a geom, (n, 2)."""
        self.pos: Array = contact.pos.copy()
        self.normal: Array = contact.frame[:, :3].copy()
        self.dist: Array = contact.dist.copy()
        self._dim, self._friction = contact.dim.copy(), contact.friction.copy()
        self._address = contact.efc_address.copy()
        self._efc_force: Array = data.efc_force.copy()
        self._pyramidal = int(model.opt.cone) == int(mujoco.mjtCone.mjCONE_PYRAMIDAL)

    def __len__(self) -> int:
        return len(self.dist)

    def force(self, index: int) -> list[float]:
        """Force and torque of one contact in its frame, bit for bit what mj_contactForce said of the state."""
        dim, address = int(self._dim[index]), int(self._address[index])
        if address < 0:
            return [0.0] * 6
        if not self._pyramidal or dim == 1:
            return [*self._efc_force[address : address + dim].tolist(), *[0.0] * (6 - dim)]
        edges = self._efc_force[address : address + 2 * (dim - 1)].tolist()
        normal = 0.0
        for edge in edges:  # not sum(): it rounds differently
            normal += edge
        friction = self._friction[index].tolist()
        along = [(edges[2 * k] - edges[2 * k + 1]) * friction[k] for k in range(dim - 1)]
        return [normal, *along, *[0.0] * (6 - dim)]


class SnapshotTaker:
    """Takes snapshots of one simulation, cheaply: the state is copied in one call."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._size = mujoco.mj_stateSize(model, _WANTED)
        self._layout = _layout(model)

    def take(self, data: Any, frame_id: int) -> Snapshot:
        """Copy a state; the caller holds the physics lock."""
        state = np.empty(self._size)
        mujoco.mj_getState(self._model, data, state, _WANTED)
        return Snapshot(frame_id, self._layout, state, data)


def _layout(model: Any) -> dict[str, slice]:
    layout, start = {}, 0
    for name, bit in _PARTS:
        size = mujoco.mj_stateSize(model, int(bit))
        layout[name] = slice(start, start + size)
        start += size
    return layout
