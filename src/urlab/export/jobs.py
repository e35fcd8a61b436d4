"""Exports that run: one after the other, on a thread of their own, with progress that any thread can read."""

import itertools
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from pathlib import Path

from urlab.errors import BadValue, RateLimited, UrlabError, known, shortage
from urlab.export.formats import Advance
from urlab_wire.enums import ExportState

log = logging.getLogger("urlab.export")

MAX_UNFINISHED = 16
MAX_OF_CALLER = 8
"""Unfinished ones of one caller: others are not kept out by it."""

_KEPT = 64
"""Exports that are remembered, those that have ended included."""

_CLOSE_LIMIT_S = 5.0
_UNFINISHED = (ExportState.WAITING, ExportState.RUNNING)


class ExportCancelled(Exception):
    """The export is to end; nothing was written."""


@dataclass(eq=False)
class ExportJob:
    """One export: of ``recording``, to ``path``, for ``caller``. ``done`` of ``total`` samples are written.

    Any thread may read it.
    """

    id: str
    format: str
    recording: str
    path: Path
    total: int
    caller: str = ""
    state: ExportState = ExportState.WAITING
    done: int = 0
    failure: UrlabError | None = None
    """Why it failed, if it did."""

    _cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def is_unfinished(self) -> bool:
        """Whether it waits or runs."""
        return self.state in _UNFINISHED

    def cancel(self) -> bool:
        """End it soon; whether it had not ended."""
        self._cancelled.set()
        return self.is_unfinished

    def advance(self) -> None:
        """One more sample is written; ExportCancelled when the export is to end."""
        self.done += 1
        self.check()

    def check(self) -> None:
        """ExportCancelled when the export is to end."""
        if self._cancelled.is_set():
            raise ExportCancelled


class ExportJobs:
    """The exports of one server. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._jobs: dict[str, ExportJob] = {}
        self._running: dict[str, Future[None]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="urlab-export")

    def begin(
        self,
        format_name: str,
        recording: str,
        path: Path,
        total: int,
        write: Callable[[Advance], None],
        caller: str = "",
    ) -> ExportJob:
        """Have ``write`` called when it is its turn; RateLimited when too many wait, of all or of this caller."""
        with self._lock:
            waiting = [one for one in self._jobs.values() if one.is_unfinished]
            if len(waiting) >= MAX_UNFINISHED:
                raise RateLimited(f"{len(waiting)} exports have not ended yet: wait for one, or export_cancel it")
            own = sum(one.caller == caller for one in waiting)
            if own >= MAX_OF_CALLER:
                raise RateLimited(f"{own} exports of yours have not ended yet: wait for one, or export_cancel it")
            job = ExportJob(f"export-{next(self._numbers)}", format_name, recording, path, total, caller)
            self._jobs[job.id] = job
            self._forget_old()
            self._running[job.id] = self._thread.submit(self._run, job, write)
        return job

    def all(self) -> list[ExportJob]:
        """Those that are remembered, in the order of their beginning."""
        with self._lock:
            return list(self._jobs.values())

    def find(self, job_id: str) -> ExportJob:
        """The export of that id; BadValue lists those that are remembered."""
        with self._lock:
            if job_id not in self._jobs:
                raise BadValue(f"there is no export {job_id!r}; there are: {known(self._jobs)}")
            return self._jobs[job_id]

    def wait(self, job: ExportJob, timeout_s: float) -> bool:
        """Wait for its end; whether it has come."""
        with self._lock:
            running = self._running.get(job.id)
        return running is None or bool(wait_for([running], timeout_s).done)

    def close(self) -> None:
        """Cancel them all, and wait for their end."""
        for job in self.all():
            job.cancel()
        self._thread.shutdown(wait=False)
        wait_for(list(self._running.values()), _CLOSE_LIMIT_S)

    def _forget_old(self) -> None:
        ended = [one.id for one in self._jobs.values() if not one.is_unfinished]
        for job_id in ended[: max(0, len(self._jobs) - _KEPT)]:
            del self._jobs[job_id]
            self._running.pop(job_id, None)

    def _run(self, job: ExportJob, write: Callable[[Advance], None]) -> None:
        try:
            job.check()
            job.state = ExportState.RUNNING
            write(job.advance)
        except ExportCancelled:
            job.state = ExportState.CANCELLED
            log.info("%s of %s is cancelled", job.id, job.recording)
        except UrlabError as failed:
            self._fail(job, failed)
        except Exception as crashed:
            words = shortage(crashed)
            if not words:
                log.exception("%s of %s failed", job.id, job.recording)
            self._fail(job, UrlabError(f"it {words}" if words else f"{type(crashed).__name__}: {crashed}"))
        else:
            job.state = ExportState.DONE
            log.info("%s: %s is written", job.id, job.path)

    def _fail(self, job: ExportJob, failed: UrlabError) -> None:
        job.failure, job.state = failed, ExportState.FAILED
        log.warning("%s of %s failed: %s", job.id, job.recording, failed.message)
