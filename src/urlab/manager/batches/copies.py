"""One batch: copies of a running scene with its controllers."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.control.controller import BatchLaw, RawBatchLaw
from urlab.errors import BadValue
from urlab.manager.articulation import RunningArticulation
from urlab.manager.batches.randomisation import BatchRandomisation
from urlab.manager.manager import Manager
from urlab.physics.batch import SimulationBatch
from urlab.physics.engine import FULL_STATE

Float64Array = NDArray[np.float64]

LIMIT_S = 30.0
"""How long one request may step."""

_TURN_S = 0.25


class SceneCopies:
    """``count`` simulations that begin where a running scene stands. One thread at a time steps or resets them.

    Setpoints are those of all robots, in their order, as a step request has them.
    """

    def __init__(
        self, manager: Manager, count: int, threads: int = 0, randomize: Mapping[str, Any] | None = None
    ) -> None:
        self.lock = threading.Lock()
        with manager.engine.locked():
            model, data = manager.engine.model, manager.engine.data
            self.simulations = SimulationBatch(model, count, threads)
            self._start = np.empty(mujoco.mj_stateSize(model, FULL_STATE))
            mujoco.mj_getState(model, data, self._start, FULL_STATE)
            robots = list(manager.articulations.values())
            self._laws = [_law(one, self.simulations) for one in robots]
            staged = np.concatenate([np.zeros(0), *(one.staged.active for one in robots)])
            self._randomisation = (
                None
                if randomize is None
                else BatchRandomisation(self.simulations, model, [one.prefix for one in robots], randomize, self._laws)
            )
        self.count, self.setpoints = count, len(staged)
        self._follow_state = any(law.follows_state for law in self._laws)
        self._start_setpoints, self._staged = staged, np.tile(staged, (count, 1))
        self.reset()

    def step(self, n_steps: int, setpoints: Float64Array | None) -> None:
        """Run mj_steps in all of them."""
        if n_steps < 1:
            raise BadValue(f"n_steps is at least 1, not {n_steps}")
        if setpoints is not None:
            if setpoints.size != self._staged.size:
                rows = f"{self.count} rows of {self.setpoints} setpoints"
                raise BadValue(f"ctrl has {setpoints.size} numbers, expected {rows}")
            if not np.isfinite(setpoints).all():
                raise BadValue("ctrl has numbers that are not finite")
            self._staged[:] = setpoints.reshape(self._staged.shape)
        control, begin, done, together = self._apply if self._follow_state else None, time.monotonic(), 0, 1
        while done < n_steps:
            run = min(together, n_steps - done)
            self._stage()
            self.simulations.advance(run, control)
            done += run
            spent_s = time.monotonic() - begin
            if spent_s > LIMIT_S and done < n_steps:
                raise BadValue(f"{done} of {n_steps} steps took {spent_s:.0f} s: ask for fewer at once")
            together = max(1, int(done * _TURN_S / max(spent_s, 1e-6)))

    def reset(self, ids: Sequence[int] | None = None, seeds: Sequence[int] | None = None) -> None:
        """Put some of them back to the start, setpoints too; draw a world for each where there are seeds."""
        rows = list(range(self.count)) if ids is None else list(ids)
        if not rows or min(rows) < 0 or max(rows) >= self.count or len(set(rows)) != len(rows):
            raise BadValue(f"ids are different numbers from 0 to {self.count - 1}, not {rows[:10]}")
        if seeds is not None and (self._randomisation is None or len(seeds) != len(rows)):
            needed = "a batch that was opened with randomize" if self._randomisation is None else f"{len(rows)} of them"
            raise BadValue(f"seeds need {needed}")
        randomisation = self._randomisation
        worlds = None if randomisation is None or seeds is None else [randomisation.draw(self._start, s) for s in seeds]
        self.simulations.rows[rows] = self._start
        self._staged[rows] = self._start_setpoints
        if randomisation is not None:
            for place, row in enumerate(rows):
                if worlds is None:
                    randomisation.end(row)
                else:
                    randomisation.begin(self.simulations.rows[row], row, worlds[place])
            randomisation.settle()
        self.simulations.evaluate(np.array(rows, dtype=np.intp))

    def _stage(self) -> None:
        begin = 0
        for law in self._laws:
            end = begin + law.width
            law.stage(self._staged[:, begin:end])
            begin = end

    def _apply(self) -> None:
        for law in self._laws:
            law.apply()


def row_bytes(manager: Manager) -> int:
    """What the state and the sensors of one simulation take."""
    model = manager.engine.model
    return 8 * int(mujoco.mj_stateSize(model, FULL_STATE) + model.nsensordata)


def _law(robot: RunningArticulation, batch: SimulationBatch) -> BatchLaw:
    if robot.controller is None or robot.bypass_controller:
        return RawBatchLaw([control.id for control in robot.compiled.controls], batch)
    return robot.controller.for_batch(batch)
