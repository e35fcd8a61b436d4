"""What a reply shows: exactly what its level promises, and two clocks."""

import time
from typing import Any

import pytest

TOP = {"op", "time", "step", "sim_time", "wall_time", "per_articulation", "entities"}
MINIMAL = {"qpos", "qvel"}
STANDARD = MINIMAL | {"ctrl", "act", "sensors"}
TWIST = {"twist", "actions"}
FULL = STANDARD | {"bodies", "actuator_force"}
LEVELS = {
    "minimal": {"arm": MINIMAL, "walker": MINIMAL},
    "standard": {"arm": STANDARD, "walker": STANDARD | TWIST},
    "full": {"arm": FULL, "walker": FULL | TWIST},
}


@pytest.mark.parametrize("level", LEVELS)
def test_a_step_shows_exactly_what_its_level_promises(wire: Any, level: str) -> None:
    seen = wire.ok("step", observations=level)
    assert set(seen) == TOP
    assert {prefix: set(state) for prefix, state in seen["per_articulation"].items()} == LEVELS[level]


@pytest.mark.parametrize("level", LEVELS)
def test_reset_and_forward_show_the_level_of_the_session(wire: Any, level: str) -> None:
    wire.hello(observations=level)
    for op in ("reset", "forward", "step"):
        seen = wire.ok(op)
        assert set(seen) - {"setpoints"} == TOP
        assert {prefix: set(state) for prefix, state in seen["per_articulation"].items()} == LEVELS[level]


def test_a_steps_level_is_for_that_step_only(wire: Any) -> None:
    wire.ok("step", observations="full")
    assert set(wire.ok("step")["per_articulation"]["arm"]) == STANDARD
    assert set(wire.ok("forward")["per_articulation"]["arm"]) == STANDARD


def test_levels_are_known_in_any_case(wire: Any) -> None:
    assert set(wire.ok("step", observations="Minimal")["per_articulation"]["arm"]) == MINIMAL


@pytest.mark.parametrize("level", ["everything", 5, ["full"]])
def test_an_unknown_level_is_refused(wire: Any, world: Any, level: Any) -> None:
    before = world()
    assert wire.refused("step", observations=level) == "bad_value"
    assert world() == before


def test_shapes_follow_the_joints(wire: Any) -> None:
    seen = wire.ok("step", observations="full")["per_articulation"]
    assert [len(seen["arm"][key]) for key in ("qpos", "qvel", "ctrl", "act")] == [2, 2, 2, 2]
    assert [len(seen["walker"][key]) for key in ("qpos", "qvel", "ctrl", "act")] == [13, 11, 2, 2]
    assert {name: len(values) for name, values in seen["arm"]["sensors"].items()} == {"angle": 1, "tip": 3}
    assert set(seen["walker"]["bodies"]) == {"trunk", "thigh", "shin", "head"}
    assert {len(pose["xquat"]) for pose in seen["walker"]["bodies"].values()} == {4}


def test_entities_show_poses_and_free_ones_their_joint(wire: Any) -> None:
    entities = wire.ok("step")["entities"]
    assert {name: set(state) for name, state in entities.items()} == {
        "crate": {"xpos", "xquat", "qpos", "qvel"},
        "goal": {"xpos", "xquat"},
        "slab": {"xpos", "xquat"},
    }
    assert entities["goal"]["xpos"] == [0, -2, 1]
    assert (len(entities["crate"]["qpos"]), len(entities["crate"]["qvel"])) == (7, 6)


def test_sim_time_is_time_split_in_seconds_and_nanoseconds(wire: Any) -> None:
    wire.ok("set_sim_options", options={"timestep": 0.3})
    seen = wire.ok("step", n_steps=7)
    assert seen["time"] == pytest.approx(2.1)
    assert seen["sim_time"] == {"sec": 2, "nsec": 100_000_000}


def test_wall_time_is_now(wire: Any) -> None:
    before = time.time_ns()
    clock = wire.ok("step")["wall_time"]
    assert before <= clock["sec"] * 10**9 + clock["nsec"] <= time.time_ns()
    assert 0 <= clock["nsec"] < 10**9


def test_twist_and_actions_are_what_set_twist_said(wire: Any) -> None:
    reply = wire.ok("set_twist", articulation="walker", linear=[0.4, 0.1, 9], angular=[9, 9, 0.5], actions=5)
    twist = {"linear": [0.4, 0.1, 0], "angular": [0, 0, 0.5]}
    assert {key: reply[key] for key in ("linear", "angular", "actions")} == {**twist, "actions": 5}
    walker = wire.ok("step")["per_articulation"]["walker"]
    assert (walker["twist"], walker["actions"]) == (twist, 5)
    assert wire.ok("reset")["per_articulation"]["walker"]["twist"] == twist, "a reset leaves it alone"


def test_a_twist_needs_a_robot_that_takes_one(wire: Any) -> None:
    assert wire.refused("set_twist", linear=[1]) == "missing_field"
    assert wire.refused("set_twist", articulation="crate", linear=[1]) == "unknown_articulation"
    assert wire.refused("set_twist", articulation="arm", linear=[1]) == "no_twist_controller"
    assert wire.refused("set_twist", articulation="walker", linear=[1, 2, 3, 4]) == "dim_mismatch"
    assert wire.refused("set_twist", articulation="walker", linear=[1], actions=-1) == "bad_value"
    assert wire.ok("step")["per_articulation"]["walker"]["twist"]["linear"] == [0, 0, 0]


def test_an_exploding_model_says_so_in_the_reply(wire: Any) -> None:
    wire.play("bomb")
    assert "warnings" not in wire.ok("step")
    seen = wire.ok("step", n_steps=5, per_articulation={"bomb": {"ctrl": [1e10]}})
    assert any("reset the simulation" in warning for warning in seen["warnings"])
    assert "warnings" not in wire.ok("step", per_articulation={"bomb": {"ctrl": [0]}})
