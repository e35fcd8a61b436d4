"""Many copies of the running scene, for programs of asyncio."""

from collections.abc import Sequence
from typing import Self

import numpy.typing as npt

from urlab_client.awaited.part import AsyncPart, awaited
from urlab_client.batch import Array, URLabBatch


class AsyncBatch(AsyncPart[URLabBatch]):
    """`URLabBatch`, awaited: ``async with await client.batch(8) as batch: await batch.step(setpoints)``.

    The arrays are those of the last reply, and are read at once.
    """

    async def step(self, ctrl: npt.ArrayLike | None = None, n_steps: int = 1) -> Self:
        """See `URLabBatch.step`; awaited."""
        await self._worker.run(self._wrapped.step, ctrl, n_steps)
        return self

    async def reset(self, ids: Sequence[int] | None = None, *, seeds: Sequence[int] | None = None) -> Self:
        """See `URLabBatch.reset`; awaited."""
        await self._worker.run(self._wrapped.reset, ids, seeds=seeds)
        return self

    close = awaited(URLabBatch.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def num(self) -> int:
        """How many simulations there are."""
        return self._wrapped.num

    @property
    def n_setpoints(self) -> int:
        """The setpoints of a row."""
        return self._wrapped.n_setpoints

    @property
    def timestep(self) -> float:
        """Seconds of an mj_step."""
        return self._wrapped.timestep

    @property
    def time(self) -> Array:
        """Simulated seconds, (num,)."""
        return self._wrapped.time

    @property
    def qpos(self) -> Array:
        """Positions, (num, nq)."""
        return self._wrapped.qpos

    @property
    def qvel(self) -> Array:
        """Velocities, (num, nv)."""
        return self._wrapped.qvel

    @property
    def sensordata(self) -> Array:
        """Sensors, (num, nsensordata)."""
        return self._wrapped.sensordata
