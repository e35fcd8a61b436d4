"""How episodes begin, the same for one simulation and for many: the scene's start, then what the task draws."""

from collections.abc import Collection, Mapping
from typing import Any

import mujoco
import numpy as np

from urlab.envs.scene_states import Array, ClientStates, SceneLayout, States
from urlab.envs.task import EnvTask
from urlab.manager.states import state_row, with_row
from urlab.physics.engine import FULL_STATE
from urlab_client import URLabClient
from urlab_wire.codec import Tree

RESET_OPTIONS = ("keyframe_name", "per_articulation_qpos")
_FIELDS = {
    "time": mujoco.mjtState.mjSTATE_TIME,
    "qpos": mujoco.mjtState.mjSTATE_QPOS,
    "qvel": mujoco.mjtState.mjSTATE_QVEL,
    "mocap_pos": mujoco.mjtState.mjSTATE_MOCAP_POS,
    "mocap_quat": mujoco.mjtState.mjSTATE_MOCAP_QUAT,
}


class EpisodeStart:
    """Puts the simulation behind a client to the start of an episode."""

    def __init__(self, client: URLabClient, layout: SceneLayout) -> None:
        self._client = client
        self._model = layout.model
        self._places = _places_in_row(layout.model)

    def saved(self, seed: int | None, options: Mapping[str, Any]) -> bytes:
        """Reset the client by these options; the state as `save_state` gives it."""
        self._client.reset(
            options.get("keyframe_name"), seed, per_articulation_qpos=options.get("per_articulation_qpos")
        )
        return self._client.runtime.save_state()

    def begin(
        self,
        source: ClientStates,
        task: EnvTask,
        rng: np.random.Generator,
        seed: int | None,
        options: Mapping[str, Any],
    ) -> Tree:
        """Reset, let the task place its one row, and put the simulation there; the reply of the last of these."""
        blob = self.saved(seed, options)
        row = state_row(blob)
        states = self.states_of(row[None], source.states.sensordata)
        task.place(states, [0], [rng])
        source.states.mocap_pos[:], source.states.mocap_quat[:] = states.mocap_pos, states.mocap_quat
        return self._client.runtime.restore_state(with_row(blob, row))

    def states_of(self, rows: Array, sensordata: Array) -> States:
        """Whole integration states, (n, size), as `States` of views: what is written there is written into them."""
        count, model = len(rows), self._model
        part = {name: rows[:, where] for name, where in self._places.items()}
        return States(
            part["time"][:, 0],
            part["qpos"],
            part["qvel"],
            sensordata,
            part["mocap_pos"].reshape(count, model.nmocap, 3),
            part["mocap_quat"].reshape(count, model.nmocap, 4),
        )


def check_options(options: Mapping[str, Any] | None, known: Collection[str]) -> None:
    """ValueError for an option of reset that does not exist."""
    for name in options or ():
        if name not in known:
            raise ValueError(f"reset has no option {name!r}; there are: {', '.join(known)}")


def _places_in_row(model: Any) -> dict[str, slice]:
    """Where the parts of MuJoCo's integration state are: components follow each other by their bits."""
    places, start = {}, 0
    bits = {int(bit): name for name, bit in _FIELDS.items()}
    for position in range(int(FULL_STATE).bit_length()):
        bit = 1 << position
        if not int(FULL_STATE) & bit:
            continue
        size = mujoco.mj_stateSize(model, bit)
        if bit in bits:
            places[bits[bit]] = slice(start, start + size)
        start += size
    return places
