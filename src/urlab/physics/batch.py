"""Many simulations of one compiled model in one process, stepped together by MuJoCo's own batch.

A simulation is a row: everything that its future depends on. Rows run on all cores and give the same bits as one engine
per simulation. The caller's thread owns the batch; nothing here locks.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.errors import ConfigError, PhysicsError
from urlab.mujoco_versions import has_batches

Float64Array = NDArray[np.float64]
Ids = NDArray[np.intp]


class SimulationBatch:
    """``count`` simulations of ``model``, on ``threads`` threads (0: as many as cores).

    ``time``, ``qpos``, ``qvel``, ``ctrl``, ``mocap_pos`` and ``mocap_quat`` are live arrays with a row per simulation:
    what is written there is the state at the next call. ``sensordata`` is what the last sub-step left, as after an
    mj_step.
    """

    def __init__(self, model: Any, count: int, threads: int = 0) -> None:
        if not has_batches():
            raise ConfigError("batches of simulations need MuJoCo 4 or newer: pip install --upgrade mujoco")
        from mujoco.batch import Batch, SimulationError

        if count < 1:
            raise ValueError(f"a batch has at least one simulation, not {count}")
        self.model = model
        wanted = threads or min(count, os.cpu_count() or 1)  # MuJoCo's own default is a thread per core for one too
        self.batch = Batch(model, nsim=count, nthread=wanted)
        """MuJoCo's own: ``expand`` gives a field of the model a value per simulation."""

        self._simulation_error: type[Exception] = SimulationError
        bind = self.batch.bind
        self.time, self.qpos, self.qvel, self.ctrl = bind("time"), bind("qpos"), bind("qvel"), bind("ctrl")
        self.mocap_pos, self.mocap_quat = bind("mocap_pos"), bind("mocap_quat")
        self.sensordata = bind("sensordata")

    @property
    def rows(self) -> Float64Array:
        """The whole state of each simulation, (count, size of the integration state); live."""
        return self.batch.state  # type: ignore[no-any-return]

    def advance(self, n_steps: int, control: Callable[[], None] | None = None) -> None:
        """Run ``n_steps`` mj_steps in every simulation; ``control`` is called before each of them, for all at once."""
        try:
            if control is None:
                self.batch.step(nstep=n_steps)
                return
            for _ in range(n_steps):
                control()
                self.batch.step()
        except self._simulation_error as failed:
            raise PhysicsError(f"MuJoCo cannot step these states: {failed}") from None

    def evaluate(self, ids: Ids) -> None:
        """Compute the sensors of some simulations at their states, which stay as they are to the last bit."""
        rows = self.rows[ids]
        self.batch.forward(ids)
        self.rows[ids] = rows  # an evaluation may have moved the warm start
