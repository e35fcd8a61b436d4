"""A world built with ``urlab_client``, from nothing to a picture."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import urlab
from urlab_client import EditStep, LevelStatus, URLabAsset, URLabClient, URLabRPCError

ARM = """
<mujoco model="arm"><worldbody><body name="link"><joint name="turn"/><geom size=".1"/></body></worldbody>
  <actuator><motor name="motor" joint="turn"/></actuator></mujoco>"""
TIN = """
<mujoco model="tin"><compiler meshdir="assets"/><asset><mesh name="c" file="c.obj"/></asset>
  <worldbody><body><freejoint/><geom type="mesh" mesh="c"/></body></worldbody></mujoco>"""
CORNER = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4"


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("models") / "arm.xml"
    path.write_text(ARM)
    return str(path)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[URLabClient]:
    with urlab.launch("box", project=tmp_path, play=False) as client:
        yield client


def assets(arm: str) -> list[URLabAsset]:
    return [
        URLabAsset("left", arm, location=(0, 1, 0)),
        URLabAsset("right", arm, location=(0, -1, 0), rotation_euler=(0, 0, 180)),
    ]


def test_applying_a_scene_twice_gives_the_same_actors(client: URLabClient, arm: str) -> None:
    first = client.scene.apply_scene("lab", assets(arm))
    listed = client.outliner.list_actors()
    again = client.scene.apply_scene("lab", assets(arm))
    assert client.outliner.list_actors() == listed
    assert [one.actor_name for one in again.values()] == [one.actor_name for one in first.values()] == ["arm", "arm-2"]
    assert not any(one.was_existing for one in first.values())
    assert all(one.was_existing for one in again.values())
    assert again["right"].rotation_quat == pytest.approx((0, 0, 1, 0), abs=1e-12)


def test_a_scene_is_applied_again_after_a_restart(arm: str, tmp_path: Path) -> None:
    models = []
    for _ in range(2):
        with urlab.launch("box", project=tmp_path, play=False) as client:
            client.scene.apply_scene("lab", assets(arm))
            started = client.sim.start("lab")
            assert started.handshake_payload is not None
            models.append(started.handshake_payload["mjb"])
    assert models[0] == models[1]


def test_a_handle_leads_to_the_running_robot(client: URLabClient, arm: str) -> None:
    handles = client.scene.apply_scene("lab", assets(arm))
    assert handles["left"].runtime(client) is None
    client.sim.start()
    left, right = (handles[name].runtime(client) for name in ("left", "right"))
    assert left is client.articulations["arm"]
    assert right is client.articulations["arm-2"]


def test_a_world_is_built_changed_and_looked_at(client: URLabClient, arm: str, tmp_path: Path) -> None:
    client.scene.create_level("lab")
    blueprint = client.scene.import_xml(arm)
    assert (blueprint.short_name, blueprint.imported_now) == ("arm", True)
    one = client.scene.spawn_actor(blueprint, "one", location=(1, 0, 0), tags=["mine"])
    grid = client.scene.spawn_grid(blueprint, "cell", 3, 2, spacing=(2, 2, 0))
    lamp = client.scene.spawn_light("point", "lamp", location=(0, 0, 4))
    copy = client.scene.duplicate_actor(one, "two")
    client.scene.set_actor_transform(copy, location=(5, 5, 0))
    client.scene.destroy_actor(grid["cell_2_1"])
    assert (len(grid), lamp.kind) == (6, "point")
    found = client.outliner.find_actors(tag="mine")
    assert [actor.actor_id for actor in found] == ["one", "two"]
    assert found[1].location == (5, 5, 0)
    assert client.outliner.get_actor_bounds("one").extents == pytest.approx((0.1, 0.1, 0.1))
    assert {"arm", "panda"} <= {one.short_name for one in client.outliner.list_blueprints()}
    client.outliner.select_actor(lamp)
    tree = client.scene.actor_hierarchy("one")
    assert [child.name for child in tree.children] == ["link", "motor"]
    snapshot = client.scene.snapshot()
    assert (snapshot.in_pie, len(snapshot.actors)) == (False, 8)
    assert client.scene.ensure_manager() is False
    client.scene.save_level()
    client.sim.start("lab")
    assert len(client.articulations) == 7
    assert client.scene.spawn_actor(blueprint, "late").requires_pie_restart
    client.viewport.frame_actor("one")
    client.debug.draw_marker((1, 0, 0), (1, 0, 0))
    picture = client.viewport.screenshot(tmp_path / "lab.png", width=64, height=48)
    assert (tmp_path / "lab.png").read_bytes() == picture
    assert picture.startswith(b"\x89PNG")
    client.scene.create_level("other")
    assert client.scene.destroy_asset("/Game/Levels/lab") is True
    assert client.scene.destroy_asset("/Game/Levels/lab") is False


def test_what_the_server_refuses_is_an_error_with_its_code(client: URLabClient) -> None:
    with pytest.raises(URLabRPCError, match="there is no model 'pandda'") as refused:
        client.scene.spawn_actor("pandda", "arm")
    assert refused.value.code == "spawn_failed"
    with pytest.raises(URLabRPCError) as refused:
        client.scene.load_level("nowhere")
    assert refused.value.code == "load_level_failed"
    with pytest.raises(URLabRPCError) as refused:
        client.viewport.frame_actor("nobody")
    assert refused.value.code == "unknown_actor"


def test_mistakes_are_told_by_the_field_that_is_wrong(client: URLabClient) -> None:
    with pytest.raises(TypeError, match="tags is a list of words, not the text 'left'"):
        client.scene.spawn_actor("box", "a", tags="left")
    with pytest.raises(ValueError, match="scale takes 3 numbers, not 2"):
        client.scene.spawn_actor("box", "a", scale=2)  # type: ignore[arg-type]
    client.scene.spawn_actor("box", "a")
    with pytest.raises(URLabRPCError, match=r"no actor has the name 'a'; there are: box"):
        client.scene.destroy_actor("a", by_name=True)


def test_a_level_that_is_there_but_broken_is_told_as_such(client: URLabClient, tmp_path: Path) -> None:
    (tmp_path / "Levels").mkdir(exist_ok=True)
    (tmp_path / "Levels" / "broken.toml").write_text("version = 1\n")
    with pytest.raises(URLabRPCError, match="is missing") as refused:
        client.scene.apply_scene("broken", [])
    assert refused.value.code == "load_level_failed"
    assert (tmp_path / "Levels" / "broken.toml").read_text() == "version = 1\n"


OBJECT_FIRST = """<mujoco model="m"><worldbody>
  <body name="cup" pos="0 3 1"><freejoint name="cup"/><geom size=".1"/></body>
  <body name="base" pos="0 0 1">{free}<geom size=".1"/>
    <body name="arm"><joint name="j"/><geom size=".1" pos=".3 0 0"/></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("free", ["", "<freejoint name='root'/>"])
def test_a_free_object_written_before_the_robot_is_not_its_root(tmp_path: Path, free: str) -> None:
    path = tmp_path / "m.xml"
    path.write_text(OBJECT_FIRST.format(free=free))
    with urlab.launch(path, project=tmp_path / "p") as client:
        robot = client.articulations["m"]
        client.step()
        assert "m_cup" in client.entities
        assert ("m_base" in client.entities) is False
        assert robot.has_free_base is bool(free)
        assert robot.root_pos_w[1] == pytest.approx(0.0)
        assert len(robot.dof_qpos) == 8
        if free:
            client.runtime.set_qpos("m", [5.0, 6.0, 7.0, 1.0, 0.0, 0.0, 0.0], by_name=True)
            assert robot.root_pos_w.tolist() == [5.0, 6.0, 7.0]
            assert client.entities["m_cup"].root_pos_w[1] == pytest.approx(3.0)


def test_a_model_is_brought_along_shown_spawned_and_taken_back(client: URLabClient, tmp_path: Path) -> None:
    folder = tmp_path / "laptop" / "tin"
    (folder / "assets").mkdir(parents=True)
    (folder / "tin.xml").write_text(TIN)
    (folder / "assets" / "c.obj").write_text(CORNER)
    sent = client.scene.upload(folder)
    assert sent.models == [sent.path]
    blueprint = client.scene.import_xml(sent.path)
    assert client.outliner.blueprint_picture(blueprint, 64, 48).startswith(b"\x89PNG")
    client.scene.create_level("lab")
    client.scene.spawn_actor(blueprint, "tin")
    assert client.scene.undo() == EditStep("spawn tin", None, "spawn tin")
    assert client.outliner.list_actors() == []
    assert client.scene.redo() == EditStep("spawn tin", "spawn tin")
    assert client.scene.level_status() == LevelStatus("/Game/Levels/lab", True, "spawn tin")
    client.scene.save_level()
    client.sim.start("lab")
    assert list(client.entities) == ["tin"]
    with pytest.raises(URLabRPCError, match="there is nothing to undo in level 'lab'") as refused:
        client.scene.undo()
    assert refused.value.code == "undo_failed"
