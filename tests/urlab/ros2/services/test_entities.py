"""What there is: names, states, kinds, sizes; and where it is put."""

import math
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.ros2.services import entities
from urlab.ros2.services.operating import OperatorClient

UNSUPPORTED, _, NOT_FOUND, _, FAILED = range(5)
PAUSED = 2


def test_entities_are_found_by_name_kind_tag_and_place(server: Any, graph: Any) -> None:
    def kind(number: int) -> Any:
        return graph.message("EntityCategory", category=number)

    graph.set_state(PAUSED)
    assert set(graph.entities()) == set(server.places)
    assert set(graph.entities(filter="^.o")) == {"rover", "goal"}
    assert graph.entities(categories=[kind(1)]) == ["rover"]
    assert set(graph.entities(categories=[kind(4), kind(5)])) == {"crate", "goal", "slab"}
    tags = graph.message("TagsFilter", tags=["URLab.ActorId=slab_0", "URLab.ActorId=goal_0"])
    assert set(graph.entities(tags=tags)) == {"slab", "goal"}
    assert graph.entities(tags=graph.message("TagsFilter", tags=tags.tags, filter_mode=1)) == []
    corners = [graph.vector("Vector3", 0.5, 0.5, -4.95), graph.vector("Vector3", 1.5, 1.5, -4.0)]
    assert graph.entities(bounds=graph.message("Bounds", type=1, points=corners)) == ["slab"]
    ball = [graph.vector("Vector3", 0.0, 3.0, 2.0), graph.vector("Vector3", 0.96, 0.0, 0.0)]
    assert graph.entities(bounds=graph.message("Bounds", type=3, points=ball)) == ["goal"]
    ball[1].x = 0.94
    assert graph.entities(bounds=graph.message("Bounds", type=3, points=ball)) == []


def test_a_filter_that_cannot_be_is_refused(graph: Any) -> None:
    hull = graph.message(
        "EntityFilters", bounds=graph.message("Bounds", type=2, points=[graph.vector("Vector3", 0, 0, 0)] * 3)
    )
    assert graph.refused("get_entities", filters=hull)[0] == UNSUPPORTED
    one = graph.message(
        "EntityFilters", bounds=graph.message("Bounds", type=1, points=[graph.vector("Vector3", 0, 0, 0)])
    )
    assert graph.refused("get_entities", filters=one)[0] == FAILED
    code, told = graph.refused("get_entities", filters=graph.message("EntityFilters", filter="("))
    assert (code, "regular expression" in told) == (FAILED, True)


def test_states_are_those_of_the_server_in_the_world(server: Any, every_graph: Any) -> None:
    every_graph.set_state(PAUSED)
    every_graph.ok(
        "set_entity_state",
        entity="rover",
        state=every_graph.new_state((1, 2, 3), (0, 0, 1, 1), (4, 5, 6), (0.1, 0.2, 0.3)),
    )
    every_graph.ok("step_simulation", steps=20)
    _, data = server.truth()
    told = every_graph.ok("get_entities_states")
    states = dict(zip(told.entities, told.states, strict=True))
    places = {"rover": data.joint("rover_root").qpos[:3], "crate": data.joint("crate_free").qpos[:3]}
    places |= {name: data.body(name).xpos for name in ("goal", "slab")}
    for name, place in places.items():
        state = states[name]
        assert state.header.frame_id == "world"
        assert state.header.stamp.sec * 10**9 + state.header.stamp.nanosec == round(data.time * 1e9)
        assert every_graph.numbers(state.pose.position) == pytest.approx(tuple(place))
    hull = data.joint("rover_root")
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, hull.qpos[3:])
    w, x, y, z = hull.qpos[3:]
    assert every_graph.numbers(states["rover"].pose.orientation) == pytest.approx((x, y, z, w))
    assert every_graph.numbers(states["rover"].twist.linear) == pytest.approx(tuple(hull.qvel[:3]))
    assert every_graph.numbers(states["rover"].twist.angular) == pytest.approx(
        tuple(rotation.reshape(3, 3) @ hull.qvel[3:])
    )
    assert every_graph.where("crate") == states["crate"]


def test_a_free_body_goes_where_it_is_put_and_as_fast(server: Any, graph: Any) -> None:
    graph.set_state(PAUSED)
    turn = (0.5, 0.5, 0.5, 0.5)
    graph.ok("set_entity_state", entity="crate", state=graph.new_state((1, 2, 3), turn, (0.5, 0, 0), (0, 0, 2)))
    _, data = server.truth()
    crate = data.joint("crate_free")
    assert crate.qpos.tolist() == pytest.approx([1, 2, 3, 0.5, 0.5, 0.5, 0.5])
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, crate.qpos[3:])
    assert rotation.reshape(3, 3) @ crate.qvel[3:] == pytest.approx([0, 0, 2])
    assert crate.qvel[:3].tolist() == [0.5, 0, 0]


def test_a_state_may_be_told_in_the_frame_of_another_entity(server: Any, graph: Any) -> None:
    graph.set_state(PAUSED)
    graph.ok("set_entity_state", entity="goal", state=graph.new_state((1, 0, 0), (0, 0, 1, 1)))
    graph.ok("set_entity_state", entity="crate", state=graph.new_state((1, 0, 0), linear=(1, 0, 0), frame="goal"))
    _, data = server.truth()
    crate = data.joint("crate_free")
    assert crate.qpos.tolist() == pytest.approx([1, 1, 0, math.sqrt(0.5), 0, 0, math.sqrt(0.5)])
    assert crate.qvel[:3].tolist() == pytest.approx([0, 1, 0])


@pytest.mark.parametrize(("set_pose", "set_twist"), [(True, False), (False, True), (False, False)])
def test_later_versions_say_which_part_of_a_state_counts(
    server: Any, graph: Any, set_pose: bool, set_twist: bool
) -> None:
    state = graph.new_state((1, 2, 3), (0, 0, 0, 1), linear=(4, 5, 6))
    asked = SimpleNamespace(entity="crate", state=state, set_pose=set_pose, set_twist=set_twist)
    with OperatorClient("tcp://127.0.0.1", server.port) as client:
        client.discover()
        client.runtime.set_paused(True)
        client.step(0)
        before = server.truth()[1].joint("crate_free")
        entities.set_entity_state(client, asked)
    after = server.truth()[1].joint("crate_free")
    assert after.qpos[:3].tolist() == ([1, 2, 3] if set_pose else before.qpos[:3].tolist())
    assert after.qvel[:3].tolist() == ([4, 5, 6] if set_twist else before.qvel[:3].tolist())


def test_a_mocap_body_and_a_static_one_go_where_they_are_put(server: Any, graph: Any) -> None:
    graph.set_state(PAUSED)
    graph.ok("step_simulation", steps=10)
    before = server.truth()[1]
    graph.ok("set_entity_state", entity="goal", state=graph.new_state((4, 5, 6), (1, 0, 0, 0)))
    graph.ok("set_entity_state", entity="slab", state=graph.new_state((0, 0, -9), (0, 0, 1, 1)))
    _, data = server.truth()
    assert data.body("goal").xpos.tolist() == [4, 5, 6]
    assert data.body("slab").xpos.tolist() == [0, 0, -9]
    assert data.body("slab").xquat.tolist() == pytest.approx([math.sqrt(0.5), 0, 0, math.sqrt(0.5)])
    assert (data.time, data.qpos.tolist()) == (before.time, before.qpos.tolist()), "all else stays as it was"


def test_a_bad_state_is_refused_and_changes_nothing(server: Any, graph: Any) -> None:
    graph.set_state(PAUSED)
    before = server.truth()[1].qpos.tolist()
    code, told = graph.refused("set_entity_state", entity="crate", state=graph.new_state((0, 0, 0), (0, 0, 0, 0)))
    assert (code, "no length" in told) == (101, True)
    assert graph.refused("set_entity_state", entity="crate", state=graph.new_state((math.nan, 0, 0)))[0] == 101
    assert graph.refused("set_entity_state", entity="crate", state=graph.new_state((0, 0, 0), frame="moon"))[0] == 101
    assert (
        graph.refused("set_entity_state", entity="slab", state=graph.new_state((0, 0, 0), linear=(1, 0, 0)))[0]
        == FAILED
    )
    code, told = graph.refused("set_entity_state", entity="ghost", state=graph.new_state((0, 0, 0)))
    assert code == NOT_FOUND
    assert "crate" in told
    assert server.truth()[1].qpos.tolist() == before


@pytest.mark.parametrize("service", ["get_entity_state", "get_entity_info", "get_entity_bounds", "delete_entity"])
def test_an_unknown_entity_is_told_with_those_that_there_are(graph: Any, service: str) -> None:
    for name in ("ghost", ""):
        code, told = graph.refused(service, entity=name)
        assert (code, "rover" in told) == (NOT_FOUND, True)


def test_an_entity_is_known_by_its_actor_id_too(graph: Any) -> None:
    graph.set_state(PAUSED)
    assert graph.where("crate_0").pose == graph.where("crate").pose


def test_info_tells_kind_and_tags(graph: Any) -> None:
    info = graph.ok("get_entity_info", entity="rover").info
    assert (info.category.category, info.tags) == (1, ["URLab.ActorId=rover_0"])
    assert "robot" in info.description
    assert graph.ok("get_entity_info", entity="goal").info.category.category == 4
    assert graph.ok("get_entity_info", entity="slab").info.category.category == 5


def test_bounds_are_a_box_along_the_axes_of_the_entity(graph: Any) -> None:
    graph.set_state(PAUSED)
    graph.ok("set_entity_state", entity="crate", state=graph.new_state((1, 2, 3), (0.1, 0.2, 0.3, 0.9)))
    bounds = graph.ok("get_entity_bounds", entity="crate").bounds
    upper, lower = (graph.numbers(one) for one in bounds.points)
    assert bounds.type == 1
    assert upper == pytest.approx((0.1, 0.2, 0.3))
    assert lower == pytest.approx((-0.1, -0.2, -0.3))
    upper = graph.numbers(graph.ok("get_entity_bounds", entity="rover").bounds.points[0])
    assert upper[2] == pytest.approx(0.1 + 0.03), "the mast belongs to it"
