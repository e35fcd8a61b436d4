"""The engine: the one owner of a compiled model and its data.

A thread that touches ``data``, or changes ``model`` (options, parameters), holds the engine's lock:
``with engine.locked(timeout_s):``. What never changes in the model may be read by any thread; the state is read from
``engine.snapshot``, which is immutable. Per mj_step the engine calls its ``pre_step`` and ``post_step`` hooks (under
the lock, on the stepping thread); after a window of steps it publishes the state and calls its ``on_publish`` hooks
in the same way: they may read ``data`` during the call.
"""

import contextlib
import ctypes
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import mujoco
import numpy as np

from urlab.errors import OpTimeout, PhysicsError
from urlab.mujoco_versions import log_without_console, log_without_files
from urlab.physics.snapshot import ContactSnapshot, Snapshot, SnapshotTaker
from urlab.physics.worker_pool import Call, PooledCalls, in_one_line, too_many_lost

log = logging.getLogger("urlab.physics")

Hook = Callable[[], None]

_SNAPSHOT_WAIT_S = 0.05
_LONG_WINDOW_S = 0.02
"""A window of steps that is expected to take longer leaves a snapshot for those who read meanwhile."""

_TOGETHER_S = 0.002
"""How long a call of several mj_steps is to take at most."""

_SLOW_STEP_S = 0.01
"""What an mj_step is feared to cost before one has run."""

_LOCK_S = 5.0

FULL_STATE = mujoco.mjtState.mjSTATE_INTEGRATION
"""Everything that mj_step depends on: restoring it repeats the same future bit for bit."""

MUJOCO_VERSION: str = mujoco.__version__
MUJOCO_VERSION_INT: int = mujoco.mj_version()

QUICK_STEP_S = 1e-5
"""What an mj_step is taken to cost before one has run."""

_KINDS = tuple(kind for name, kind in mujoco.mjtWarning.__members__.items() if name != "mjNWARNING")

_NO_WARNINGS = bytes(4 * len(_KINDS))
RESET_WARNINGS = tuple(
    int(kind)
    for kind in (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)
)
"""The warnings with which MuJoCo resets a simulation."""


class WarningCounters:
    """Counts of MuJoCo's warnings in one MjData. The owner of the physics lock calls it."""

    def __init__(self, data: Any) -> None:
        self._counters = data.warning
        self._numbers = data.warning.number

    def take(self) -> list[str]:
        """The warnings since the last call, in words."""
        if self._numbers.tobytes() == _NO_WARNINGS:
            return []
        texts = [_words(self._counters[kind], kind) for kind in _KINDS if self._counters[kind].number]
        self._numbers[:] = 0
        return texts


class TimedLock:
    """The physics lock as a context manager that gives up after ``timeout_s``."""

    __slots__ = ("_lock", "_timeout_s")

    def __init__(self, lock: "threading.RLock", timeout_s: float) -> None:
        self._lock = lock
        self._timeout_s = timeout_s

    def __enter__(self) -> None:
        if not self._lock.acquire(True, self._timeout_s):
            raise OpTimeout(f"the simulation is busy: no turn within {self._timeout_s:g} s")

    def __exit__(self, *failure: object) -> None:
        self._lock.release()


class Engine:
    """Physics of one compiled scene."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.data = mujoco.MjData(model)
        self.pre_step: list[Hook] = []
        self.post_step: list[Hook] = []
        self.on_publish: list[Hook] = []
        self.interrupted = False
        self.seconds_per_step = QUICK_STEP_S
        self._feared_s = _SLOW_STEP_S
        self._warnings = WarningCounters(self.data)
        self._before_call = np.empty(mujoco.mj_stateSize(model, FULL_STATE))
        self._resets = self.data.warning.number[min(RESET_WARNINGS) : max(RESET_WARNINGS) + 1]
        self._rlock = threading.RLock()
        self._lock = TimedLock(self._rlock, _LOCK_S)
        self._frame_id = 0
        self.first_frame_id = 0
        """The frame id of the first state since the last `jump`: pictures of earlier ones are not to be shown."""

        self.worker_threads = 0
        """How many threads MuJoCo uses inside one step beside the caller's; `set_worker_threads` changes it."""

        self.failure = ""
        """Why the last step or evaluation failed; empty when it did not. Any thread may read it."""

        self._pooled: PooledCalls | None = None

        self.model_lock = threading.Lock()
        """Held while the model's options change, by the owner of the physics lock; and by a thread that saves it."""

        self._binary: bytes | None = None
        self.forward()
        self._taker = SnapshotTaker(model)
        self._snapshot = self._taker.take(self.data, 0)
        self._contacts = ContactSnapshot(model, self.data, 0)
        self.sim_time = 0.0

    def locked(self, timeout_s: float = _LOCK_S) -> TimedLock:
        """Hold model and data; OpTimeout when another thread does not let go in time."""
        return self._lock if timeout_s == _LOCK_S else TimedLock(self._rlock, timeout_s)

    def try_lock(self) -> bool:
        """Hold model and data until `unlock`, if no other thread does at this moment; whether that is so."""
        return self._rlock.acquire(blocking=False)

    def unlock(self) -> None:
        """End what `try_lock` began, on the same thread."""
        self._rlock.release()

    @property
    def snapshot(self) -> Snapshot:
        """The state that was published last; while a long window of steps runs, the one before it. Any thread."""
        if self._snapshot.frame_id != self._frame_id:
            self._when_free(self._keep_snapshot)
        return self._snapshot

    @property
    def contacts(self) -> ContactSnapshot:
        """The contacts of the same state as `snapshot`. Any thread."""
        if self._contacts.frame_id != self._frame_id:
            self._when_free(self._keep_contacts)
        return self._contacts

    def _when_free(self, keep: Hook) -> None:
        if self._rlock.acquire(timeout=_SNAPSHOT_WAIT_S):
            try:
                keep()
            finally:
                self._rlock.release()

    def _keep_snapshot(self) -> None:
        if self._snapshot.frame_id != self._frame_id:
            self._snapshot = self._taker.take(self.data, self._frame_id)

    def _keep_contacts(self) -> None:
        if self._contacts.frame_id != self._frame_id:
            self._contacts = ContactSnapshot(self.model, self.data, self._frame_id)

    @property
    def frame_id(self) -> int:
        """That of the state which was published last. Any thread, without the lock."""
        return self._frame_id

    # -- stepping (the caller holds the lock) -------------------------------------------------------------------

    def advance(self, n_steps: int, deadline: float) -> int:
        """Run ``n_steps`` mj_steps, or those that end before ``deadline`` (time.monotonic) and one more; how many."""
        self._keep_before(n_steps)
        begin = now = monotonic()
        done = 0
        while done < n_steps:
            self.step_once()
            done += 1
            now = monotonic()
            if self.interrupted or now > deadline:
                break
        if done:
            self.seconds_per_step = self._feared_s = (now - begin) / done or QUICK_STEP_S
        return done

    def advance_together(
        self, n_steps: int, deadline: float, count: Callable[[int], None], is_constant: Callable[[], bool]
    ) -> int:
        """As `advance`, several mj_steps in one call, while ``is_constant`` says that nothing happens between them.

        The pre-step hooks run before each of these calls, the post-step hooks not at all: ``count`` is told of how many
        steps. A call takes about 2 ms at most, so that an interrupt or the deadline ends the window as soon.
        """
        self._keep_before(n_steps)
        model, data = self.model, self.data
        begin = now = monotonic()
        done = 0
        while done < n_steps:
            together = max(1, min(n_steps - done, int(_TOGETHER_S / self._feared_s)))
            for hook in self.pre_step:
                hook()
            time_s = data.time
            mujoco.mj_getState(model, data, self._before_call, FULL_STATE)
            resets = self._resets.copy()
            self._resets[:] = 0
            try:
                mujoco.mj_step(model, data, nstep=together)
            except mujoco.FatalError as failed:
                count(max(0, min(together - 1, round((data.time - time_s) / model.opt.timestep))))
                raise self._failed(failed) from None
            done += together
            if self._resets.any():
                self._repeat_singly(together)
            else:
                self._resets[:] = resets
                count(together)
            now = monotonic()
            self.seconds_per_step = self._feared_s = (now - begin) / done or QUICK_STEP_S
            if self.interrupted or now > deadline or not is_constant():
                break
        return done

    def _repeat_singly(self, n_steps: int) -> None:
        """Steps of a call in which MuJoCo has reset the simulation: controls are zero then until a hook writes them."""
        mujoco.mj_setState(self.model, self.data, self._before_call, FULL_STATE)
        for _ in range(n_steps):
            self.step_once()

    def _keep_before(self, n_steps: int) -> None:
        """Before a window that is expected to be long: leave a snapshot for the threads that read meanwhile."""
        if n_steps * self._feared_s > _LONG_WINDOW_S:
            self._keep_snapshot()
            self._keep_contacts()

    @property
    def has_own_hooks_only(self) -> bool:
        """Whether nothing but the manager takes part in sub-steps: no recorder, no plugin, no worker threads."""
        return len(self.pre_step) == len(self.post_step) == 1 and self._pooled is None and not self.failure

    def interrupt(self) -> None:
        """Let a running window end at its next sub-step, for good; any thread may call this."""
        self.interrupted = True

    def step_once(self) -> None:
        """One mj_step with its hooks; PhysicsError when MuJoCo cannot, and then `failure` says why."""
        for hook in self.pre_step:
            hook()
        if self.failure or self._pooled is not None:
            self._call(mujoco.mj_step)
        else:
            try:
                mujoco.mj_step(self.model, self.data)
            except mujoco.FatalError as failed:
                raise self._failed(failed) from None
        for hook in self.post_step:
            hook()

    def stepped(self) -> None:
        """Tell the post-step hooks that the state has moved on by one step."""
        for hook in self.post_step:
            hook()

    def forward(self) -> None:
        """Recompute everything that follows from the state, without moving time; PhysicsError when MuJoCo cannot."""
        self._call(mujoco.mj_forward)

    def _call(self, function: Call) -> None:
        """Run a function of MuJoCo on model and data, on the thread for it where there are worker threads."""
        try:
            if self._pooled is not None:
                self._pooled.call(function)
            else:
                function(self.model, self.data)
        except (mujoco.FatalError, PhysicsError) as failed:
            raise self._failed(failed) from None
        self.failure = ""

    def _failed(self, failure: Exception) -> PhysicsError:
        """Keep the reason, and make the data usable again: an error leaves MuJoCo's stack as it stood."""
        self.data.pstack = self.data.pbase = 0
        if isinstance(failure, PhysicsError):
            self._pooled, self.worker_threads = None, 0
            self.failure = failure.message
            return failure
        self.failure = f"MuJoCo cannot step this state: {in_one_line(failure)}"
        return PhysicsError(f"{self.failure}. reset goes back to the start; begin_pie compiles the level anew")

    def publish(self) -> None:
        """Make the state as it is now the published one. It is copied when a thread asks for the snapshot."""
        self._frame_id += 1
        time_s = self.data.time
        if time_s < self.sim_time:  # MuJoCo has reset itself, or a puppet went back
            self.first_frame_id = self._frame_id
        self.sim_time = time_s
        for hook in self.on_publish:
            hook()

    def jump(self) -> None:
        """The state does not follow from the published one (a reset, a restored state, a replay's jump).

        Call this before it is published. Pictures of what was before it are out of date, however new they are.
        """
        self.first_frame_id = self._frame_id + 1

    def warnings(self) -> list[str]:
        """MuJoCo's warnings since the last call."""
        return self._warnings.take()

    # -- state (the caller holds the lock) ----------------------------------------------------------------------

    def reset(self, keyframe_id: int | None = None) -> None:
        """Back to the model's start, or to a keyframe; warm start, forces and controls are cleared."""
        self.failure = ""
        if keyframe_id is None:
            mujoco.mj_resetData(self.model, self.data)
        else:
            mujoco.mj_resetDataKeyframe(self.model, self.data, keyframe_id)

    # -- the rest -----------------------------------------------------------------------------------------------

    def set_worker_threads(self, wanted: int) -> None:
        """Resize MuJoCo's pool, within 0 and the number of cores; the caller holds the lock."""
        count = max(0, min(wanted, max_worker_threads()))
        if count == self.worker_threads:
            return
        if count and (reason := too_many_lost()):
            log.warning("no worker threads: %s", reason)
            count = 0
        if self._pooled is not None:
            self._pooled.close()
            self._pooled, self.worker_threads = None, 0
        if count:
            self._pooled = PooledCalls(self.model, self.data, count)
            self.worker_threads = count

    def options_changed(self) -> None:
        """Forget what was derived from the model's options and parameters; the caller holds the `model_lock`."""
        self._binary = None

    def model_binary(self) -> bytes:
        """The model as an MJB file's bytes; saved anew when the options have changed. Any thread, at once."""
        with self.model_lock:
            if self._binary is None:
                buffer = np.empty(mujoco.mj_sizeModel(self.model), np.uint8)
                mujoco.mj_saveModel(self.model, None, buffer)
                self._binary = buffer.tobytes()
            return self._binary

    def close(self) -> None:
        """Free the worker pool; the caller holds the lock."""
        self.set_worker_threads(0)


def max_worker_threads() -> int:
    """The number of logical cores."""
    return os.cpu_count() or 1


def give_memory_back() -> None:
    """Return free memory to the system. Models are large, and what is left of them would else pile up."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl does not
        if trim is not None:
            trim(0)


def route_mujoco_log() -> None:
    """Send MuJoCo's messages to our log instead of the console and a file in the current folder."""
    log_without_console()
    log_without_files()
    mujoco.set_mju_user_warning(_log_warning)


_caught = threading.local()


@contextlib.contextmanager
def mujoco_warnings() -> Iterator[list[str]]:
    """What MuJoCo warns of on this thread inside the block, each once; it is the caller's to report."""
    found: dict[str, None] = {}
    outer = getattr(_caught, "found", None)
    _caught.found = found
    messages: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as spoken:
            warnings.simplefilter("always")
            yield messages
    finally:
        _caught.found = outer
        messages += dict.fromkeys([*(str(one.message).strip() for one in spoken), *found])


def _log_warning(message: str) -> None:
    caught: dict[str, None] | None = getattr(_caught, "found", None)
    if caught is None:
        log.warning("MuJoCo: %s", message.strip())
    else:
        caught[message.strip()] = None


def _words(counter: Any, kind: mujoco.mjtWarning) -> str:
    text = mujoco.mju_warningText(kind, counter.lastinfo).strip()
    if int(kind) in RESET_WARNINGS:
        text += " MuJoCo has reset the simulation; use a smaller timestep or gentler controls."
    return text if counter.number == 1 else f"{text} ({counter.number} times)"
