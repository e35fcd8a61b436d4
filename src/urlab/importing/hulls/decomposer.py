"""Cuts meshes into convex hulls, in the background, each mesh once."""

import importlib.util
import logging
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from urlab.compile.hulls import Hull, HullProgress
from urlab.errors import ChildFailed, ImportFailed, OpTimeout, ShuttingDown, UrlabError
from urlab.importing.hulls.hull_cache import HullCache, hull_key, unpacked
from urlab.importing.limited_process import LimitedProcess, ProcessLimits, python_module

_log = logging.getLogger("urlab.importing")

_AT_ONCE = 2
_TIME_LIMIT_S = 600.0
_MOST_WRITTEN_BYTES = 512 << 20
_THREADS = min(4, os.cpu_count() or 1)
_NICENESS = 10
"""Physics goes first."""
_CHILD = "urlab.importing.hulls.child"
_INSTALL = "pip install 'urlab-headless[mesh]'"


@dataclass(eq=False)
class _Job:
    """``mesh`` is the content of the file called ``name``.

    One worker thread moves it on; other threads wait for ``done`` and then read ``hulls`` or ``failure``.
    """

    key: str
    name: str
    suffix: str
    threshold: float
    mesh: bytes
    done: threading.Event = field(default_factory=threading.Event)
    run: LimitedProcess | None = None
    hulls: list[Hull] = field(default_factory=list)
    failure: UrlabError | None = None
    _started_s: float | None = None
    _elapsed_s: float = 0.0

    def begin(self) -> None:
        """The clock runs from here."""
        self._started_s = time.monotonic()

    def finish(self, hulls: list[Hull], failure: UrlabError | None = None) -> None:
        """The last change of all; the mesh is let go."""
        self._elapsed_s, self._started_s = self.elapsed_s, None
        self.hulls, self.failure, self.run, self.mesh = hulls, failure, None, b""
        self.done.set()

    @property
    def elapsed_s(self) -> float:
        """Since it began to run."""
        started_s = self._started_s
        return self._elapsed_s if started_s is None else time.monotonic() - started_s

    def progress(self) -> HullProgress:
        """How far it is."""
        if not self.done.is_set():
            running = self._started_s is not None
            words = f"cutting up {self.name}" if running else f"{self.name} waits for others to be cut up"
            return HullProgress("running" if running else "waiting", self.elapsed_s, words)
        if self.failure is not None:
            return HullProgress("failed", self.elapsed_s, self.failure.message)
        return HullProgress("ready", self.elapsed_s, f"{self.name}: {len(self.hulls)} hulls")


class Decomposer:
    """Any thread may call it. Each mesh is cut in a child process, which ends with this one or after the limit.

    ``cache_dir`` keeps the hulls by content: what is there needs neither a child nor CoACD.
    """

    def __init__(self, cache_dir: Path, time_limit_s: float = _TIME_LIMIT_S) -> None:
        self._cache = HullCache(cache_dir)
        self._limits = ProcessLimits(
            timeout_s=time_limit_s, written_bytes=_MOST_WRITTEN_BYTES, threads=_THREADS, niceness=_NICENESS
        )
        self._jobs: dict[str, _Job] = {}
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(_AT_ONCE)
        self._closed = False

    def start(self, mesh: Path, threshold: float) -> None:
        """Begin to cut an STL or OBJ file, unless that is done or under way; after a failure, try again.

        ImportFailed when the file cannot be read, or CoACD is not installed and the cache has no hulls of it.
        """
        self._job(mesh, threshold, again=True)

    def hulls(self, mesh: Path, threshold: float, timeout_s: float | None = None) -> list[Hull]:
        """The hulls, begun if need be and waited for; OpTimeout when they are not there in time.

        A failure is raised, as ImportFailed, in the next call; the call after that tries again.
        """
        job = self._job(mesh, threshold, again=False)
        if not job.done.wait(timeout_s):
            raise OpTimeout(f"{mesh.name} is still being cut up after {job.elapsed_s:.0f} s; ask again later")
        if job.failure is None:
            return job.hulls
        with self._lock:
            if self._jobs.get(job.key) is job:
                del self._jobs[job.key]
        raise type(job.failure)(job.failure.message) from job.failure

    def progress(self, mesh: Path, threshold: float) -> HullProgress:
        """How far it is; ``waiting`` as well when it has not been asked for yet."""
        key = hull_key(_content(mesh), mesh.suffix.lower(), threshold)
        with self._lock:
            job = self._jobs.get(key)
        if job is not None:
            return job.progress()
        hulls = self._cache.load(key)
        if hulls is not None:
            return HullProgress("ready", 0.0, f"{mesh.name}: {len(hulls)} hulls")
        return HullProgress("waiting", 0.0, f"the hulls of {mesh.name} have not been asked for yet")

    def cancel(self) -> None:
        """End the children that run now; a caller that waits for one gets ImportFailed, and may ask again later."""
        with self._lock:
            runs = [job.run for job in self._jobs.values() if job.run is not None and not job.done.is_set()]
        for run in runs:
            run.kill()

    def close(self) -> None:
        """End all children; a caller that waits gets ShuttingDown."""
        with self._lock:
            self._closed = True
            runs = [job.run for job in self._jobs.values() if job.run is not None]
            threads, self._threads = self._threads, []
        for run in runs:
            run.kill()
        for thread in threads:
            thread.join()

    def _job(self, mesh: Path, threshold: float, *, again: bool) -> _Job:
        content, suffix = _content(mesh), mesh.suffix.lower()
        key = hull_key(content, suffix, threshold)
        with self._lock:
            job = self._jobs.get(key)
            if job is None or (again and job.failure is not None):
                job = _Job(key, mesh.name, suffix, threshold, content)
                self._begin(job)
                self._jobs[key] = job
            return job

    def _begin(self, job: _Job) -> None:
        hulls = self._cache.load(job.key)
        if hulls is not None:
            job.finish(hulls)
            return
        if self._closed:
            raise ShuttingDown(f"{job.name} is not cut up any more: the server is stopping")
        if importlib.util.find_spec("coacd") is None:
            raise ImportFailed(f"cutting {job.name} into convex pieces needs CoACD, which is not installed: {_INSTALL}")
        thread = threading.Thread(target=self._work, args=(job,), name="urlab-decompose", daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def _work(self, job: _Job) -> None:
        with self._turns:
            job.begin()
            try:
                hulls = self._cut(job)
            except UrlabError as failed:
                _log.warning("%s", failed.message)
                job.finish([], failed)
                return
            self._cache.save(job.key, hulls)
            _log.info("cut %s into %d hulls in %.1f s", job.name, len(hulls), job.elapsed_s)
            job.finish(hulls)

    def _cut(self, job: _Job) -> list[Hull]:
        try:
            run = self._launch(job)
            return unpacked(run.result())
        except (ChildFailed, ValueError, OSError) as failed:
            if self._closed:
                raise ShuttingDown(f"{job.name} was not cut up: the server is stopping") from failed
            raise ImportFailed(f"{job.name} cannot be cut into convex pieces: {failed}") from failed

    def _launch(self, job: _Job) -> LimitedProcess:
        with self._lock:  # so that close() sees every child, or none is made any more
            if self._closed:
                raise ChildFailed("the server is stopping")
            command = python_module(_CHILD, job.suffix, repr(job.threshold))
            run = job.run = LimitedProcess(command, job.mesh, self._limits)
        _log.info("cutting up %s at threshold %g, in process %d", job.name, job.threshold, run.pid)
        return run


def _content(mesh: Path) -> bytes:
    try:
        return mesh.read_bytes()
    except OSError as refused:
        raise ImportFailed(f"{mesh} cannot be read: {refused.strerror or refused}") from refused
