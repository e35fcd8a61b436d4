"""MuJoCo's own threads inside a step, and what happens when one of them fails.

MuJoCo ends the whole process when an error comes up on a thread of its pool: only on the thread that called it can
the error become an exception. So MuJoCo is given a function for such errors that keeps the reason and never returns:
the thread of the pool sleeps for good, and touches nothing any more. The call that waits for it would wait for ever as
well. Hence a scene with worker threads is stepped on a thread of its own (`PooledCalls`), which is given up together
with the pool; its MjData can be used again, without threads.
"""

import ctypes
import logging
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco

from urlab.errors import PhysicsError
from urlab.mujoco_versions import set_worker_threads

log = logging.getLogger("urlab.physics")

_MOST_LOST_POOLS = 4
"""A pool that failed leaves threads behind. After so many, the process runs without."""

_SETTLE_S = 0.25
"""The other threads of a failed pool are done with their part by then; each was in the middle of one step."""

_THREADS = Path("/proc/self/task")

Call = Callable[[Any, Any], None]


class PooledCalls:
    """mj_step and mj_forward for one MjData with worker threads. The owner of the physics lock calls it."""

    def __init__(self, model: Any, data: Any, threads: int) -> None:
        """BadValue where this MuJoCo has no pool."""
        self._model, self._data = model, data
        self._work: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._ends: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        with _starting:
            _keep_errors_of_pools()
            before = _thread_ids()
            set_worker_threads(data, threads)
            for one in _thread_ids() - before:
                _pools[one] = self
        threading.Thread(target=self._run, name="urlab-pooled-step", daemon=True).start()

    def call(self, function: Call) -> None:
        """Run ``function(model, data)``; PhysicsError, and there is no pool any more, when MuJoCo fails."""
        self._work.put(function)
        try:
            failure = self._ends.get()
        except BaseException:  # Ctrl-C, on the main thread: the call ends before anything else uses the data
            self._ends.get()
            raise
        if isinstance(failure, mujoco.FatalError | _PoolFailed):
            raise self._give_up(failure)
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the threads."""
        self._work.put(None)
        set_worker_threads(self._data, 0)
        self._forget()

    def fail(self, message: str) -> None:
        """A thread of the pool has failed. Called on that thread."""
        self._ends.put(_PoolFailed(message))

    def _run(self) -> None:
        while (function := self._work.get()) is not None:
            try:
                function(self._model, self._data)
            except BaseException as failed:  # noqa: BLE001 - it belongs to the thread that asked
                self._ends.put(failed)
            else:
                self._ends.put(None)

    def _give_up(self, failure: BaseException) -> PhysicsError:
        """Leave the pool as it is, with the thread that may be waiting for it for ever, and take the data back."""
        time.sleep(_SETTLE_S)
        self._work.put(None)
        self._data.threadpool = 0
        self._forget()
        reason = in_one_line(failure)
        _lost.append(reason)
        return PhysicsError(
            f"MuJoCo failed inside a step with worker threads: {reason}. They need more memory than one thread does "
            f'(<size memory="..."/> in the model). They are off now: reset goes on without them'
        )

    def _forget(self) -> None:
        for one in [one for one, pool in _pools.items() if pool is self]:
            del _pools[one]


class _PoolFailed(Exception):
    """An error came up on a thread of the pool."""


_starting = threading.Lock()
_pools: dict[int, PooledCalls] = {}
_lost: list[str] = []
_handlers: list[Any] = []
"""What MuJoCo calls must not be collected."""


def too_many_lost() -> str:
    """Why this process is to have no pool any more; empty while it may."""
    if len(_lost) < _MOST_LOST_POOLS:
        return ""
    return f"{len(_lost)} of them failed since this server was started (the last: {_lost[-1]}); restart it to try again"


def in_one_line(failure: BaseException) -> str:
    """What MuJoCo said, without its line breaks."""
    return " ".join(str(failure).split())


def _keep_errors_of_pools() -> None:
    """Have `_park` called for errors on threads that are not Python's. Those of Python's stay exceptions."""
    if _handlers:
        return
    handler = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_park)
    _handlers.append(handler)
    library = ctypes.CDLL(next(str(one) for one in Path(mujoco.__file__).parent.glob("libmujoco*")))
    ctypes.c_void_p.in_dll(library, "mju_user_error").value = ctypes.cast(handler, ctypes.c_void_p).value


def _park(message: bytes) -> None:
    text = message.decode(errors="replace")
    log.critical("MuJoCo failed on a thread of its own: %s", " ".join(text.split()))
    pool = _pools.get(threading.get_native_id())
    if pool is not None:
        pool.fail(text)
    while True:  # to return would be to go on with the step
        time.sleep(3600)


def _thread_ids() -> set[int]:
    return {int(one.name) for one in _THREADS.iterdir()} if _THREADS.is_dir() else set()
