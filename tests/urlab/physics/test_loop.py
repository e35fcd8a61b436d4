"""Live physics on its own thread. Bounds are coarse: a loaded machine may be late, but never early."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from urlab.physics import Engine, PhysicsLoop

FindThread = Callable[[], threading.Thread | None]

PATIENCE_S = 60.0


@pytest.fixture
def loop(engine: Engine, physics_thread: FindThread) -> Iterator[PhysicsLoop]:
    loop = PhysicsLoop(engine)
    loop.start()
    yield loop
    loop.stop()


class Reached:
    """Set when the simulated time gets somewhere."""

    def __init__(self, engine: Engine, sim_time: float) -> None:
        self._engine, self._wanted, self._event = engine, sim_time, threading.Event()
        engine.on_publish.append(self._look)

    def wait(self) -> bool:
        return self._event.wait(PATIENCE_S)

    def _look(self) -> None:
        if self._engine.data.time >= self._wanted:
            self._event.set()


class SimulatedClock:
    """Time that passes by waiting alone."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, secs: float, /) -> None:
        self.now += secs


def wait_until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.001)


@pytest.fixture
def physics_thread() -> FindThread:
    """Finds the thread of a loop that was started after the test began; None when it is not alive."""
    others = set(threading.enumerate())

    def find() -> threading.Thread | None:
        return next((one for one in threading.enumerate() if one.name == "urlab-physics" and one not in others), None)

    return find


@pytest.mark.parametrize("percent", [100, 50])
def test_time_runs_at_the_chosen_share_of_real_time(percent: float, loop: PhysicsLoop, engine: Engine) -> None:
    assert loop.set_speed(percent) == loop.speed_percent == percent
    reached = Reached(engine, 0.3)
    began = time.perf_counter()
    loop.set_running(True)
    assert reached.wait()
    with engine.locked():
        simulated, lasted = engine.data.time, time.perf_counter() - began
    share = percent / 100
    assert simulated <= share * lasted + 2 * engine.model.opt.timestep
    assert loop.steps == round(simulated / engine.model.opt.timestep)


@pytest.mark.parametrize(("asked", "given"), [(1000, 100), (100, 100), (33.3, 33.3), (5, 5), (1, 5), (-7, 5)])
def test_the_speed_stays_within_5_and_100_percent(asked: float, given: float, engine: Engine) -> None:
    loop = PhysicsLoop(engine)
    assert loop.set_speed(asked) == given
    assert loop.speed_percent == given


def test_nothing_moves_before_it_is_told_to_run(loop: PhysicsLoop, engine: Engine) -> None:
    assert not loop.paused
    assert (loop.steps, engine.data.time) == (0, 0)


def test_every_step_is_published(loop: PhysicsLoop, engine: Engine) -> None:
    frames: list[tuple[int, float]] = []
    engine.on_publish.append(lambda: frames.append((engine.snapshot.frame_id, engine.snapshot.sim_time)))
    reached = Reached(engine, 0.05)
    loop.set_running(True)
    assert reached.wait()
    loop.set_paused(True)
    with engine.locked():
        seen = list(frames)
    assert [frame for frame, _ in seen] == list(range(1, loop.steps + 1))
    assert [when for _, when in seen] == pytest.approx([0.002 * frame for frame, _ in seen])


def test_a_pause_holds_time_and_lets_go_of_it_again(loop: PhysicsLoop, engine: Engine) -> None:
    reached = Reached(engine, 0.02)
    loop.set_running(True)
    assert reached.wait()
    loop.set_paused(True)
    with engine.locked():
        stood, steps = engine.data.time, loop.steps
    assert loop.paused
    threading.Event().wait(0.05)
    assert (engine.data.time, loop.steps) == (stood, steps)
    further = Reached(engine, stood + 0.02)
    loop.set_paused(False)
    assert further.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="reads the clock of one thread")
@pytest.mark.parametrize("halt", ["paused", "not running"])
def test_a_halted_loop_costs_nothing(halt: str, loop: PhysicsLoop, engine: Engine, physics_thread: FindThread) -> None:
    thread = physics_thread()
    assert thread is not None
    assert thread.ident is not None
    reached = Reached(engine, 0.02)
    loop.set_running(True)
    assert reached.wait()
    if halt == "paused":
        loop.set_paused(True)
    else:
        loop.set_running(False)
    clock = time.pthread_getcpuclockid(thread.ident)

    def costs_nothing() -> bool:
        before = time.clock_gettime(clock)
        threading.Event().wait(0.2)
        return time.clock_gettime(clock) - before < 0.002

    wait_until(costs_nothing)  # on a busy machine its last turn may still be under way


def test_the_loop_gives_way_to_whoever_holds_the_lock(loop: PhysicsLoop, engine: Engine) -> None:
    reached = Reached(engine, 0.02)
    loop.set_running(True)
    assert reached.wait()
    with engine.locked():
        steps, stood = loop.steps, engine.data.time
        threading.Event().wait(0.02)
        assert (loop.steps, engine.data.time) == (steps, stood)
    assert Reached(engine, stood + 0.01).wait()


def test_a_long_hold_is_not_made_up_for(loop: PhysicsLoop, engine: Engine) -> None:
    """After a hole in time the schedule begins anew: physics never races."""
    reached = Reached(engine, 0.02)
    loop.set_running(True)
    assert reached.wait()
    with engine.locked():
        threading.Event().wait(0.3)
        stood, released = engine.data.time, time.perf_counter()
    assert Reached(engine, stood + 0.05).wait()
    with engine.locked():
        assert engine.data.time - stood <= time.perf_counter() - released + 0.1


def test_stopping_ends_the_thread(engine: Engine, physics_thread: FindThread) -> None:
    loop = PhysicsLoop(engine)
    loop.start()
    loop.set_running(True)
    loop.stop(PATIENCE_S)
    assert physics_thread() is None


@pytest.mark.parametrize("state", ["halted", "slow"])
def test_stopping_does_not_wait_for_the_next_step(state: str, engine: Engine, physics_thread: FindThread) -> None:
    engine.model.opt.timestep = 1.0
    loop = PhysicsLoop(engine)
    loop.set_speed(5)
    loop.start()
    if state == "slow":
        reached = Reached(engine, 1.0)
        loop.set_running(True)
        assert reached.wait()
    began = time.perf_counter()
    loop.stop(PATIENCE_S)
    assert physics_thread() is None
    assert time.perf_counter() - began < 10, "the next step would be due in 20 s"


def test_stopping_twice_or_before_the_start_is_no_harm(engine: Engine, physics_thread: FindThread) -> None:
    loop = PhysicsLoop(engine)
    loop.stop()
    loop.start()
    loop.stop(PATIENCE_S)
    loop.stop()
    assert physics_thread() is None


def test_a_hook_that_fails_pauses_the_loop_and_is_logged(
    loop: PhysicsLoop, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("the hook broke")

    engine.pre_step.append(fail)
    with caplog.at_level(logging.ERROR, "urlab.physics"):
        loop.set_running(True)
        wait_until(lambda: loop.paused)
    assert "live physics failed and is paused" in caplog.text
    assert "the hook broke" in caplog.text
    engine.pre_step.clear()
    reached = Reached(engine, 0.01)
    loop.set_paused(False)
    assert reached.wait()


def test_a_hook_may_stop_the_loop_that_runs_it(engine: Engine, physics_thread: FindThread) -> None:
    loop = PhysicsLoop(engine)
    loop.start()
    loop.set_running(True)
    engine.post_step.append(loop.stop)
    wait_until(lambda: physics_thread() is None)
    assert loop.steps == 1


@pytest.mark.parametrize("percent", [100, 50, 5])
def test_turns_come_when_the_one_before_said_at_the_chosen_speed(percent: float, engine: Engine) -> None:
    clock, gaps, at = SimulatedClock(), [0.5, 0.001, 2.0, 0.0, 0.25], []

    def turn() -> float | None:
        at.append(clock.now)
        return gaps[len(at) - 1] if len(at) <= len(gaps) else None

    loop = PhysicsLoop(engine, turn, clock)
    loop.set_speed(percent)
    loop.start()
    loop.set_running(True)
    wait_until(lambda: loop.held)
    loop.stop()
    share = percent / 100
    assert at == pytest.approx([100.0 + sum(gaps[:count]) / share for count in range(len(gaps) + 1)])


def test_a_held_loop_begins_anew_and_its_next_turn_is_due_at_once(engine: Engine) -> None:
    clock, turns = SimulatedClock(), iter([None, 0.5, None])
    at: list[float] = []

    def turn() -> float | None:
        at.append(clock.now)
        return next(turns)

    loop = PhysicsLoop(engine, turn, clock)
    loop.start()
    loop.set_running(True)
    wait_until(lambda: loop.held)
    clock.now += 7.0
    with engine.locked():
        loop.begin_anew()
    wait_until(lambda: len(at) == 3 and loop.held)
    loop.stop()
    assert at == pytest.approx([100.0, 107.0, 107.5])


def test_a_wait_is_given_up_when_the_schedule_begins_anew(engine: Engine) -> None:
    first = threading.Event()
    turns = iter([1e6, None])

    def turn() -> float | None:
        first.set()
        return next(turns)

    loop = PhysicsLoop(engine, turn)
    loop.start()
    loop.set_running(True)
    assert first.wait(PATIENCE_S)
    with engine.locked():
        loop.begin_anew()
    wait_until(lambda: loop.held)
    loop.stop()
