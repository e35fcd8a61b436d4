"""The engine: steps, locks, snapshots, options and warnings of one simulation."""

import logging
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import urlab.physics
from urlab.errors import OpTimeout, PhysicsError
from urlab.physics import MUJOCO_VERSION, MUJOCO_VERSION_INT, Engine, max_worker_threads
from urlab.physics.worker_pool import PooledCalls

NEVER = math.inf
Model = Callable[[str], Any]


def drive(model: Any, data: Any, step: int) -> None:
    """Some control that keeps everything moving."""
    data.ctrl[:] = np.sin(0.01 * step + np.arange(model.nu))


def state_of(model: Any, data: Any) -> bytes:
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    return state.tobytes()


def run(engine: Engine, steps: int) -> list[bytes]:
    """Step on, driven; the full state after each step."""
    states = []
    for _ in range(steps):
        drive(engine.model, engine.data, round(engine.data.time / engine.model.opt.timestep))
        engine.advance(1, NEVER)
        states.append(state_of(engine.model, engine.data))
    return states


@pytest.mark.parametrize("name", ["panda", "quadruped"])
def test_stepping_is_a_plain_mj_step_loop_bit_for_bit(name: str, busy_model: Model) -> None:
    model = busy_model(name)
    engine, data = Engine(model), mujoco.MjData(model)
    for window in range(100):
        drive(model, engine.data, window)
        drive(model, data, window)
        assert engine.advance(10, NEVER) == 10
        for _ in range(10):
            mujoco.mj_step(model, data)
        assert state_of(model, engine.data) == state_of(model, data), window
    assert engine.data.ncon > 0
    np.testing.assert_array_equal(engine.data.sensordata, data.sensordata)
    np.testing.assert_array_equal(engine.data.xpos, data.xpos)


def test_a_reset_clears_time_controls_forces_and_warm_start(engine: Engine) -> None:
    fresh = state_of(engine.model, mujoco.MjData(engine.model))
    run(engine, 20)
    engine.data.xfrc_applied[:] = 1
    engine.reset()
    assert state_of(engine.model, engine.data) == fresh


def test_a_reset_can_go_to_a_keyframe(busy_model: Model) -> None:
    model = busy_model("panda")
    engine = Engine(model)
    run(engine, 20)
    engine.reset(0)
    np.testing.assert_array_equal(engine.data.qpos, model.key_qpos[0])
    np.testing.assert_array_equal(engine.data.ctrl, model.key_ctrl[0])
    assert not engine.data.qacc_warmstart.any()


def test_hooks_run_around_every_step_in_their_order(engine: Engine) -> None:
    calls: list[tuple[str, float]] = []
    for name in ("first", "second"):
        engine.pre_step.append(lambda name=name: calls.append((f"{name} before", engine.data.time)))  # type: ignore[misc]
        engine.post_step.append(lambda name=name: calls.append((f"{name} after", engine.data.time)))  # type: ignore[misc]
    engine.advance(2, NEVER)
    dt = engine.model.opt.timestep
    order = ["first before", "second before", "first after", "second after"]
    assert calls == [*zip(order, (0, 0, dt, dt), strict=True), *zip(order, (dt, dt, 2 * dt, 2 * dt), strict=True)]


def test_a_step_uses_what_a_hook_writes_before_it(engine: Engine) -> None:
    engine.pre_step.append(lambda: engine.data.ctrl.__setitem__(0, 0.5))
    engine.advance(1, NEVER)
    assert engine.data.act[0] == pytest.approx(0.5 * engine.model.opt.timestep)


def test_a_window_stops_at_the_first_sub_step_after_its_deadline(engine: Engine) -> None:
    assert engine.advance(1000, time.monotonic() - 1) == 1
    assert engine.data.time == engine.model.opt.timestep


def test_a_window_can_be_interrupted_at_a_sub_step(engine: Engine) -> None:
    engine.post_step.append(lambda: engine.interrupt() if engine.data.time > 0.0099 else None)
    assert engine.advance(1000, NEVER) == 5
    assert engine.data.time == pytest.approx(0.01)


def test_sub_steps_in_one_call_are_a_plain_mj_step_loop_bit_for_bit(busy_model: Model) -> None:
    model = busy_model("panda")
    engine, data = Engine(model), mujoco.MjData(model)
    counted: list[int] = []
    for window in range(5):
        drive(model, engine.data, window)
        drive(model, data, window)
        assert engine.advance_together(40, NEVER, counted.append, lambda: True) == 40
        for _ in range(40):
            mujoco.mj_step(model, data)
        assert state_of(model, engine.data) == state_of(model, data), window
    assert sum(counted) == 200
    np.testing.assert_array_equal(engine.data.sensordata, data.sensordata)


UNSTABLE = """<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".01" mass="1"/></body></worldbody>
  <actuator><position joint="j" kp="10" dampratio="1"/></actuator></mujoco>"""


def test_sub_steps_in_one_call_go_on_as_a_loop_where_mujoco_resets_a_simulation() -> None:
    model = mujoco.MjModel.from_xml_string(UNSTABLE)
    loop, together = Engine(model), Engine(model)
    for engine in (loop, together):
        engine.pre_step.append(lambda data=engine.data: data.ctrl.fill(0.2))
    resets = 0
    for _ in range(5):
        loop.advance(20, NEVER)
        together.advance_together(20, NEVER, lambda _: None, lambda: True)
        assert state_of(model, loop.data) == state_of(model, together.data)
        resets += loop.data.time < 0.02
    assert resets


def test_a_reset_by_mujoco_at_the_begin_of_time_is_noticed_too() -> None:
    model = mujoco.MjModel.from_xml_string(UNSTABLE)
    loop, together = Engine(model), Engine(model)
    for engine in (loop, together):
        engine.pre_step.append(lambda data=engine.data: data.ctrl.fill(0.2))
        engine.seconds_per_step = engine._feared_s = 1e-5
        engine.data.qpos[:] = np.nan
    loop.advance(3, NEVER)
    together.advance_together(3, NEVER, lambda _: None, lambda: True)
    assert state_of(model, loop.data) == state_of(model, together.data)
    assert loop.warnings() == together.warnings() != []


def test_sub_steps_in_one_call_end_after_the_deadline_and_by_an_interrupt(engine: Engine) -> None:
    counted: list[int] = []
    late = engine.advance_together(1_000_000, 0.0, counted.append, lambda: True)
    assert late == sum(counted) < 1_000_000
    engine.interrupt()
    assert engine.advance_together(1_000_000, NEVER, counted.append, lambda: True) < 1_000_000


def test_the_lock_is_given_up_on_in_time(engine: Engine) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with engine.locked():
            held.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    with pytest.raises(OpTimeout, match=r"the simulation is busy: no turn within 0\.01 s"):
        with engine.locked(0.01):
            pass
    done.set()
    holder.join()
    with engine.locked(5):
        with engine.locked(0):
            pass


def test_the_lock_is_released_when_its_holder_fails(engine: Engine) -> None:
    with pytest.raises(ZeroDivisionError):
        with engine.locked():
            _ = 1 / 0
    taken: list[bool] = []

    def take() -> None:
        with engine.locked(5):
            taken.append(True)

    other = threading.Thread(target=take)
    other.start()
    other.join()
    assert taken == [True]


@pytest.mark.parametrize("workers", [1, 2])
def test_worker_threads_change_nothing_but_speed(workers: int, busy_model: Model) -> None:
    alone, helped = Engine(busy_model("quadruped")), Engine(busy_model("quadruped"))
    helped.set_worker_threads(workers)
    assert helped.worker_threads == min(workers, max_worker_threads())
    try:
        assert run(alone, 80) == run(helped, 80)
    finally:
        helped.close()
    assert helped.worker_threads == 0


def test_worker_threads_are_limited_by_the_machine(engine: Engine) -> None:
    engine.set_worker_threads(10_000)
    assert engine.worker_threads == max_worker_threads()
    engine.set_worker_threads(-3)
    assert engine.worker_threads == 0
    assert len(run(engine, 3)) == 3


def test_the_model_as_bytes_loads_again(engine: Engine, tmp_path: Any) -> None:
    path = tmp_path / "model.mjb"
    path.write_bytes(engine.model_binary())
    again = mujoco.MjModel.from_binary_path(str(path))
    assert (again.nq, again.opt.timestep, again.names) == (1, 0.002, engine.model.names)


def test_the_bytes_are_made_once_until_the_options_change(engine: Engine, tmp_path: Any) -> None:
    before = engine.model_binary()
    assert engine.model_binary() is before
    engine.model.opt.timestep = 0.005
    with engine.model_lock:
        engine.options_changed()
    path = tmp_path / "model.mjb"
    path.write_bytes(engine.model_binary())
    assert mujoco.MjModel.from_binary_path(str(path)).opt.timestep == 0.005


def test_the_front_door_is_what_other_rooms_may_use() -> None:
    assert urlab.physics.__all__ == [
        "MUJOCO_VERSION",
        "MUJOCO_VERSION_INT",
        "NO_CALLBACKS",
        "QUICK_STEP_S",
        "Engine",
        "LoopClock",
        "PhysicsLoop",
        "Snapshot",
        "StepCallback",
        "StepCallbacks",
        "give_memory_back",
        "max_worker_threads",
    ]


CROWDED = """
<mujoco>
  <size memory="20K"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .05"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="0 0 .15"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  </worldbody>
</mujoco>
"""


def go_wild(engine: Engine) -> None:
    engine.data.qvel[:] = 1e30
    engine.advance(1, 1e99)


def test_a_simulation_that_behaves_has_no_warnings(engine: Engine) -> None:
    engine.advance(100, 1e99)
    assert engine.warnings() == []


def test_an_unstable_simulation_is_reported_once(engine: Engine) -> None:
    go_wild(engine)
    (warning,) = engine.warnings()
    assert "QVEL" in warning
    assert warning.endswith("MuJoCo has reset the simulation; use a smaller timestep or gentler controls.")
    assert engine.warnings() == []


def test_a_warning_comes_back_when_it_happens_again(engine: Engine) -> None:
    for _ in range(2):
        go_wild(engine)
        assert len(engine.warnings()) == 1


def test_warnings_of_one_kind_are_counted(engine: Engine) -> None:
    engine.data.warning[mujoco.mjtWarning.mjWARN_BADCTRL].number = 2
    (warning,) = engine.warnings()
    assert warning.endswith("(2 times)")


def test_a_full_buffer_is_reported_without_talk_of_a_reset() -> None:
    engine = Engine(mujoco.MjModel.from_xml_string(CROWDED))
    engine.advance(1, 1e99)
    warnings = engine.warnings()
    assert warnings
    assert not any("reset the simulation" in one for one in warnings)


@pytest.mark.parametrize("kind", [kind for name, kind in mujoco.mjtWarning.__members__.items() if name != "mjNWARNING"])
def test_every_kind_of_warning_has_words(kind: Any, engine: Engine) -> None:
    engine.data.warning[kind].number = 1
    (warning,) = engine.warnings()
    assert len(warning) > 10


def test_mujocos_words_go_to_the_log_and_to_no_file(
    engine: Engine,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.WARNING, "urlab.physics"):
        go_wild(engine)
    assert any(text.startswith("MuJoCo: ") and "QVEL" in text for text in caplog.messages)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_mujocos() -> None:
    assert mujoco.__version__ == MUJOCO_VERSION
    assert mujoco.mj_version() == MUJOCO_VERSION_INT


@pytest.mark.skipif(not hasattr(mujoco, "mju_threadpool"), reason="this MuJoCo has no pool of threads")
def test_a_pool_that_never_comes_back_is_given_up_and_the_data_goes_on_without_it(pendulum: Any) -> None:
    helped, alone, hanging = Engine(pendulum), Engine(pendulum), threading.Event()
    pool = PooledCalls(pendulum, helped.data, 1)
    threading.Thread(target=lambda: (hanging.wait(), pool.fail("no room"))).start()
    with pytest.raises(PhysicsError, match="worker threads: no room"):
        pool.call(lambda *_: (hanging.set(), threading.Event().wait()))  # type: ignore[func-returns-value]
    for engine in (helped, alone):
        engine.reset()
        engine.advance(20, NEVER)
    assert np.array_equal(helped.data.qpos, alone.data.qpos)
