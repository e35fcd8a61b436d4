import threading
from typing import Any

import numpy as np
import pytest

from urlab.errors import OpTimeout, ShuttingDown, UnknownArticulation
from urlab.manager import Manager, StepCounter, View
from urlab.manager import manager as manager_module
from urlab_wire.enums import ObservationLevel, StepMode
from urlab_wire.ops.runtime import PerturbRequest
from urlab_wire.ops.stepping import ArticulationCommand, StepRequest

MINIMAL = View(ObservationLevel.MINIMAL)


def test_an_ended_simulation_ends_a_running_window(manager: Manager) -> None:
    manager.engine.post_step.append(manager.engine.interrupt)
    with pytest.raises(ShuttingDown, match="after 1 of 50 steps"):
        manager.step(StepRequest(n_steps=50), MINIMAL)


def test_a_request_does_not_wait_for_ever_for_its_turn(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "STEP_TIME_LIMIT_S", 0.01)
    held, gate = threading.Event(), threading.Event()

    def hold() -> None:
        with manager.engine.locked():
            held.set()
            gate.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    with pytest.raises(OpTimeout, match="busy"):
        manager.step(StepRequest(), MINIMAL)
    gate.set()
    holder.join()


def test_steps_from_several_threads_all_count(manager: Manager) -> None:
    threads = [threading.Thread(target=manager.step, args=(StepRequest(n_steps=20), MINIMAL)) for _ in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert manager.counter.total == 100
    assert manager.engine.data.time == pytest.approx(0.2)


def test_reading_changes_nothing(manager: Manager, full_state: Any) -> None:
    before = full_state(manager.engine)
    seen = manager.read(View(ObservationLevel.FULL))
    assert set(seen.blocks.articulations) == {"hopper"}
    assert np.array_equal(full_state(manager.engine), before)


def test_every_request_hands_out_a_snapshot_of_its_end(manager: Manager) -> None:
    shots = []
    manager.engine.on_publish.append(lambda: shots.append(manager.engine.snapshot.sim_time))
    manager.step(StepRequest(n_steps=10), MINIMAL)
    manager.reset(MINIMAL)
    manager.forward(MINIMAL)
    assert shots == [pytest.approx(0.02), 0, 0]


def test_auto_is_live(manager: Manager) -> None:
    assert manager.set_mode(StepMode.AUTO) is StepMode.DIRECT
    assert manager.mode is StepMode.LIVE
    manager.set_mode(StepMode.DIRECT)


def test_an_unknown_articulation_is_told_which_exist(manager: Manager) -> None:
    with pytest.raises(UnknownArticulation, match="hopper"):
        manager.articulation("robot")


def test_a_session_counts_from_its_hello() -> None:
    counter = StepCounter()
    counter.total += 5
    hello = counter.total
    counter.total += 3
    assert counter.between(hello, counter.total) == 3
    assert counter.between(0, counter.total) == 8


def test_after_a_reset_everybody_counts_from_there() -> None:
    counter = StepCounter()
    counter.total += 5
    counter.restart()
    counter.total += 2
    assert counter.between(0, counter.total) == counter.between(4, counter.total) == 2


def test_what_was_seen_before_a_reset_counts_nothing() -> None:
    counter = StepCounter()
    counter.total += 5
    seen = counter.total
    counter.total += 1
    counter.restart()
    assert counter.between(0, seen) == 0


# -- forces -------------------------------------------------------------------------------------------------------


def push(**bodies: list[float]) -> StepRequest:
    commands = {"hopper": ArticulationCommand(xfrc_applied=bodies)}
    return StepRequest(per_articulation=commands)


def step_with(manager: Manager, request: StepRequest) -> None:
    manager.step(request, MINIMAL)


def test_forces_on_several_bodies_act_together(manager: Manager) -> None:
    step_with(manager, push(foot=[0, 0, 1, 0, 0, 0], crate=[0, 4, 0, 0, 0, 0]))
    dt = manager.engine.model.opt.timestep
    assert np.allclose(manager.engine.data.qvel, [dt, 0, 2 * dt, 0, 0, 0, 0])


def test_a_push_adds_to_the_forces_of_a_step(manager: Manager) -> None:
    manager.perturb("session", PerturbRequest(body="crate", force=[0, 0, 4]))
    step_with(manager, push(crate=[0, 4, 0, 0, 0, 0]))
    dt = manager.engine.model.opt.timestep
    assert np.allclose(manager.engine.data.qvel[1:4], [0, 2 * dt, 2 * dt])
    assert not manager.engine.data.xfrc_applied.any()


def test_a_released_body_is_left_alone(manager: Manager) -> None:
    manager.perturb("session", PerturbRequest(body="crate", force=[0, 0, 4]))
    assert [one.body for one in manager.perturbations] == ["crate"]
    assert manager.release("session") == ["crate"]
    step_with(manager, StepRequest(n_steps=5))
    assert not manager.engine.data.qvel.any()
    assert manager.perturbations == ()


def test_a_body_that_is_released_within_a_window_is_left_alone_from_there(manager: Manager) -> None:
    manager.perturb("session", PerturbRequest(body="crate", force=[0, 0, 4]))
    speeds = []

    def watch() -> None:
        speeds.append(float(manager.engine.data.qvel[3]))
        if len(speeds) == 3:
            manager.release("session")

    manager.engine.post_step.append(watch)
    step_with(manager, StepRequest(n_steps=6))
    dt = manager.engine.model.opt.timestep
    assert np.allclose(speeds, [2 * dt, 4 * dt, 6 * dt, 6 * dt, 6 * dt, 6 * dt])
