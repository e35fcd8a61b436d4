"""The thread that runs live physics at a chosen share of real time.

Pacing: steps are due on an absolute schedule, so that small delays are made up for; after a delay of more than
``_GIVE_UP_S`` the schedule begins anew rather than racing to catch up. While halted the thread waits on a condition
and costs nothing.
"""

import logging
import threading
import time
from collections import deque

from urlab.errors import OpTimeout, PhysicsError, PluginError
from urlab.monitoring.watchdog import Turns
from urlab.physics.engine import Engine

log = logging.getLogger("urlab.physics")

MIN_SPEED_PERCENT = 5.0
MAX_SPEED_PERCENT = 100.0
_GIVE_UP_S = 0.1
_LONGEST_NAP_S = 0.02
_LATENESS_SAMPLES = 5000


class PhysicsLoop:
    """Steps an engine in real time while it is running and not paused."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._changed = threading.Condition()
        self._running = False
        self.paused = False
        """Whether live physics is paused; `set_paused` changes it."""

        self._stopping = False
        self.speed_percent = MAX_SPEED_PERCENT
        """The share of real time in force; `set_speed` changes it."""

        self.steps = 0
        self.lateness_s: deque[float] = deque(maxlen=_LATENESS_SAMPLES)
        self._watched = Turns("urlab-physics")
        self._thread = threading.Thread(target=self._run, name="urlab-physics", daemon=True)

    def start(self) -> None:
        """Start the thread, halted."""
        self._thread.start()

    def stop(self, timeout_s: float = 3.0) -> None:
        """End the thread."""
        self._set(stopping=True)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def set_running(self, running: bool) -> None:
        """Whether this thread steps at all: true in live mode only."""
        self._set(running=running)

    def set_paused(self, paused: bool) -> None:
        """Halt or resume."""
        self._set(paused=paused)

    def set_speed(self, percent: float) -> float:
        """Pace at this share of real time; returns the one in force."""
        self.speed_percent = max(MIN_SPEED_PERCENT, min(MAX_SPEED_PERCENT, percent))
        return self.speed_percent

    def _set(self, *, running: bool | None = None, paused: bool | None = None, stopping: bool = False) -> None:
        with self._changed:
            self._running = self._running if running is None else running
            self.paused = self.paused if paused is None else paused
            self._stopping = self._stopping or stopping
            self._changed.notify_all()

    def _run(self) -> None:
        self._watched.open()
        while self._wait_until_wanted():
            self._watched.busy()
            try:
                self._run_on_schedule()
            except OpTimeout:
                log.debug("live physics gave way to a long request")
            except (PhysicsError, PluginError) as failed:
                log.error("%s; live physics is paused", failed.message, exc_info=failed.__cause__)
                self._halt(failed.message)
            except Exception as failed:
                log.exception("live physics failed and is paused")
                self._halt(f"{type(failed).__name__}: {failed}")
            self._watched.idle()
        self._watched.close()

    def _halt(self, reason: str) -> None:
        self._engine.failure = reason
        self.set_paused(True)

    def _wait_until_wanted(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._wanted())
            return not self._stopping

    def _wanted(self) -> bool:
        return self._running and not self.paused

    def _run_on_schedule(self) -> None:
        due = time.perf_counter()
        while self._wanted() and not self._stopping:
            late = self._sleep_until(due)
            if late > _GIVE_UP_S:
                due += late
            self.lateness_s.append(late)
            self._watched.turn()
            due += self._step() * 100.0 / self.speed_percent

    def _step(self) -> float:
        engine = self._engine
        with engine.locked():
            if not self._wanted():
                return 0.0
            engine.step_once()
            self.steps += 1
            engine.publish()
            return float(engine.model.opt.timestep)

    def _sleep_until(self, due: float) -> float:
        while (left := due - time.perf_counter()) > 0:
            time.sleep(min(left, _LONGEST_NAP_S))
            self._watched.turn()
            if self._stopping or not self._wanted():
                return 0.0
        return -left
