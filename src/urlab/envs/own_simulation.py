"""One simulation of a scene that an environment launched itself: stepped here, without requests and replies."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from urlab.envs.batch_control import BatchControl
from urlab.envs.scene_states import Array, SceneLayout, States, write_setpoints
from urlab.envs.start import EpisodeStart
from urlab.envs.task import EnvTask
from urlab.manager.states import state_row, with_row
from urlab.physics.batch import SimulationBatch
from urlab_client import URLabClient

_THE_ONE = np.zeros(1, dtype=np.intp)


class OwnSimulation:
    """A batch of one, which goes as the simulation behind the client would, to the last bit, and much quicker.

    The client's own stands still meanwhile; `show` puts it into the state of this one.
    """

    def __init__(self, client: URLabClient, layout: SceneLayout) -> None:
        self._client, self._layout = client, layout
        self._batch = one = SimulationBatch(layout.model, 1)
        self._control = BatchControl(client, layout, one)
        self._before_sub_step = self._control.apply if self._control.per_sub_step else None
        self._start = EpisodeStart(client, layout)
        self._saved = self._start.saved({})
        self._start_row = state_row(self._saved)
        one.rows[0] = self._start_row
        self._setpoints: Array | None = None
        self.states = States(one.time, one.qpos, one.qvel, one.sensordata, one.mocap_pos, one.mocap_quat)
        """Live, of one row."""

    def begin(self, task: EnvTask, rng: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Go to the start of an episode: the scene's, or the one by options of ``reset``, and what the task places."""
        self._batch.rows[0] = state_row(self._start.saved(options)) if options else self._start_row
        self._setpoints = None
        task.place(self.states, [0], [rng])
        self._batch.evaluate(_THE_ONE)

    def step(self, setpoints: Array, n_steps: int) -> None:
        """Run ``n_steps`` mj_steps with these setpoints, (1, n)."""
        self._setpoints = setpoints
        self._control.stage(setpoints)
        self._batch.advance(n_steps, self._before_sub_step)

    def show(self) -> None:
        """Put the simulation behind the client into this state, with its setpoints."""
        self._client.runtime.restore_state(with_row(self._saved, self._batch.rows[0]))
        if self._setpoints is not None:
            robots = (self._client.articulations[one.prefix] for one in self._layout.robots)
            write_setpoints((one.ctrl_array for one in robots), self._setpoints[0])
