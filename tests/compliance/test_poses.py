"""Writing poses: set_qpos and mocap bodies; and the contacts that come of it."""

from typing import Any

import mujoco
import numpy as np
import pytest


@pytest.mark.parametrize(
    "target", [{"target": "arm_0"}, {"target": "arm"}, {"target": "arm", "target_by": "actor_name"}]
)
def test_set_qpos_finds_a_robot_by_id_prefix_or_name(wire: Any, engine: Any, target: Any) -> None:
    reply = wire.ok("set_qpos", qpos=[0.5, -0.5], **target)
    assert reply == {
        "op": "set_qpos_ok", "target": target["target"], "actor_name": "arm", "actor_id": "arm_0",
        "qpos": [0.5, -0.5], "free_base_shortcut": False,
    }  # fmt: skip
    assert engine().data.qpos[:2].tolist() == [0.5, -0.5]


def test_set_qpos_derives_but_moves_no_time(wire: Any, engine: Any) -> None:
    before = wire.ok("step", n_steps=3)
    wire.ok("set_qpos", target="walker_0", qpos=[7, 8, 9, 1, 0, 0, 0])
    assert engine().data.body("walker_trunk").xpos.tolist() == [7, 8, 9]
    assert engine().data.time == before["time"]
    assert engine().data.qvel[2:13].tolist() == before["per_articulation"]["walker"]["qvel"]


def test_seven_numbers_move_only_the_free_root(wire: Any, engine: Any) -> None:
    wire.ok("reset", keyframe_name="walker_crouch")
    reply = wire.ok("set_qpos", target="walker_0", qpos=[1, 2, 3, 1, 0, 0, 0])
    assert reply["free_base_shortcut"] is True
    assert engine().data.qpos[2:15].tolist() == [1, 2, 3, 1, 0, 0, 0, 0.5, -0.5, 1, 0, 0, 0]


def test_a_whole_vector_moves_everything(wire: Any, engine: Any) -> None:
    qpos = [1, 2, 3, 1, 0, 0, 0, 0.1, 0.2, 0, 1, 0, 0]
    assert wire.ok("set_qpos", target="walker_0", qpos=qpos)["free_base_shortcut"] is False
    assert engine().data.qpos[2:15].tolist() == qpos


@pytest.mark.parametrize("target", ["crate_0", "crate"])
def test_a_free_entity_can_be_set_too(wire: Any, target: str) -> None:
    reply = wire.ok("set_qpos", target=target, qpos=[3, 3, 3, 1, 0, 0, 0])
    assert (reply["actor_name"], reply["free_base_shortcut"]) == ("crate", False)
    assert wire.ok("forward")["entities"]["crate"]["xpos"] == [3, 3, 3]


WRONG = [
    ({"target": "arm_0", "qpos": [1]}, "dim_mismatch", "2"),
    ({"target": "walker_0", "qpos": [0] * 6}, "dim_mismatch", "7"),
    ({"target": "crate_0", "qpos": [0] * 3}, "dim_mismatch", "7"),
    ({"target": "arm_0", "qpos": [0, float("nan")]}, "bad_value", "finite"),
    ({"target": "arm_0", "qpos": "home"}, "bad_value", "qpos"),
    ({"target": "goal_0", "qpos": [0] * 7}, "no_joints", "goal"),
    ({"target": "slab", "qpos": []}, "no_joints", "slab"),
    ({"target": "nobody", "qpos": [0]}, "unknown_articulation", "walker_0"),
    ({"target": "", "qpos": [0]}, "missing_field", "target"),
    ({"target": "arm_0", "target_by": "actor_name", "qpos": [0, 0]}, "unknown_articulation", "arm"),
    ({"target": "arm_0", "target_by": "colour", "qpos": [0, 0]}, "bad_value", "actor_id"),
]


@pytest.mark.parametrize(("asked", "code", "told"), WRONG, ids=lambda value: str(value)[:50])
def test_a_wrong_qpos_is_refused(wire: Any, world: Any, asked: Any, code: str, told: str) -> None:
    before = world()
    reply = wire.ask("set_qpos", **asked)
    assert reply["code"] == code
    assert told in reply["message"]
    assert world() == before


def test_a_mocap_body_goes_where_it_is_put(wire: Any, plain: Any) -> None:
    reply = wire.ok("set_mocap_pose", body="goal", pos=[1, 2, 3], quat=[0, 1, 0, 0])
    assert reply == {"op": "set_mocap_pose_ok", "body": "goal", "pos": [1, 2, 3], "quat": [0, 1, 0, 0]}
    assert wire.ok("read_mocap_pose", body="goal")["pos"] == [1, 2, 3]
    assert wire.ok("step")["entities"]["goal"] == {"xpos": [1, 2, 3], "xquat": [0, 1, 0, 0]}


def test_half_a_pose_leaves_the_other_half(wire: Any) -> None:
    wire.ok("set_mocap_pose", body="goal", quat=[0, 1, 0, 0])
    assert wire.ok("set_mocap_pose", body="goal", pos=[1, 2, 3])["quat"] == [0, 1, 0, 0]
    assert wire.ok("set_mocap_pose", body="goal", quat=[1, 0, 0, 0])["pos"] == [1, 2, 3]


MOCAP = [
    ({"body": "ghost", "pos": [0, 0, 0]}, "unknown_body", "goal"),
    ({"body": "crate", "pos": [0, 0, 0]}, "not_mocap_body", "goal"),
    ({"body": "", "pos": [0, 0, 0]}, "missing_field", "body"),
    ({"body": "goal"}, "missing_field", "pos"),
    ({"body": "goal", "pos": [0, 0]}, "dim_mismatch", "3"),
    ({"body": "goal", "pos": [0, 0, 0], "quat": [1, 0, 0]}, "dim_mismatch", "4"),
    ({"body": "goal", "pos": [0, 0, float("inf")]}, "bad_value", "finite"),
    ({"body": "goal", "pos": [1, 1, 1], "quat": [0, 0, 0, 0]}, "bad_value", "zero"),
]


@pytest.mark.parametrize(("asked", "code", "told"), MOCAP, ids=lambda value: str(value)[:50])
def test_a_wrong_mocap_pose_is_refused(wire: Any, world: Any, asked: Any, code: str, told: str) -> None:
    before = world()
    reply = wire.ask("set_mocap_pose", **asked)
    assert reply["code"] == code
    assert told in reply["message"]
    assert world() == before


def test_reading_a_pose_needs_a_mocap_body(wire: Any) -> None:
    assert wire.refused("read_mocap_pose", body="nobody") == "unknown_body"
    assert wire.refused("read_mocap_pose", body="arm_base") == "not_mocap_body"


@pytest.fixture
def resting(wire: Any) -> Any:
    """The crate lies on the slab, and the walker falls far away."""
    wire.ok("set_qpos", target="walker", qpos=[0, 0, 50, 1, 0, 0, 0])
    wire.ok("step", n_steps=200)
    return wire


def test_contacts_are_those_of_mujoco(resting: Any, engine: Any) -> None:
    reply = resting.ok("get_contacts")
    data, force = engine().data, np.zeros(6)
    assert reply["n_contacts"] == len(reply["contacts"]) == data.ncon == 4
    assert reply["truncated"] is False
    for index, one in enumerate(reply["contacts"]):
        mujoco.mj_contactForce(engine().model, data, index, force)
        assert one["force"] == force.tolist()
        assert one["pos"] == data.contact[index].pos.tolist()
        assert one["normal"] == data.contact[index].frame[:3].tolist()
        assert one["dist"] == data.contact[index].dist < 0
        assert {one["geom1"], one["geom2"]} == {"crate_side", "slab_top"}
        assert {one["body1"], one["body2"]} == {"crate", "slab"}
    assert sum(one["force"][0] for one in reply["contacts"]) == pytest.approx(9.81, rel=0.01)


def test_contacts_are_capped_and_the_cap_is_told(resting: Any) -> None:
    reply = resting.ok("get_contacts", max_contacts=3)
    assert (reply["n_contacts"], reply["truncated"]) == (3, True)
    reply = resting.ok("get_contacts", max_contacts=4)
    assert (reply["n_contacts"], reply["truncated"]) == (4, False)
    assert resting.ok("get_contacts", max_contacts=0)["n_contacts"] == 4
    assert resting.ok("get_contacts", max_contacts=-5)["n_contacts"] == 4


def test_contact_filters_are_exact_and_all_must_match(resting: Any) -> None:
    first = resting.ok("get_contacts")["contacts"][0]
    names = {key: first[key] for key in ("body1", "body2", "geom1", "geom2")}
    assert resting.ok("get_contacts", filter=names)["n_contacts"] == 4
    assert resting.ok("get_contacts", filter={"body1": names["body1"], "geom2": ""})["n_contacts"] == 4
    assert resting.ok("get_contacts", filter={**names, "geom2": names["geom1"]})["n_contacts"] == 0
    assert resting.refused("get_contacts", filter={"body1": 5}) == "bad_value"


def test_contact_filters_take_short_names(resting: Any) -> None:
    full = {"geom1": "crate_side", "geom2": "slab_top"}
    short = {"geom1": "side", "geom2": "top"}
    assert resting.ok("get_contacts", filter=short) == resting.ok("get_contacts", filter=full)
    assert resting.ok("get_contacts", filter=short)["n_contacts"] == 4


@pytest.mark.parametrize(
    ("wanted", "code", "words"),
    [
        ({"body1": "slub"}, "unknown_body", ("'slub'", "did you mean 'slab'", "arm_base", "crate")),
        ({"geom2": "crate_sid"}, "unknown_body", ("crate_sid", "did you mean 'crate_side'")),
        ({"bodyA": "slab"}, "bad_value", ("bodyA", "body1, body2, geom1, geom2")),
    ],
)
def test_a_contact_filter_that_means_nothing_is_refused(resting: Any, wanted: Any, code: str, words: Any) -> None:
    reply = resting.ask("get_contacts", filter=wanted)
    assert (reply["op"], reply["code"]) == ("error", code)
    assert all(word in reply["message"] for word in words), reply["message"]
