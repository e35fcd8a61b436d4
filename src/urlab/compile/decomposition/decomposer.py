"""Cuts meshes into convex hulls, in the background, each mesh once."""

import importlib.util
import logging
import threading
from pathlib import Path

from urlab.compile.decomposition.child_run import ChildFailed, ChildRun
from urlab.compile.decomposition.hull import Hull, unpacked
from urlab.compile.decomposition.hull_cache import HullCache, hull_key
from urlab.compile.decomposition.job import Job, Progress
from urlab.errors import ImportFailed, OpTimeout, ShuttingDown, UrlabError

_log = logging.getLogger("urlab.compile")

_AT_ONCE = 2
_TIME_LIMIT_S = 600.0
_CHILD = "urlab.compile.decomposition.child"
_INSTALL = "pip install 'urlab-headless[mesh]'"


class Decomposer:
    """Any thread may call it. Each mesh is cut in a child process, which ends with this one or after the limit.

    ``cache_dir`` keeps the hulls by content: what is there needs neither a child nor CoACD.
    """

    def __init__(self, cache_dir: Path, time_limit_s: float = _TIME_LIMIT_S) -> None:
        self._cache = HullCache(cache_dir)
        self._time_limit_s = time_limit_s
        self._jobs: dict[str, Job] = {}
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

        A failure is told, as ImportFailed, to whoever asks next; after that, asking tries again.
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

    def progress(self, mesh: Path, threshold: float) -> Progress:
        """How far it is; ``waiting`` as well when nobody has asked for it yet."""
        key = hull_key(_content(mesh), mesh.suffix.lower(), threshold)
        with self._lock:
            job = self._jobs.get(key)
        if job is not None:
            return job.progress()
        hulls = self._cache.load(key)
        if hulls is not None:
            return Progress("ready", 0.0, f"{mesh.name}: {len(hulls)} hulls")
        return Progress("waiting", 0.0, f"nobody has asked for the hulls of {mesh.name} yet")

    def cancel(self) -> None:
        """End the children that run now; whoever waits for one is told that it failed, and may ask again later."""
        with self._lock:
            runs = [job.run for job in self._jobs.values() if job.run is not None and not job.done.is_set()]
        for run in runs:
            run.kill()

    def close(self) -> None:
        """End all children; whoever waits gets ShuttingDown."""
        with self._lock:
            self._closed = True
            runs = [job.run for job in self._jobs.values() if job.run is not None]
            threads, self._threads = self._threads, []
        for run in runs:
            run.kill()
        for thread in threads:
            thread.join()

    def _job(self, mesh: Path, threshold: float, *, again: bool) -> Job:
        content, suffix = _content(mesh), mesh.suffix.lower()
        key = hull_key(content, suffix, threshold)
        with self._lock:
            job = self._jobs.get(key)
            if job is None or (again and job.failure is not None):
                job = Job(key, mesh.name, suffix, threshold, content)
                self._begin(job)
                self._jobs[key] = job
            return job

    def _begin(self, job: Job) -> None:
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

    def _work(self, job: Job) -> None:
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

    def _cut(self, job: Job) -> list[Hull]:
        try:
            run = self._launch(job)
            return unpacked(run.result(job.mesh, self._time_limit_s))
        except (ChildFailed, ValueError, OSError) as failed:
            if self._closed:
                raise ShuttingDown(f"{job.name} was not cut up: the server is stopping") from failed
            raise ImportFailed(f"{job.name} cannot be cut into convex pieces: {failed}") from failed

    def _launch(self, job: Job) -> ChildRun:
        with self._lock:  # so that close() sees every child, or none is made any more
            if self._closed:
                raise ChildFailed("the server is stopping")
            run = job.run = ChildRun(_CHILD, job.suffix, repr(job.threshold))
        _log.info("cutting up %s at threshold %g, in process %d", job.name, job.threshold, run.pid)
        return run


def _content(mesh: Path) -> bytes:
    try:
        return mesh.read_bytes()
    except OSError as refused:
        raise ImportFailed(f"{mesh} cannot be read: {refused.strerror or refused}") from refused
