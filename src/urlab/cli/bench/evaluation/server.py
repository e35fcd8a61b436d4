"""`urlab eval serve` as a process, and clients that walk a trail through it."""

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from urlab.cli.bench.evaluation.results import MemoryResult
from urlab.cli.bench.evaluation.trail import Trail
from urlab.cli.bench.spawn import Child
from urlab.cli.complaint import CommandError
from urlab.evaluation.runs.client import EvalClient

_SERVE = (sys.executable, "-m", "urlab", "eval", "serve", "--port", "0", "--log-level", "warning", "--no-videos")
_WORKER_MODULE = "urlab.evaluation.workers.worker"
_MB = 1e6


class EvalServer(Child):
    """A running `urlab eval serve` with one task, a seed for each of some workers, and a folder for its results."""

    def __init__(self, task: str, workers: int, folder: Path, *, cameras: bool) -> None:
        self._ready = folder / "ready.json"
        amounts = ["--tasks", task, "--episodes", str(workers), "--workers", str(workers)]
        files = ["--ready-file", str(self._ready), "--results", str(folder / "results")]
        super().__init__([*_SERVE, *amounts, *files, "--cameras" if cameras else "--no-cameras"], folder)
        self.url, self.ready_s = "", 0.0

    def wait_until_ready(self) -> None:
        """Until its ready file is there; `ready_s` is how long that took from spawning."""
        said, self.ready_s = self.wait_for_file(self._ready)
        self.url = str(said["url"])

    def memory(self) -> MemoryResult:
        """Of the server and of its workers, now."""
        used = [one.memory_full_info() for one in self._workers()]
        return MemoryResult(
            server_mb=self.rss_mb,
            worker_mb=[one.rss / _MB for one in used],
            worker_own_mb=[one.uss / _MB for one in used],
        )

    def _workers(self) -> list[psutil.Process]:
        return [one for one in psutil.Process(self.pid).children() if _WORKER_MODULE in one.cmdline()]


@contextlib.contextmanager
def evaluating(task: str, workers: int, *, cameras: bool) -> Iterator[EvalServer]:
    """A server that answers; it and its results are gone afterwards."""
    with TemporaryDirectory(prefix="urlab-bench-") as folder:
        server = EvalServer(task, workers, Path(folder), cameras=cameras)
        try:
            server.wait_until_ready()
            yield server
        finally:
            server.end()


class Walk:
    """Some workers along one trail, all of them in every request. The first `reset` starts their processes."""

    def __init__(self, server: EvalServer, worker_ids: Sequence[str], trail: Trail) -> None:
        self._client = EvalClient(server.url, worker_ids)
        self._requests = [dict.fromkeys(worker_ids, raw) for raw in trail.raw]
        self._replies: dict[str, Any] = {}
        self._next = 0
        begin_s = time.perf_counter()
        self.reset()
        self.first_reset_s = time.perf_counter() - begin_s

    def reset(self) -> None:
        """Begin the workers' episodes again."""
        self._replies = self._client.reset()
        self._next = 0

    def once(self) -> None:
        """One control step of each worker."""
        self._replies = self._client.step(self._requests[self._next])
        self._next += 1
        for reply in self._replies.values():
            if reply["episode_result"] is not None or reply["obs"] is None:
                raise CommandError(f"an episode ended in step {self._next}, while it was measured: {reply}")

    def joints(self, worker_id: str) -> NDArray[np.float32]:
        """As the last reply has them."""
        joints: NDArray[np.float32] = self._replies[worker_id]["obs"]["joint_position_state"]
        return joints
