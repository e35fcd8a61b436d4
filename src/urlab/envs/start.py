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

Randomize = bool | Mapping[str, Mapping[str, Any]] | None
"""Entries to draw at the begin of each episode; True for the level's own; nothing is drawn without."""

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

    def saved(self, options: Mapping[str, Any]) -> bytes:
        """Reset the client by these options, to the compiled model; the state as `save_state` gives it."""
        self._reset(options, None, None)
        return self._client.runtime.save_state()

    def _reset(self, options: Mapping[str, Any], world_seed: int | None, randomize: Randomize) -> Any:
        reply = self._client.reset(
            options.get("keyframe_name"),
            world_seed,
            options.get("per_articulation_qpos"),
            randomize=False if world_seed is None else randomize,
        )
        return (reply.get("randomized") or {}).get("changes", [])

    def begin(
        self,
        source: ClientStates,
        task: EnvTask,
        rng: np.random.Generator,
        randomize: Randomize,
        options: Mapping[str, Any],
    ) -> tuple[Tree, Any]:
        """Reset, let the task place its one row, and put the simulation there.

        The reply of the last of these, and what ``randomize`` drew.
        """
        drawn = self._reset(options, world_seed(rng) if randomize else None, randomize)
        blob = self._client.runtime.save_state()
        row = state_row(blob)
        states = self.states_of(row[None], source.states.sensordata)
        task.place(states, [0], [rng])
        source.keep_mocap(states)
        return self._client.runtime.restore_state(with_row(blob, row)), drawn

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


def world_seed(rng: np.random.Generator) -> int:
    """The seed that the world of an episode is drawn with: the first number of the environment's generator."""
    return int(rng.integers(1 << 62))


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
