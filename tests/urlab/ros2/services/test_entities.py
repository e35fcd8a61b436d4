"""Requests about entities: what there is, where it is put, what is spawned and deleted."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.ros2.services import entities
from urlab.ros2.services.messages import ServiceRefused
from urlab.ros2.services.simulation import OperatorClient, change_scene
from urlab_client import URLabClient

UNSUPPORTED, _, NOT_FOUND, _, FAILED = range(5)
STOPPED, _, PAUSED, _ = range(4)


def operating(server: Any) -> OperatorClient:
    """A client as the services have it."""
    return OperatorClient("tcp://127.0.0.1", server.port, lambda _paused: None, timeout_ms=4000)


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
    with operating(server) as client:
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


def test_what_is_spawned_is_there_where_it_was_wanted_and_all_else_goes_on(
    server: Any, every_graph: Any, project: Path, driver: URLabClient
) -> None:
    rover = driver.articulations["rover"]
    rover.ctrl_array[:] = 0.6
    driver.step(n_steps=40)
    _, before = server.truth()
    uri = f"file://{project / 'Levels' / 'crate.xml'}"
    told = every_graph.ok(
        "spawn_entity",
        **every_graph.spawn_fields(uri, "parcel", initial_pose=every_graph.stamped((7, 8, 9), (0, 0, 1, 1))),
    )
    assert told.entity_name == "parcel"
    model, after = server.truth()
    spawned = after.joint("crate-2_free")
    assert spawned.qpos.tolist() == pytest.approx([7, 8, 9, math.sqrt(0.5), 0, 0, math.sqrt(0.5)])
    assert after.time == before.time
    for name in ("rover_root", "rover_turn", "crate_free"):
        assert after.joint(name).qpos.tolist() == before.joint(name).qpos.tolist()
        assert after.joint(name).qvel.tolist() == before.joint(name).qvel.tolist()
    assert "parcel" in every_graph.entities()
    assert every_graph.numbers(every_graph.where("parcel").pose.position) == pytest.approx((7, 8, 9))
    assert server.play.manager.articulations["rover"].staged.active.tolist() == [0.6]

    after.ctrl[:] = 0.6
    mujoco.mj_step(model, after, nstep=10)
    reply = driver.step(n_steps=10)
    assert reply["time"] == pytest.approx(before.time + 0.02)
    assert reply["per_articulation"]["rover"]["qpos"] == pytest.approx(after.qpos[:8].tolist(), abs=1e-6)
    assert driver.articulations["rover"].root_pos_w == pytest.approx(after.body("rover_hull").xpos, abs=1e-2)


def test_what_is_spawned_goes_with_a_reset_and_stays_where_it_was_put(server: Any, graph: Any) -> None:
    graph.set_state(PAUSED)
    graph.ok("spawn_entity", **graph.spawn_fields(graph.uri_of("box"), "parcel", initial_pose=graph.stamped((1, 1, 9))))
    graph.ok("step_simulation", steps=30)
    graph.ok("reset_simulation", scope=3)
    assert graph.numbers(graph.where("parcel").pose.position) == pytest.approx((1, 1, 9))
    graph.ok("step_simulation", steps=5)
    graph.ok("reset_simulation", scope=4)
    assert set(graph.entities()) == set(server.places)
    assert server.truth()[1].time == pytest.approx(5 * 0.002)
    assert graph.state() == PAUSED


def test_stopping_takes_away_what_was_spawned(server: Any, graph: Any) -> None:
    graph.ok("spawn_entity", **graph.spawn_fields(graph.uri_of("box"), "parcel"))
    graph.set_state(STOPPED)
    assert set(graph.entities()) == set(server.places)
    graph.ok("spawn_entity", **graph.spawn_fields(graph.uri_of("box"), "parcel", initial_pose=graph.stamped((0, 0, 4))))
    assert graph.numbers(graph.where("parcel").pose.position) == (0, 0, 4)
    graph.set_state(PAUSED)
    assert "parcel" in graph.entities()


def test_a_fixed_robot_is_spawned_with_its_root_at_the_pose(server: Any, graph: Any, project: Path) -> None:
    graph.set_state(PAUSED)
    graph.ok(
        "spawn_entity",
        **graph.spawn_fields(str(project / "Levels" / "post.xml"), "stake", initial_pose=graph.stamped((5, 5, 2))),
    )
    _, data = server.truth()
    assert data.body("post_pole").xpos.tolist() == pytest.approx([5, 5, 2])
    assert data.body("post_pole").xquat.tolist() == pytest.approx([1, 0, 0, 0])
    assert graph.ok("get_entity_info", entity="stake").info.category.category == 1


def test_names_are_unique(graph: Any) -> None:
    graph.set_state(PAUSED)
    box = graph.uri_of("box")
    assert graph.refused("spawn_entity", **graph.spawn_fields(box, "rover"))[0] == 101
    assert graph.refused("spawn_entity", **graph.spawn_fields(box, "rover_0"))[0] == 101
    assert graph.refused("spawn_entity", **graph.spawn_fields(box))[0] == 102
    assert graph.refused("spawn_entity", **graph.spawn_fields(box, "two words"))[0] == 102
    assert graph.refused("spawn_entity", **graph.spawn_fields(box, "a" * 101))[0] == 102
    assert graph.ok("spawn_entity", **graph.spawn_fields(box, "rover", allow_renaming=True)).entity_name == "rover_2"
    assert graph.ok("spawn_entity", **graph.spawn_fields("box", allow_renaming=True)).entity_name == "box_2"


def test_what_cannot_be_spawned_is_told_with_what_can(graph: Any, tmp_path: Path, server: Any) -> None:
    graph.set_state(PAUSED)
    (tmp_path / "broken.xml").write_text("<mujoco><worldbody><body></mujoco>")
    before = server.truth()[1]

    def told(uri: str, **fields: Any) -> tuple[int, str]:
        return graph.refused("spawn_entity", **graph.spawn_fields(uri, "thing", **fields))

    assert told("")[0] == 104
    assert told("package://robots/arm.urdf")[0] == 103
    assert told("/models/scene.usd")[0] == 103
    assert told(str(tmp_path / "broken.xml"))[0] == 106
    code, text = told("unicorn")
    assert (code, "quadruped" in text) == (NOT_FOUND, True)
    assert told("box", entity_namespace="/left")[0] == UNSUPPORTED
    assert told("box", initial_pose=graph.stamped((0, 0, 0), frame="moon"))[0] == 109
    assert told("box", initial_pose=graph.stamped((0, 0, 0), (0, 0, 0, 0)))[0] == 109
    assert set(graph.entities()) == set(server.places)
    assert server.truth()[1].qpos.tolist() == before.qpos.tolist()


def test_an_entity_is_deleted_and_all_else_goes_on(server: Any, graph: Any, driver: URLabClient) -> None:
    driver.step(n_steps=25)
    before = server.truth()[1]
    graph.ok("delete_entity", entity="crate")
    assert set(graph.entities()) == set(server.places) - {"crate"}
    _, after = server.truth()
    assert after.time == before.time
    assert after.joint("rover_root").qpos.tolist() == before.joint("rover_root").qpos.tolist()
    assert driver.step()["time"] == pytest.approx(before.time + 0.002)
    assert graph.refused("delete_entity", entity="crate")[0] == NOT_FOUND


def test_a_pinned_mode_lets_the_scene_begin_anew_and_says_so(offer: Any, start: Any) -> None:
    server = start(step_mode="direct")
    graph = offer(server.port)
    graph.ok("step_simulation", steps=10)
    told = graph.ok("spawn_entity", **graph.spawn_fields("box", "parcel"))
    assert "pinned" in told.result.error_message
    assert server.truth()[1].time == 0
    assert "parcel" in graph.entities()


def test_a_scene_that_cannot_be_played_is_changed_back_and_goes_on(server: Any, project: Path) -> None:
    file = project / "Levels" / "slab.xml"
    slab = file.read_text()
    with operating(server) as client:
        client.discover()
        client.runtime.set_paused(True)
        client.step(20)
        before = server.truth()[1]
        with pytest.raises(ServiceRefused, match="cannot be played with that"):
            change_scene(client, lambda: file.write_text("<mujoco"), undo=lambda: file.write_text(slab))
        after = server.truth()[1]
        assert (after.time, after.qpos.tolist()) == (before.time, before.qpos.tolist())
        assert client.sim.status().paused is True


def test_an_operator_s_client_leaves_the_driver_s_setpoints_alone(server: Any, driver: URLabClient) -> None:
    staged = server.play.manager.articulations["rover"].staged
    with operating(server) as client:
        client.discover()
        driver.articulations["rover"].ctrl_array[:] = 0.6
        driver.step()
        client.step(3)
        assert staged.active.tolist() == [0.6]
        client.articulations["rover"].ctrl_array[:] = 0.2
        client.step(1)
        assert staged.active.tolist() == [0.2]
    assert driver.sim.status().mode == "direct", "an operator gives no mode back, as it asked for none"


def test_no_client_is_an_observer_and_an_operator() -> None:
    with pytest.raises(ValueError, match="not both"):
        URLabClient(observer=True, operator=True)
