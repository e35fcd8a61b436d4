"""Live mode: physics runs by itself in real time; a step stages and reads."""

import time
from collections.abc import Callable
from typing import Any

import pytest


def until(condition: Callable[[], Any], limit_s: float = 60.0) -> None:
    """Ask again until it holds; live physics answers to the wall clock, so there is no event to wait for."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it never came true"


@pytest.fixture
def live(wire: Any) -> Any:
    """A client in live mode."""
    wire.ok("set_mode", mode="live")
    return wire


def test_time_goes_on_by_itself(live: Any) -> None:
    start = live.ok("step")["time"]
    until(lambda: live.ok("step")["time"] > start + 0.05)


def test_a_step_waits_for_none_of_the_steps_that_n_steps_says(live: Any) -> None:
    assert live.ok("step", n_steps=10**9)["step"] < 10**9


def test_the_counter_counts_the_steps_that_ran(wire: Any) -> None:
    wire.ok("set_paused", paused=True)  # none runs before the switch has begun the count
    wire.ok("set_mode", mode="live")
    wire.ok("set_paused", paused=False)
    until(lambda: wire.ok("step")["step"] >= 10)
    wire.ok("set_paused", paused=True)
    seen = wire.ok("step")
    assert seen["time"] == pytest.approx(seen["step"] * 0.002)


def test_it_runs_no_faster_than_real_time(live: Any) -> None:
    """But for a tenth of a second at most, by which it may have been late when this began."""
    began, first = time.monotonic(), live.ok("step")["time"]
    until(lambda: live.ok("step")["time"] > first + 1.0)
    assert time.monotonic() - began > 0.89


def test_pausing_freezes_time_and_resuming_goes_on(live: Any) -> None:
    assert live.ok("set_paused", paused=True)["paused"] is True
    frozen = live.ok("step")["time"]
    time.sleep(0.05)
    assert live.ok("step")["time"] == frozen == live.ok("pie_status")["sim_time"]
    assert live.ok("set_paused", paused=False)["paused"] is False
    until(lambda: live.ok("step")["time"] > frozen)


def test_controls_are_staged_while_paused(live: Any) -> None:
    live.ok("set_paused", paused=True)
    live.ok("step", per_articulation={"arm": {"ctrl": [0.5, -0.25]}})
    live.ok("set_paused", paused=False)
    until(lambda: live.ok("step")["per_articulation"]["arm"]["ctrl"] == [0.5, -0.25])


def test_ctrl_and_ctrl_map_take_effect(live: Any) -> None:
    live.ok("step", per_articulation={"arm": {"ctrl": [0.5, -0.25], "ctrl_map": {"arm_bend": 0.75}}})
    until(lambda: live.ok("step")["per_articulation"]["arm"]["ctrl"] == [0.5, 0.75])


def test_raw_control_holds_until_the_next_command(live: Any) -> None:
    live.ok("step", per_articulation={"walker": {"ctrl": [0.7, -0.2], "control_mode": "raw"}})
    until(lambda: live.ok("step")["per_articulation"]["walker"]["ctrl"] == [0.7, -0.2])
    live.ok("step", per_articulation={"walker": {"ctrl": [0.7, -0.2]}})
    until(lambda: live.ok("step")["per_articulation"]["walker"]["ctrl"] != [0.7, -0.2])


def test_a_force_acts_during_one_step(live: Any, engine: Any) -> None:
    live.ok("set_paused", paused=True)
    live.ok("step", per_articulation={"crate": {"xfrc_applied": {"crate": [5000, 0, 0, 0, 0, 0]}}})
    live.ok("set_paused", paused=False)
    until(lambda: live.ok("step")["entities"]["crate"]["qvel"][0] > 0.5)
    with engine().locked():
        assert not engine().data.xfrc_applied.any()


def test_observations_are_honoured(live: Any) -> None:
    assert set(live.ok("step", observations="minimal")["per_articulation"]["arm"]) == {"qpos", "qvel"}
    assert "bodies" in live.ok("step", observations="full")["per_articulation"]["arm"]


@pytest.mark.parametrize(("asked", "given"), [(25, 25), (5, 5), (1, 5), (-10, 5), (100, 100), (1e300, 100)])
def test_the_speed_is_held_within_5_and_100_percent(wire: Any, asked: float, given: float) -> None:
    assert wire.ok("set_sim_speed", percent=asked)["percent"] == given


@pytest.mark.parametrize("percent", [float("nan"), float("inf"), "fast", True, [5]])
def test_a_speed_that_is_none_is_refused(wire: Any, world: Any, percent: Any) -> None:
    before = world()
    assert wire.refused("set_sim_speed", percent=percent) == "bad_value"
    assert world() == before


def test_a_slower_speed_takes_longer(live: Any) -> None:
    live.ok("set_sim_speed", percent=10)
    began, first = time.monotonic(), live.ok("step")["time"]
    until(lambda: live.ok("step")["time"] > first + 0.1)
    assert time.monotonic() - began > 0.75


@pytest.mark.parametrize("paused", [1, "yes", []])
def test_pausing_takes_true_or_false(wire: Any, world: Any, paused: Any) -> None:
    before = world()
    assert wire.refused("set_paused", paused=paused) == "bad_value"
    assert world() == before


def test_a_push_acts_in_every_step_until_it_is_released(live: Any) -> None:
    live.ok("perturb", body="crate", force=[0, 0, 30])
    until(lambda: live.ok("step")["entities"]["crate"]["qvel"][2] > 0.5)
    live.ok("release_perturbation")
    until(lambda: live.ok("step")["entities"]["crate"]["qvel"][2] < 0)
