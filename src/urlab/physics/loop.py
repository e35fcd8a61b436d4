"""The thread that runs live physics, or a replay of it, at a chosen share of real time.

Pacing: turns are due on an absolute schedule, so that small delays are made up for; after a delay of more than
``_GIVE_UP_S`` the schedule begins anew rather than racing to catch up. While halted the thread waits on a condition
and costs nothing.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from urlab.errors import OpTimeout, PhysicsError, PluginError
from urlab.monitoring.watchdog import Turns
from urlab.physics.engine import Engine

log = logging.getLogger("urlab.physics")

MIN_SPEED_PERCENT = 5.0
MAX_SPEED_PERCENT = 100.0
_GIVE_UP_S = 0.1
_LONGEST_NAP_S = 0.02
_LATENESS_SAMPLES = 5000


class LoopClock(Protocol):
    """Tells seconds, and waits for them; ``time`` is one."""

    def perf_counter(self) -> float:
        """Seconds since some moment; they never go backwards."""

    def sleep(self, secs: float, /) -> None:
        """Wait that long."""


class PhysicsLoop:
    """Steps an engine in real time while it is running, not paused, and not held."""

    def __init__(self, engine: Engine, turn: Callable[[], float | None] | None = None, clock: LoopClock = time) -> None:
        """``turn`` is what is done each time, one mj_step by default.

        It is called under the physics lock, publishes the state itself, and returns the simulated seconds until it is
        to be called again; None when it is not, until `begin_anew`.
        """
        self._engine = engine
        self._turn = turn or self.step
        self._clock = clock
        self._changed = threading.Condition()
        self._running = False
        self.paused = False
        """Whether live physics is paused; `set_paused` changes it."""

        self.held = False
        """Whether the last turn was the last one, until `begin_anew`. Any thread may read it."""

        self._schedules = 0
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

    def begin_anew(self) -> None:
        """The next turn is due at once, whenever it would have been, if ever. The caller holds the physics lock."""
        with self._changed:
            self.held = False
            self._schedules += 1
            self._changed.notify_all()

    def step(self) -> float:
        """One mj_step, published; the simulated seconds of it. The caller holds the physics lock."""
        engine = self._engine
        engine.step_once()
        self.steps += 1
        engine.publish()
        return float(engine.model.opt.timestep)

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
        return self._running and not self.paused and not self.held

    def _run_on_schedule(self) -> None:
        due, schedule = self._clock.perf_counter(), self._schedules
        while self._wanted() and not self._stopping:
            late = self._sleep_until(due, schedule)
            if late > _GIVE_UP_S:
                due += late
            self.lateness_s.append(late)
            self._watched.turn()
            seconds, of_schedule = self._take_turn()
            if of_schedule != schedule:
                due, schedule = self._clock.perf_counter(), of_schedule
            due += seconds * 100.0 / self.speed_percent

    def _take_turn(self) -> tuple[float, int]:
        """The simulated seconds until the next one, and the number of the schedule that it is in."""
        with self._engine.locked():
            if not self._wanted():
                return 0.0, self._schedules
            seconds = self._turn()
            self.held = seconds is None
            return seconds or 0.0, self._schedules

    def _sleep_until(self, due: float, schedule: int) -> float:
        while (left := due - self._clock.perf_counter()) > 0:
            self._clock.sleep(min(left, _LONGEST_NAP_S))
            self._watched.turn()
            if self._stopping or not self._wanted() or schedule != self._schedules:
                return 0.0
        return -left
