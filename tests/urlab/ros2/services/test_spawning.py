"""What is brought into the scene and taken away, while all else goes on."""

import math
from pathlib import Path
from typing import Any

import mujoco
import pytest

from urlab.ros2.services.operating import OperatorClient
from urlab.ros2.services.restarting import change_scene
from urlab.ros2.services.results import Refused
from urlab_client import URLabClient

UNSUPPORTED, _, NOT_FOUND, _, FAILED = range(5)
STOPPED, _, PAUSED, _ = range(4)


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
    with OperatorClient("tcp://127.0.0.1", server.port) as client:
        client.discover()
        client.runtime.set_paused(True)
        client.step(20)
        before = server.truth()[1]
        with pytest.raises(Refused, match="cannot be played with that"):
            change_scene(client, lambda: file.write_text("<mujoco"), undo=lambda: file.write_text(slab))
        after = server.truth()[1]
        assert (after.time, after.qpos.tolist()) == (before.time, before.qpos.tolist())
        assert client.sim.status().paused is True


def test_an_operator_s_client_leaves_the_driver_s_setpoints_alone(server: Any, driver: URLabClient) -> None:
    staged = server.play.manager.articulations["rover"].staged
    with OperatorClient("tcp://127.0.0.1", server.port) as client:
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
