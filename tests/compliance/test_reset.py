"""reset and forward."""

from typing import Any

import mujoco
import numpy as np
import pytest


@pytest.fixture
def moved(wire: Any) -> Any:
    """A client whose scene has moved."""
    lift = {"crate": {"xfrc_applied": {"crate": [0, 0, 50, 0, 0, 0]}}}
    wire.ok("step", n_steps=20, per_articulation={"arm": {"ctrl": [1, 1]}, **lift})
    return wire


def test_a_reset_is_mj_reset_data_and_mj_forward(moved: Any, plain: Any, engine: Any, full_state: Any) -> None:
    alone = plain(moved.hello()["mjb"])
    alone.forward()
    seen = moved.ok("reset")
    assert (seen["time"], seen["step"]) == (0, 0)
    assert np.array_equal(full_state(engine()), alone.state())
    assert np.array_equal(engine().data.xpos, alone.data.xpos)


def test_a_reset_clears_staged_controls(moved: Any) -> None:
    moved.ok("reset")
    assert moved.ok("step")["per_articulation"]["arm"]["ctrl"] == [0, 0]


@pytest.mark.parametrize("name", ["arm_up", "up"])
def test_a_keyframe_is_known_by_compiled_and_by_short_name(
    moved: Any, plain: Any, engine: Any, name: str, full_state: Any
) -> None:
    alone = plain(moved.hello()["mjb"])
    mujoco.mj_resetDataKeyframe(alone.model, alone.data, alone.model.key("arm_up").id)
    alone.forward()
    seen = moved.ok("reset", keyframe_name=name)
    assert np.array_equal(full_state(engine()), alone.state())
    assert seen["per_articulation"]["arm"]["qpos"] == [1, 0]
    assert seen["per_articulation"]["arm"]["ctrl"] == [2, 0]


def test_the_keyframes_controls_are_staged(moved: Any, server: Any) -> None:
    moved.ok("reset", keyframe_name="walker_crouch")
    assert server.play.manager.articulations["walker"].staged.active.tolist() == [0.5, -0.5]
    assert server.play.manager.articulations["arm"].staged.active.tolist() == [0, 0]
    moved.ok("reset", keyframe_name="arm_home")
    assert moved.ok("step", n_steps=3)["per_articulation"]["arm"]["ctrl"] == [0.5, 0.1]


def test_a_short_name_that_two_robots_have_puts_each_into_its_own(moved: Any, server: Any) -> None:
    alone = {name: moved.ok("reset", keyframe_name=f"{name}_home")["per_articulation"] for name in ("arm", "walker")}
    moved.ok("step", n_steps=5)
    seen = moved.ok("reset", keyframe_name="home")["per_articulation"]
    for name, blocks in alone.items():
        assert (seen[name]["qpos"], seen[name]["qvel"]) == (blocks[name]["qpos"], blocks[name]["qvel"])
        assert seen[name]["ctrl"] == blocks[name]["ctrl"]
        assert server.play.manager.articulations[name].staged.active.tolist() == blocks[name]["ctrl"]


def test_an_unknown_keyframe_keeps_the_state_and_lists_those_that_exist(moved: Any, world: Any) -> None:
    before = world()
    reply = moved.ask("reset", keyframe_name="handstand", seed=5)
    assert reply["code"] == "unknown_keyframe"
    assert all(word in reply["message"] for word in ("handstand", "arm_home", "walker_crouch"))
    assert world() == before


def test_an_empty_keyframe_name_is_none(moved: Any) -> None:
    assert moved.ok("reset", keyframe_name="")["per_articulation"]["arm"]["qpos"] == [0, 0]


def test_joints_are_overridden_by_short_or_compiled_name(moved: Any) -> None:
    values = {"arm": {"elbow": 0.3, "arm_shoulder": [0.1]}, "walker": {"hip": -0.2}}
    seen = moved.ok("reset", keyframe_name="arm_home", per_articulation_qpos=values)["per_articulation"]
    assert seen["arm"]["qpos"] == [0.1, 0.3]
    assert seen["walker"]["qpos"][7] == -0.2


def test_free_and_ball_joints_take_lists(moved: Any) -> None:
    values = {"walker": {"root": [1, 2, 3, 0, 1, 0, 0], "neck": [0, 0, 1, 0]}}
    qpos = moved.ok("reset", per_articulation_qpos=values)["per_articulation"]["walker"]["qpos"]
    assert qpos[:7] == [1, 2, 3, 0, 1, 0, 0]
    assert qpos[9:] == [0, 0, 1, 0]


def test_an_actuators_name_stands_for_its_joint(moved: Any) -> None:
    values = {"walker": {"knee_motor": 0.4, "hip": 0.2}, "arm": {"arm_lift": 0.5}}
    seen = moved.ok("reset", per_articulation_qpos=values)["per_articulation"]
    assert seen["walker"]["qpos"][7:9] == [0.2, 0.4]
    assert seen["arm"]["qpos"] == [0.5, 0]


def test_one_number_goes_to_the_first_slot_of_a_free_joint(moved: Any) -> None:
    seen = moved.ok("reset", per_articulation_qpos={"walker": {"root": 5}})["per_articulation"]["walker"]
    assert seen["qpos"][:3] == [5, 0, 1]


def test_derived_values_follow_the_overrides(moved: Any) -> None:
    moved.hello(observations="full")
    seen = moved.ok("reset", per_articulation_qpos={"walker": {"root": [1, 2, 3, 1, 0, 0, 0]}})
    assert seen["per_articulation"]["walker"]["bodies"]["trunk"]["xpos"] == [1, 2, 3]


WRONG = [
    ({"robot": {"elbow": 1}}, "unknown_articulation"),
    ({"crate": {"free": 1}}, "unknown_articulation"),
    ({"arm": {"knee": 1}}, "bad_value"),
    ({"walker": {"root": [1, 2]}}, "dim_mismatch"),
    ({"walker": {"neck": 0.5}}, "dim_mismatch"),
    ({"walker": {"neck": [0.5]}}, "dim_mismatch"),
    ({"arm": {"elbow": []}}, "dim_mismatch"),
    ({"arm": {"elbow": float("nan")}}, "bad_value"),
    ({"arm": {"elbow": "bent"}}, "bad_value"),
    ({"arm": [1, 2]}, "bad_value"),
]


@pytest.mark.parametrize(("values", "code"), WRONG, ids=str)
def test_a_wrong_override_is_refused_whole(moved: Any, world: Any, values: Any, code: str) -> None:
    before = world()
    both = {"walker": {"hip": 0.1}, **values}
    assert moved.refused("reset", keyframe_name="arm_home", per_articulation_qpos=both) == code
    assert world() == before


def test_a_robot_starts_where_its_level_says_and_a_reset_goes_back_there(wire: Any, server: Any) -> None:
    wire.play("posed")
    crouch = [1, 0, 0.6, 1, 0, 0, 0, 0.5, -0.5, 1, 0, 0, 0]
    assert wire.ok("forward")["per_articulation"]["walker"]["qpos"] == crouch
    wire.ok("step", n_steps=20, per_articulation={"walker": {"ctrl": [0, 0]}})
    for keyframe in (None, "arm_home"):
        assert wire.ok("reset", keyframe_name=keyframe)["per_articulation"]["walker"]["qpos"] == crouch
        assert server.play.manager.articulations["walker"].staged.active.tolist() == [0.5, -0.5]
    assert wire.ok("reset", keyframe_name="walker_home")["per_articulation"]["walker"]["qpos"][2] == 0.9


def test_the_seed_is_kept(moved: Any, server: Any) -> None:
    moved.ok("reset", seed=42)
    assert server.play.manager.seed == 42
    moved.ok("reset")
    assert server.play.manager.seed == 42
    assert moved.refused("reset", seed="dice") == "bad_value"


def test_forward_derives_without_moving_time(wire: Any, engine: Any) -> None:
    wire.hello(observations="full")
    wire.ok("step", n_steps=3)
    with engine().locked():
        engine().data.joint("walker_root").qpos[:3] = [4, 5, 6]
    seen = wire.ok("forward")
    assert (seen["time"], seen["step"]) == (pytest.approx(0.006), 3)
    assert seen["per_articulation"]["walker"]["bodies"]["trunk"]["xpos"] == [4, 5, 6]


def test_list_keyframes_gives_what_the_model_holds(wire: Any, plain: Any) -> None:
    model = plain(wire.hello()["mjb"]).model
    listed = wire.ok("list_keyframes")["keyframes"]
    assert [one["name"] for one in listed] == ["arm_home", "arm_up", "walker_home", "walker_crouch"]
    for index, one in enumerate(listed):
        assert one["time"] == model.key_time[index]
        assert one["mocap_pos"] == model.key_mpos[index].ravel().tolist()
        assert one["mocap_quat"] == model.key_mquat[index].ravel().tolist()
        for name in ("qpos", "qvel", "ctrl"):
            assert one[name] == getattr(model, f"key_{name}")[index].tolist()
