"""What a direct step takes: controls by position and by name, forces on bodies, and how long they last."""

from typing import Any

import numpy as np
import pytest


def ctrl_of(reply: Any, prefix: str = "arm") -> Any:
    return reply["per_articulation"][prefix]["ctrl"]


def test_ctrl_is_in_actuator_order(wire: Any) -> None:
    assert ctrl_of(wire.ok("step", per_articulation={"arm": {"ctrl": [0.5, -0.25]}})) == [0.5, -0.25]


def test_ctrl_map_takes_short_and_compiled_names(wire: Any) -> None:
    assert ctrl_of(wire.ok("step", per_articulation={"arm": {"ctrl_map": {"bend": 0.5}}})) == [0, 0.5]
    assert ctrl_of(wire.ok("step", per_articulation={"arm": {"ctrl_map": {"arm_lift": 1.5}}})) == [1.5, 0.5]


def test_ctrl_map_wins_over_ctrl(wire: Any) -> None:
    both = {"ctrl": [1, 2], "ctrl_map": {"bend": 3}}
    assert ctrl_of(wire.ok("step", per_articulation={"arm": both})) == [1, 3]


def test_staged_controls_stick_until_replaced(wire: Any) -> None:
    wire.ok("step", per_articulation={"arm": {"ctrl": [0.5, -0.25]}})
    assert ctrl_of(wire.ok("step", n_steps=3)) == [0.5, -0.25]
    assert ctrl_of(wire.ok("step", per_articulation={"walker": {"ctrl": [0, 0]}})) == [0.5, -0.25]
    assert ctrl_of(wire.ok("step", per_articulation={"arm": None})) == [0.5, -0.25]


def test_a_step_that_does_not_say_how_many_is_one(wire: Any) -> None:
    seen = wire.ok("step", n_steps=None)
    assert (seen["step"], seen["time"]) == (1, 0.002)


@pytest.mark.parametrize("mode", ["direct", "puppet", "live"])
@pytest.mark.parametrize("n_steps", [-1, -1000])
def test_fewer_than_no_steps_are_refused(wire: Any, world: Any, mode: str, n_steps: int) -> None:
    wire.ok("set_paused", paused=True)
    wire.ok("set_mode", mode=mode)
    before = world()
    reply = wire.ask("step", n_steps=n_steps)
    assert (reply["code"], str(n_steps) in reply["message"]) == ("bad_value", True)
    assert world() == before
    wire.ok("set_paused", paused=False)


def test_a_step_of_no_steps_only_observes(wire: Any, engine: Any, full_state: Any) -> None:
    before = wire.ok("step", n_steps=7, per_articulation={"arm": {"ctrl": [0.5, 0]}})
    state = full_state(engine())
    seen = wire.ok("step", n_steps=0, observations="full")
    assert np.array_equal(full_state(engine()), state)
    assert {key: seen[key] for key in ("time", "step", "sim_time")} == {
        key: before[key] for key in ("time", "step", "sim_time")
    }
    assert seen["per_articulation"]["arm"]["qpos"] == before["per_articulation"]["arm"]["qpos"]
    assert "bodies" in seen["per_articulation"]["arm"]


def test_a_step_of_no_steps_stages_setpoints_and_takes_no_forces(wire: Any, world: Any) -> None:
    assert ctrl_of(wire.ok("step", n_steps=0, per_articulation={"arm": {"ctrl": [0.5, 0.25]}})) == [0, 0]
    assert ctrl_of(wire.ok("step")) == [0.5, 0.25]
    before = world()
    push = {"crate": {"xfrc_applied": {"crate": [0, 0, 50, 0, 0, 0]}}}
    assert wire.refused("step", n_steps=0, per_articulation=push) == "bad_value"
    assert world() == before


@pytest.mark.parametrize("control_mode", [None, "raw", "ue_controller"])
def test_an_empty_ctrl_is_an_absent_one(wire: Any, control_mode: str | None) -> None:
    wire.ok("step", per_articulation={"arm": {"ctrl": [0.5, -0.25]}})
    empty = {"ctrl": [], "control_mode": control_mode}
    assert ctrl_of(wire.ok("step", per_articulation={"arm": empty})) == [0.5, -0.25]
    assert ctrl_of(wire.ok("step", per_articulation={"arm": {**empty, "ctrl_map": {"lift": 1}}})) == [1, -0.25]


def test_the_counter_counts_mj_steps(wire: Any) -> None:
    assert [wire.ok("step", n_steps=n)["step"] for n in (1, 10, 5)] == [1, 11, 16]


def test_stepping_works_while_paused(wire: Any) -> None:
    wire.ok("set_paused", paused=True)
    assert wire.ok("step", n_steps=4)["time"] == pytest.approx(0.008)


def test_a_force_is_held_over_the_window_and_then_gone(wire: Any, plain: Any, engine: Any, full_state: Any) -> None:
    alone = plain(wire.hello()["mjb"])
    force = [3.0, 1.0, 20.0, 0.1, 0.2, 0.3]
    walker = {"control_mode": "raw"}
    wire.ok("step", n_steps=20, per_articulation={"walker": {"xfrc_applied": {"trunk": force}, **walker}})
    wire.ok("step", n_steps=30, per_articulation={"walker": walker})
    trunk = alone.model.body("walker_trunk").id
    alone.data.xfrc_applied[trunk] = force
    alone.step(20)
    alone.data.xfrc_applied[trunk] = 0
    alone.step(30)
    assert np.array_equal(full_state(engine()), alone.state())


@pytest.mark.parametrize("key", ["crate", "arm", "walker"])
def test_a_force_reaches_an_entity_by_its_compiled_name(wire: Any, key: str) -> None:
    lift = {key: {"xfrc_applied": {"crate": [0, 0, 50, 0, 0, 0]}}}
    assert wire.ok("step", n_steps=50, per_articulation=lift)["entities"]["crate"]["qvel"][2] > 1


@pytest.mark.parametrize("body", ["thigh", "walker_thigh"])
def test_a_force_names_a_body_by_short_or_compiled_name(wire: Any, engine: Any, body: str) -> None:
    push = {"walker": {"xfrc_applied": {body: [0, 500, 0, 0, 0, 0]}}}
    wire.ok("step", n_steps=5, per_articulation=push)
    assert engine().data.joint("walker_root").qvel[1] > 0.2


REFUSALS = [
    ({"robot": {"ctrl": [0, 0]}}, "unknown_articulation", "'robot'"),
    ({"robot": None}, "unknown_articulation", "walker"),
    ({"crate": {"ctrl": [0]}}, "unknown_articulation", "xfrc_applied"),
    ({"arm": {"ctrl": [0]}}, "dim_mismatch", "2"),
    ({"arm": {"ctrl": [0, 0, 0]}}, "dim_mismatch", "2"),
    ({"arm": {"ctrl": [0, float("nan")]}}, "bad_value", "finite"),
    ({"arm": {"ctrl": [0, float("inf")]}}, "bad_value", "finite"),
    ({"arm": {"ctrl": [0, "1"]}}, "bad_value", "ctrl"),
    ({"arm": {"ctrl": 5}}, "bad_value", "ctrl"),
    ({"arm": {"ctrl_map": {"lft": 1}}}, "bad_value", "lift"),
    ({"arm": {"ctrl_map": {"lift": float("nan")}}}, "bad_value", "finite"),
    ({"arm": {"control_mode": "magic"}}, "bad_value", "raw"),
    ({"arm": {"xfrc_applied": {"tail": [0] * 6}}}, "unknown_body", "upper"),
    ({"crate": {"xfrc_applied": {"tail": [0] * 6}}}, "unknown_body", "crate"),
    ({"arm": {"xfrc_applied": {"upper": [0] * 5}}}, "dim_mismatch", "6"),
    ({"arm": {"xfrc_applied": {"upper": [float("inf")] * 6}}}, "bad_value", "finite"),
    (["arm"], "bad_value", "per_articulation"),
    ({"arm": 5}, "bad_value", "per_articulation"),
]


@pytest.mark.parametrize(("asked", "code", "told"), REFUSALS, ids=lambda value: str(value)[:40])
def test_a_wrong_command_is_refused_whole(wire: Any, world: Any, asked: Any, code: str, told: str) -> None:
    if isinstance(asked, dict):
        asked = {"walker": {"ctrl": [0.1, 0.1]}, **asked}
    before = world()
    reply = wire.ask("step", n_steps=3, per_articulation=asked)
    assert reply["code"] == code
    assert told in reply["message"]
    assert world() == before


def test_whole_floats_are_taken_for_integers(wire: Any) -> None:
    assert wire.ok("step", n_steps=3.0)["step"] == 3
    assert wire.refused("step", n_steps=3.5) == "bad_value"
