"""What the endpoints do, without HTTP: one service per server, on its event loop."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from urlab.evaluation.encoding import BodyFormat
from urlab.evaluation.errors import BadJob
from urlab.evaluation.http.generations import Caller, ClientSigns
from urlab.evaluation.runs.job import ActiveRun, JobFactory
from urlab.evaluation.settings import LATER_CLIENTS, SECOND_CLIENTS, ClientGeneration, ServerSettings
from urlab.evaluation.workers.pool import ReplyFormat, WorkerPool, WorkerReply

log = logging.getLogger("urlab.evaluation")

DEFAULT_WORKER = "0"

Bodies = dict[str, dict[str, Any]]
"""The replies of some workers, by worker id."""


class EvaluationService:
    """The first job of the server's own begins with the service, so that a first /reset works."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._jobs = JobFactory(settings)
        self._signs = ClientSigns()
        self._stock_clients = StockClients()
        self._switching = asyncio.Lock()
        self.pool = WorkerPool(settings, self._jobs.first_run())
        log.info("run %s: %s", self.pool.run.job.run_id, self.pool.run.job.in_a_line)

    def create(self, worker_ids: Sequence[str]) -> None:
        """Clients of the first generation announce their workers."""
        self._signs.announce(worker_ids, is_complete=self.pool.run.job.is_complete)

    def visit(self, caller: Caller) -> None:
        """Later clients look at /docs before they reset."""
        self._signs.visit(caller.host, is_complete=self.pool.run.job.is_complete)

    async def reset(self, worker_ids: Sequence[str] | None, wanted: ReplyFormat, caller: Caller) -> Bodies:
        """Begin episodes; without ids, with all workers that exist, or with a first one.

        What the client should know of the run goes into ``warning``, what its actions mean into
        ``actions_without_is_rel``.
        """
        ids = worker_ids if worker_ids is not None else self.pool.worker_ids or [DEFAULT_WORKER]
        async with self._switching:
            _check_run(self.pool.run, caller)
            note = await self._after_the_end(ids, caller) if self.pool.run.job.is_complete else None
        generations = {one: self._signs.generation(one, caller) for one in ids}
        replies = await self.pool.reset(generations, wanted)
        self._signs.take_part(replies)
        self._stock_clients.reset_together(list(replies))
        bodies = self._bodies(replies, wanted, is_first=True)
        for one, body in bodies.items():
            body["actions_without_is_rel"] = "relative" if self._is_rel(self.pool.generation(one)) else "absolute"
        self._log_generations(generations)
        return bodies if note is None else _with_notes(bodies, dict.fromkeys(bodies, note))

    async def _after_the_end(self, worker_ids: Sequence[str], caller: Caller) -> str:
        """The run is complete: a new client gets another one of the server's own tasks. What to say about it."""
        old = self.pool.run
        await old.write_summary()
        done = f"run {old.job.run_id} is complete"
        if caller.run_id == old.job.run_id or not self._signs.is_new_client(worker_ids, self.pool.worker_ids, caller):
            return f"{done}: nothing is left to run, and metric has its results"
        run = await asyncio.to_thread(self._jobs.next_run, old)
        if run is None:
            log.warning("%s, and a client that came after its end got its results", done)
            return (
                f"{done} and these are its results: nothing was run for this client; "
                "start another job with `urlab eval submit` or /start_new_job"
            )
        self._signs.begin_run()
        await self._start(run)
        log.warning("%s; a new client begins run %s", done, run.job.run_id)
        return f"{done} and keeps its results: this client begins a new one, run {run.job.run_id}"

    def _log_generations(self, generations: Mapping[str, ClientGeneration]) -> None:
        for one, generation in generations.items():
            meaning = "changes" if self._is_rel(generation) else "absolute"
            words = (one, generation.name, meaning, generation.hold_steps)
            log.info("worker %s: client of generation '%s'; without is_rel actions are %s; hold steps %d", *words)

    def _is_rel(self, generation: ClientGeneration) -> bool:
        return generation.is_rel if self._settings.is_rel is None else self._settings.is_rel

    async def look(self, worker_ids: Sequence[str] | None, wanted: ReplyFormat, caller: Caller) -> Bodies:
        """Where the workers stand; without ids, all of them."""
        ids = self.pool.worker_ids if worker_ids is None else worker_ids
        self._signs.show_later(ids)
        notes = self._settle_generations(ids, caller)
        return _with_notes(self._bodies(await self.pool.look(ids), wanted), notes)

    async def step(self, actions: Mapping[str, object], wanted: ReplyFormat, caller: Caller) -> Bodies:
        """One action for each of some workers."""
        chunks = {one: [raw] for one, raw in actions.items()}
        self._signs.look_at(chunks)
        notes = self._settle_generations(chunks, caller)
        return _with_notes(self._bodies(await self.pool.step(chunks, wanted), wanted), notes)

    async def give_up(self, worker_ids: Sequence[str], reason: str, wanted: ReplyFormat) -> Bodies:
        """The policy has failed: the episodes of these workers end as failed, and the next ones begin."""
        return self._bodies(await self.pool.give_up(worker_ids, reason, wanted), wanted)

    async def step_chunk(
        self, chunk: Sequence[Mapping[str, object]], wanted: ReplyFormat, caller: Caller
    ) -> dict[str, Any]:
        """A chunk, each worker up to the end of its own episode; the replies are of every worker in it.

        ``executed_steps`` is of the worker that got farthest, ``stopped_early`` says whether some actions were left.
        """
        chunks = _by_worker(chunk)
        self._signs.show_later(chunks)
        notes = self._settle_generations(chunks, caller)
        replies = await self.pool.step(chunks, wanted)
        executed = {one: reply.executed for one, reply in replies.items()}
        farthest = max(executed.values())
        left = any(reply.is_over and reply.executed < len(chunks[one]) for one, reply in replies.items())
        return {
            "obs": _with_notes(self._bodies(replies, wanted), notes),
            "executed_steps": farthest,
            "stopped_early": left or farthest < max(map(len, chunks.values())),
            "executed_by_worker": executed,
        }

    async def kill(self, worker_ids: Sequence[str]) -> None:
        """End workers and forget which client's they were."""
        self._signs.forget(worker_ids)
        self._stock_clients.forget(worker_ids)
        await self.pool.kill(worker_ids)

    async def load_config(self, config_path: object) -> None:
        """A job of one task, for the generation that came between: it announces workers as well."""
        await self.start_job({"config_path": [config_path]}, SECOND_CLIENTS)

    async def start_job(self, data: Mapping[str, object], generation: ClientGeneration = LATER_CLIENTS) -> None:
        """Another job in place of the present one, started in the way of ``generation``."""
        async with self._switching:
            run = await asyncio.to_thread(self._jobs.run, self._jobs.read(data))
            self._signs.begin_job(generation)
            await self._start(run)

    async def _start(self, run: ActiveRun) -> None:
        self._stock_clients.forget(self.pool.worker_ids)
        await self.pool.start(run)
        await run.find_finished()
        log.info("run %s: %s", run.job.run_id, run.job.in_a_line)

    def _settle_generations(self, worker_ids: Iterable[str], caller: Caller) -> dict[str, str]:
        """Requests after the reset may show more of the client; what that changes, in words, by worker."""
        notes = {}
        for one in worker_ids:
            generation = self._signs.generation(one, caller)
            before = self.pool.set_generation(one, generation)
            if before not in (None, generation):
                meaning = "changes" if self._is_rel(generation) else "absolute"
                notes[one] = (
                    f"by this request the client is one of the {generation.name} generation: from here on actions "
                    f"without is_rel are {meaning} and a subgoal must last {generation.hold_steps} steps"
                )
                log.info("worker %s: %s", one, notes[one])
        return notes

    async def status(self, *, refresh: bool) -> dict[str, Any]:
        """How far the job is."""
        run = self.pool.run
        if refresh:
            await run.find_finished()
        return run.status(self.pool.worker_ids)

    async def close(self) -> None:
        """End all workers; finished episodes keep their files."""
        await self.pool.close()

    def _bodies(self, replies: Mapping[str, WorkerReply], wanted: ReplyFormat, *, is_first: bool = False) -> Bodies:
        """Stock clients, which speak pickle, look for all their workers in every reply, whichever they moved."""
        run, body_format = self.pool.run, wanted.body_format
        shape = self.pool.metric_shape
        bodies = {one: reply.as_body(run, body_format, shape(one)) for one, reply in replies.items()}
        if body_format is not BodyFormat.PICKLE:
            return bodies
        others = self._stock_clients.others(list(replies), self.pool.worker_ids)
        bodies |= {one: reply.as_body(run, body_format, shape(one)) for one, reply in self.pool.peek(others).items()}
        return self._stock_clients.fill_idle(bodies, run.name, is_first=is_first)


def _check_run(run: ActiveRun, caller: Caller) -> None:
    """Our own client says which run it means; other clients' run ids may be those of a hosted service."""
    if caller.is_own and caller.run_id not in (None, run.job.run_id):
        raise BadJob(f"the server has the run {run.job.run_id!r} by now, not {str(caller.run_id)[:60]!r}")


def _with_notes(bodies: Bodies, notes: Mapping[str, str]) -> Bodies:
    """The replies with what is said of some workers before other warnings."""
    for one, note in notes.items():
        bodies[one]["warning"] = "; ".join(filter(None, (note, bodies[one].get("warning"))))
    return bodies


def _by_worker(chunk: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    """The actions of each worker, in order; a worker may be missing in some entries."""
    chunks: dict[str, list[object]] = {}
    for entry in chunk:
        for one, action in entry.items():
            chunks.setdefault(one, []).append(action)
    return chunks


class StockClients:
    """What GenManip's own clients need of a reply: all their workers, and an observation for each until all are done.

    Workers that were reset together belong to one client. Such a client stops as soon as its first worker has no
    observation, and leaves the episodes of the others unfinished. So a worker that has run out of episodes is shown
    what another one of its client sees, under an episode id of its own; the actions for it are ignored.
    """

    def __init__(self) -> None:
        self._together: dict[str, tuple[str, ...]] = {}
        self._shown: dict[str, str] = {}
        """Which worker's observations an idle worker is shown: a policy should not see now this robot, now that."""

    def reset_together(self, worker_ids: Sequence[str]) -> None:
        """These workers are one client's."""
        self._together |= dict.fromkeys(worker_ids, tuple(worker_ids))

    def forget(self, worker_ids: Iterable[str]) -> None:
        """These workers were killed."""
        for one in worker_ids:
            self._together.pop(one, None)

    def others(self, worker_ids: Sequence[str], existing: Sequence[str]) -> list[str]:
        """The other workers of the same client, as far as no other client has reset them since."""
        groups = {self._together[one] for one in worker_ids if one in self._together}
        others = (one for group in groups for one in group if self._together.get(one) == group)
        return [one for one in others if one in existing and one not in worker_ids]

    def fill_idle(self, bodies: Bodies, run_name: str, *, is_first: bool = False) -> Bodies:
        """The replies with observations for idle workers, unless all are idle; ``is_first`` after a reset."""
        busy = [one for one, body in bodies.items() if body["obs"] is not None]
        for one in busy or bodies:
            self._shown.pop(one, None)
        if not busy:
            return bodies
        return {
            one: body if one in busy else self._idle(one, bodies, busy, run_name, is_first)
            for one, body in bodies.items()
        }

    def _idle(self, worker: str, bodies: Bodies, busy: list[str], run_name: str, is_first: bool) -> dict[str, Any]:
        """With ``reset`` when what is shown changes, and once at the start: clients end the episode that was."""
        before = self._shown.get(worker)
        shown = self._shown[worker] = before if before in busy else busy[0]
        observation: dict[str, Any] = bodies[shown]["obs"]
        is_new = is_first or shown != before or observation["reset"]
        own = {"episode_id": f"{run_name}/waiting/{worker}", "reset": is_new}
        return {**bodies[worker], "obs": {**observation, **own}, "metric": None}
