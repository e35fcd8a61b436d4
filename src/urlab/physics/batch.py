"""Many simulations of one compiled model in one process, stepped together by MuJoCo's own batch.

A simulation is a row: everything that its future depends on. Rows run on all cores and give the same bits as one engine
per simulation. The caller's thread owns the batch; nothing here locks.
"""

import os
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from urlab.errors import ConfigError, PhysicsError
from urlab.mujoco_versions import has_batches
from urlab.physics.engine import RESET_WARNINGS
from urlab.physics.sleeping import may_sleep

Float64Array = NDArray[np.float64]
Ids = NDArray[np.intp]

_NUMBER = 1
"""Of a warning's two numbers, the one that counts."""


def can_be_batched(model: Any) -> bool:
    """Whether there are batches of a model: not of one whose bodies may sleep, and not in every MuJoCo."""
    return has_batches() and not may_sleep(model)


class SubStepWork(Protocol):
    """What takes part in the sub-steps of a batch, for all simulations at once."""

    @property
    def is_active(self) -> bool:
        """Whether there is anything to do."""

    def before(self) -> None:
        """Before a sub-step, when the controls stand."""

    def after(self) -> None:
        """After a sub-step."""

    def observe(self, ids: Ids) -> None:
        """After an evaluation of some simulations."""


class SimulationBatch:
    """``count`` simulations of ``model``, on ``threads`` threads (0: as many as cores).

    ``time``, ``qpos``, ``qvel``, ``ctrl``, ``xfrc_applied``, ``mocap_pos`` and ``mocap_quat`` are live arrays with a
    row per simulation: what is written there is the state at the next call. ``sensordata`` is what the last sub-step
    left, as after an mj_step.
    """

    def __init__(self, model: Any, count: int, threads: int = 0) -> None:
        if not has_batches():
            raise ConfigError("batches of simulations need MuJoCo 4 or newer: pip install --upgrade mujoco")
        from mujoco.batch import Batch, SimulationError

        if may_sleep(model):
            raise ConfigError(
                "bodies may sleep in this scene, and not in a batch: switch it off with "
                "set_sim_options(enable_sleep=False), or enable_sleep in the level"
            )
        if count < 1:
            raise ValueError(f"a batch has at least one simulation, not {count}")
        self.model = model
        wanted = threads or min(count, os.cpu_count() or 1)  # MuJoCo's own default is a thread per core for one too
        self.batch = Batch(model, nsim=count, nthread=wanted)
        """MuJoCo's own: ``expand`` gives a field of the model a value per simulation."""

        self.rows: Float64Array = self.batch.state
        """The whole state of each simulation, (count, size of the integration state); live."""

        self._simulation_error: type[Exception] = SimulationError
        bind = self.batch.bind
        self.time, self.qpos, self.qvel, self.ctrl = bind("time"), bind("qpos"), bind("qvel"), bind("ctrl")
        self.mocap_pos, self.mocap_quat = bind("mocap_pos"), bind("mocap_quat")
        self.xfrc_applied, self.sensordata = bind("xfrc_applied"), bind("sensordata")
        self._resets = self.batch.warning[:, min(RESET_WARNINGS) : max(RESET_WARNINGS) + 1, _NUMBER]
        self._work: SubStepWork | None = None

    def disturb(self, work: SubStepWork, sensordata: Float64Array) -> None:
        """Let ``work`` take part in every sub-step; what sensors say is in ``sensordata`` from here on."""
        self._work, self.sensordata = work, sensordata

    def advance(self, n_steps: int, control: Callable[[], None] | None = None) -> None:
        """Run ``n_steps`` mj_steps in every simulation; ``control`` is called before each of them, for all at once.

        What ``ctrl`` holds is commanded in all of them, also after MuJoCo has reset a simulation, which clears it.
        """
        try:
            if control is None and (self._work is None or not self._work.is_active):
                self._step_together(n_steps)
            else:
                self._step_singly(n_steps, control)
        except self._simulation_error as failed:
            raise PhysicsError(f"MuJoCo cannot step these states: {failed}") from None

    def evaluate(self, ids: Ids) -> None:
        """Compute the sensors of some simulations at their states, which stay as they are to the last bit."""
        rows = self.rows[ids]
        self.batch.forward(ids)
        self.rows[ids] = rows  # an evaluation may have moved the warm start
        if self._work is not None:
            self._work.observe(ids)

    def _step_together(self, n_steps: int) -> None:
        """Several steps in one call; those simulations that MuJoCo has reset in it go there again, step by step."""
        before = self.rows.copy() if n_steps > 1 else None
        self.batch.step(nstep=n_steps)
        if before is not None and np.count_nonzero(self._resets):
            ids = np.flatnonzero(self._resets.any(axis=1))
            self.rows[ids] = before[ids]
            commanded = self.ctrl[ids]
            for _ in range(n_steps):
                self.ctrl[ids] = commanded
                self.batch.step(ids)
            self._resets[:] = 0
        if self._work is not None:
            self._work.after()

    def _step_singly(self, n_steps: int, control: Callable[[], None] | None) -> None:
        commanded, work = self.ctrl.copy(), self._work
        for _ in range(n_steps):
            self.ctrl[:] = commanded
            if control is not None:
                control()
            if work is not None:
                work.before()
            try:
                self.batch.step()
            finally:
                if work is not None:
                    work.after()
