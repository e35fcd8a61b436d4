"""What the endpoints do, without HTTP: one desk per server, on its event loop."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from urlab.evaluation.http.generations import Generations
from urlab.evaluation.http.waiting import WaitingRoom
from urlab.evaluation.http.wire import Wire
from urlab.evaluation.job_request import JobDesk
from urlab.evaluation.run import Run
from urlab.evaluation.settings import ServerSettings
from urlab.evaluation.worker_pool import Replies, WorkerPool
from urlab.evaluation.worker_slot import Wanted

log = logging.getLogger("urlab.evaluation")

DEFAULT_WORKER = "0"


class Desk:
    """The default job begins with the desk, so that a first /reset works."""

    def __init__(self, settings: ServerSettings) -> None:
        self._jobs = JobDesk(settings)
        self._generations = Generations()
        self._waiting_room = WaitingRoom()
        self._switching = asyncio.Lock()
        self.pool = WorkerPool(settings, self._jobs.default_run())
        log.info("run %s: %s", self.pool.run.job.run_id, self.pool.run.job.in_a_line)

    def create(self, worker_ids: Sequence[str]) -> None:
        """Clients of spec 004's generation announce their workers."""
        self._generations.created(worker_ids)

    async def reset(self, worker_ids: Sequence[str] | None, wanted: Wanted) -> Replies:
        """Begin episodes; without ids, with all workers that exist, or with a first one."""
        ids = worker_ids if worker_ids is not None else self.pool.worker_ids or [DEFAULT_WORKER]
        async with self._switching:
            run = self.pool.run
        if run.job.is_complete:
            await run.write_summary()
        hold_steps = {one: self._generations.of(one).value for one in ids}
        await self.pool.reset(ids, wanted, hold_steps)
        return await self._replies(ids, wanted, is_first=True)

    async def look(self, worker_ids: Sequence[str] | None, wanted: Wanted) -> Replies:
        """Where the workers are; without ids, all of them."""
        return await self._replies(self.pool.worker_ids if worker_ids is None else worker_ids, wanted)

    async def step(self, actions: Mapping[str, object], wanted: Wanted) -> Replies:
        """One step."""
        await self.pool.step(actions, wanted)
        return await self._replies(list(actions), wanted)

    async def step_chunk(self, chunk: Sequence[Mapping[str, object]], wanted: Wanted) -> dict[str, Any]:
        """A chunk, each worker up to the end of its own episode; the replies are of every worker in it.

        ``executed_steps`` is of the worker that got farthest, ``stopped_early`` says whether some actions were left.
        """
        chunks = by_worker(chunk)
        moved = await self.pool.step_chunk(chunks, wanted)
        executed = {one: move.executed for one, move in moved.items()}
        farthest = max(executed.values())
        left = any(move.is_over and move.executed < len(chunks[one]) for one, move in moved.items())
        return {
            "obs": await self._replies(list(chunks), wanted),
            "executed_steps": farthest,
            "stopped_early": left or farthest < max(map(len, chunks.values())),
            "executed_by_worker": executed,
        }

    async def kill(self, worker_ids: Sequence[str]) -> None:
        """End workers and forget whose they were."""
        self._generations.forget(worker_ids)
        await self.pool.kill(worker_ids)

    async def load_config(self, config_path: object) -> None:
        """A job of one task, for the generation that came between: it announces workers as well."""
        await self.start_job({"config_path": [config_path]})
        self._generations.config_loaded()

    async def start_job(self, data: Mapping[str, object]) -> None:
        """Another job in place of the present one."""
        async with self._switching:
            run = await asyncio.to_thread(self._jobs.run, self._jobs.read(data))
            self._generations.forget_all()
            await self.pool.start(run)
            await self._find_finished(run)
            log.info("run %s: %s", run.job.run_id, run.job.in_a_line)

    async def status(self, *, refresh: bool) -> dict[str, Any]:
        """How far the job is."""
        run = self.pool.run
        if refresh:
            await self._find_finished(run)
        return run.status(self.pool.worker_ids)

    async def close(self) -> None:
        """End all workers; finished episodes keep their files."""
        await self.pool.close()

    async def _find_finished(self, run: Run) -> None:
        """Workers write until they end: a run that goes on under its name has only now all that is there."""
        run.job.add_finished(await asyncio.to_thread(run.folder.read_finished, run.job.units))

    async def _replies(self, ids: Sequence[str], wanted: Wanted, *, is_first: bool = False) -> Replies:
        """Stock clients look for all their workers in every reply, whomever they moved."""
        replies = await self.pool.look(ids, wanted)
        if not _is_stock(wanted):
            return replies
        with_companions = replies | self.pool.glance(self.pool.companions(ids), wanted)
        return self._waiting_room.show(with_companions, self.pool.run.name, is_first=is_first)


def _is_stock(wanted: Wanted) -> bool:
    """Stock clients speak pickle."""
    return wanted.wire is Wire.PICKLE


def by_worker(chunk: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    """The actions of each worker, in order; a worker may be missing in some entries."""
    chunks: dict[str, list[object]] = {}
    for entry in chunk:
        for one, action in entry.items():
            chunks.setdefault(one, []).append(action)
    return chunks
