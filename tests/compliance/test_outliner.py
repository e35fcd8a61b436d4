"""Looking through a level over the wire."""

import math
from typing import Any

import pytest

from urlab.manager import ViewportSource


@pytest.fixture
def furnished(builder: Any) -> Any:
    builder.spawn("robot", location=[1, 0, 0], tags=["mine"])
    builder.spawn("box", builder.box_file, location=[0, 3, 0], tags=["mine", "heavy"])
    builder.wire.ok("spawn_light", kind="point", actor_id="lamp", location=[0, 0, 5])
    return builder


def found(builder: Any, **filters: Any) -> list[str]:
    return [row["actor_id"] for row in builder.wire.ok("find_actors", **filters)["actors"]]


def test_every_actor_is_listed(furnished: Any) -> None:
    assert furnished.actors()["robot"] == {
        "name": "hopper", "label": "robot", "class": "hopper_C", "actor_id": "robot", "is_articulation": True,
        "is_static_mesh_actor": False, "is_light": False, "has_quick_convert": False, "location": [1, 0, 0],
        "rotation_quat": [0, 0, 0, 1],
    }  # fmt: skip
    assert not furnished.actors()["box"]["is_articulation"]
    lamp = furnished.actors()["lamp"]
    assert (lamp["is_light"], lamp["class"], lamp["location"]) == (True, "PointLight", [0, 0, 5])


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, ["robot", "box", "lamp"]),
        ({"class_filter": "MjArticulation"}, ["robot"]),
        ({"class_filter": "AMjArticulation"}, ["robot"]),
        ({"class_filter": "mjarticulation"}, ["robot"]),
        ({"class_filter": "hopper_C"}, ["robot"]),
        ({"class_filter": "Light"}, ["lamp"]),
        ({"class_filter": "PointLight"}, ["lamp"]),
        ({"class_filter": "SpotLight"}, []),
        ({"class_filter": "AActor"}, ["robot", "box", "lamp"]),
        ({"tag": "mine"}, ["robot", "box"]),
        ({"tag": "URLab.ActorId=box"}, ["box"]),
        ({"tag": "min"}, []),
        ({"name_prefix": "hop"}, ["robot"]),
        ({"tag": "mine", "name_prefix": "cra"}, ["box"]),
        ({"tag": "heavy", "class_filter": "Light"}, []),
    ],
)
def test_actors_are_found_by_every_filter_at_once(furnished: Any, filters: dict[str, Any], ids: list[str]) -> None:
    assert found(furnished, **filters) == ids


def test_the_play_world_is_searched_when_that_is_asked(furnished: Any) -> None:
    assert furnished.wire.ok("find_actors", in_pie=True)["in_pie"] is False, "nothing plays"
    furnished.play()
    furnished.wire.ok("step", n_steps=20)
    furnished.spawn("late")
    assert "late" in found(furnished, in_pie=False)
    running = furnished.wire.ok("find_actors", in_pie=True, tag="heavy")
    assert running["in_pie"] is True
    assert running["actors"][0]["location"][2] < 0, "it falls"
    assert "late" not in found(furnished, in_pie=True)


def test_bounds_are_those_of_the_geometry(furnished: Any) -> None:
    box = furnished.wire.ok("get_actor_bounds", target="box")
    assert box["actor_name"] == "crate"
    assert box["min"] == pytest.approx([-0.1, 2.9, 0.0])
    assert box["max"] == pytest.approx([0.1, 3.1, 0.2])
    assert box["center"] == pytest.approx([0, 3, 0.1])
    assert box["extents"] == pytest.approx([0.1, 0.1, 0.1])
    furnished.wire.ok("set_actor_transform", target="box", rotation_euler=[0, 0, 45])
    turned = furnished.wire.ok("get_actor_bounds", target="box")
    assert turned["extents"] == pytest.approx([0.1 * math.sqrt(2), 0.1 * math.sqrt(2), 0.1])


def test_what_has_no_geometry_has_no_bounds(furnished: Any) -> None:
    assert furnished.wire.refused("get_actor_bounds", target="lamp") == "get_actor_bounds_failed"
    assert furnished.wire.refused("get_actor_bounds", target="gone") == "get_actor_bounds_failed"
    assert furnished.wire.refused("get_actor_bounds") == "missing_field"


def test_blueprints_are_listed_by_short_name(furnished: Any) -> None:
    blueprints = furnished.wire.ok("list_blueprints")["blueprints"]
    names = [one["blueprint_short_name"] for one in blueprints]
    assert names == sorted(names)
    assert {"crate", "hopper", "panda"} <= set(names)
    hopper = next(one for one in blueprints if one["blueprint_short_name"] == "hopper")
    assert hopper == {
        "blueprint_class_path": "/Game/MuJoCoImports/hopper.hopper_C", "blueprint_short_name": "hopper",
        "package_path": "/Game/MuJoCoImports/hopper", "parent_class": "MjArticulation",
    }  # fmt: skip


def test_an_actor_is_selected(furnished: Any) -> None:
    assert furnished.wire.ok("select_actor", target="robot")["actor_name"] == "hopper"
    assert furnished.server.world.selected == "hopper"
    assert furnished.wire.refused("select_actor", target="gone") == "select_failed"
    furnished.wire.ok("destroy_actor", target="robot")
    assert furnished.server.world.selected is None


def test_the_rows_say_which_actor_is_selected(furnished: Any) -> None:
    def selected(op: str, **fields: Any) -> list[str]:
        return [row["actor_id"] for row in furnished.wire.ok(op, **fields)["actors"] if row.get("selected")]

    def everywhere() -> list[list[str]]:
        return [selected("list_actors"), selected("find_actors", in_pie=True), selected("snapshot")]

    assert everywhere() == [[], [], []]
    furnished.wire.ok("select_actor", target="robot")
    assert everywhere() == [["robot"]] * 3
    furnished.play()
    assert everywhere() == [["robot"]] * 3
    furnished.wire.ok("select_actor", target="box")
    assert everywhere() == [["box"]] * 3


@pytest.mark.parametrize("playing", [False, True])
def test_a_view_knows_the_bodies_of_the_selected_actor(furnished: Any, playing: bool) -> None:
    if playing:
        furnished.play()
    source = ViewportSource(furnished.server.play)
    assert source().selected_bodies == ()
    furnished.wire.ok("select_actor", target="robot")
    shown = source()
    assert [shown.model.body(body).name for body in shown.selected_bodies] == ["hopper_foot", "hopper_toe"]


def test_only_static_meshes_are_converted(furnished: Any) -> None:
    assert furnished.wire.refused("add_quick_convert", target="robot") == "add_quick_convert_failed"
    assert furnished.wire.refused("add_quick_convert", target="gone") == "add_quick_convert_failed"
    assert furnished.wire.refused("remove_quick_convert", target="lamp") == "remove_quick_convert_failed"


def test_a_mesh_is_scenery_until_it_is_converted(builder: Any) -> None:
    builder.spawn("cube", builder.cube_file, location=[0, 0, 1])
    row = builder.actors()["cube"]
    assert (row["class"], row["is_static_mesh_actor"], row["has_quick_convert"]) == ("StaticMeshActor", True, False)
    assert builder.play()["entities"] == {}
    reply = builder.wire.ok("add_quick_convert", target="cube", friction=[0.5, 0.1, 0.2])
    assert reply == {
        "op": "add_quick_convert_ok", "actor_name": "cube", "static": False, "complex_mesh": False,
        "coacd_threshold": 0.05, "driven_by_unreal": False, "requires_pie_restart": True,
    }  # fmt: skip
    assert builder.actors()["cube"]["quick_convert"] == {
        "static": False, "complex_mesh": False, "coacd_threshold": 0.05, "driven_by_unreal": False,
        "friction": [0.5, 0.1, 0.2],
    }  # fmt: skip
    assert builder.play()["entities"]["cube"]["has_free_base"] is True
    assert builder.wire.ok("step", n_steps=50)["entities"]["cube"]["xpos"][2] < 1, "it falls"
    builder.wire.ok("save_level")
    builder.wire.ok("load_level", level_path="lab")
    assert builder.actors()["cube"]["has_quick_convert"]
    builder.wire.ok("remove_quick_convert", target="cube")
    assert builder.play()["entities"] == {}
    assert builder.wire.refused("remove_quick_convert", target="cube") == "remove_quick_convert_failed"


@pytest.mark.parametrize("how", ["static", "driven_by_unreal"])
def test_a_converted_mesh_may_stand_still_or_be_driven(builder: Any, how: str) -> None:
    builder.spawn("cube", builder.cube_file, location=[0, 0, 1])
    builder.wire.ok("add_quick_convert", target="cube", **{how: True})
    assert builder.play()["entities"]["cube"]["has_free_base"] is False
    assert builder.wire.ok("step", n_steps=50)["entities"]["cube"]["xpos"] == [0, 0, 1]
    driven = builder.wire.ask("set_mocap_pose", body="cube", pos=[0, 0, 3])
    assert driven.get("code") == ("not_mocap_body" if how == "static" else None)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"coacd_threshold": 0.0}, "bad_value"),
        ({"coacd_threshold": 2.0}, "bad_value"),
        ({"friction": [1, 1]}, "dim_mismatch"),
        ({"friction": [-1, 1, 1]}, "bad_value"),
        ({"static": True, "driven_by_unreal": True}, "add_quick_convert_failed"),
        ({"static": 3}, "bad_value"),
    ],
)
def test_a_conversion_that_cannot_be_changes_nothing(builder: Any, fields: dict[str, Any], code: str) -> None:
    builder.spawn("cube", builder.cube_file)
    assert builder.wire.refused("add_quick_convert", target="cube", **fields) == code
    assert not builder.actors()["cube"]["has_quick_convert"]


def test_a_heightfield_is_ground(builder: Any) -> None:
    heights = [[float(row >= 20)] * 41 for row in range(41)]
    reply = builder.wire.ok(
        "spawn_actor", blueprint="hill", actor_id="hill", heightfield={"size": [8, 8, 2], "heights": heights}
    )  # fmt: skip
    assert reply["blueprint_class_path"] == "/Game/MuJoCoImports/hill.hill_C"
    bounds = builder.wire.ok("get_actor_bounds", target="hill")
    assert bounds["max"] == pytest.approx([4, 4, 2])
    builder.spawn("low", builder.box_file, location=[0, -3.5, 1])
    builder.spawn("high", builder.box_file, location=[0, 3.5, 3])
    assert "hill" in builder.play()["entities"]
    seen = builder.wire.ok("step", n_steps=1000)["entities"]
    assert seen["crate"]["xpos"][2] == pytest.approx(0.1, abs=0.02)
    assert seen["crate-2"]["xpos"][2] == pytest.approx(2.1, abs=0.02)
    for bad in ({"size": [1, 1]}, {"size": [1, 1, 1]}, {"size": [1, 1, 1], "heights": [[1, 2], [3]]}):
        assert builder.wire.ask("spawn_actor", blueprint="x", heightfield=bad)["op"] == "error"


def test_other_heights_of_the_same_name_are_another_import(builder: Any) -> None:
    def spawn(actor_id: str, height: float) -> str:
        field = {"size": [4, 4, height], "heights": [[0.0, 1.0], [0.0, 1.0]]}
        return str(
            builder.wire.ok("spawn_actor", blueprint="hill", actor_id=actor_id, heightfield=field)[
                "blueprint_class_path"
            ]
        )

    first, again, other = spawn("a", 1.0), spawn("b", 1.0), spawn("c", 3.0)
    assert first == again == "/Game/MuJoCoImports/hill.hill_C"
    assert other == "/Game/MuJoCoImports/hill_2.hill_2_C"
    tops = [builder.wire.ok("get_actor_bounds", target=one)["max"][2] for one in ("a", "c")]
    assert tops == pytest.approx([1.0, 3.0])


def test_bounds_of_what_collides_leave_out_what_only_looks(builder: Any) -> None:
    shape = """<mujoco model="flag"><worldbody><geom type="box" size=".1 .1 .1"/>
      <geom type="box" size=".5 .5 .5" contype="0" conaffinity="0"/></worldbody></mujoco>"""
    builder.spawn("flag", builder.write("flag.xml", shape))
    assert builder.wire.ok("get_actor_bounds", target="flag")["extents"] == pytest.approx([0.5] * 3)
    assert builder.wire.ok("get_actor_bounds", target="flag", components_only=True)["extents"] == pytest.approx(
        [0.1] * 3
    )


def test_a_snapshot_of_a_large_grid_inspects_its_model_once(builder: Any) -> None:
    builder.wire.ok(
        "spawn_grid", blueprint=builder.import_file(builder.robot_file), base_actor_id="g", count_x=16, count_y=16
    )
    seen = builder.wire.ok("snapshot")["actors"]
    assert len(seen) == 256
    assert {tuple(one["urlab"]["joints"]) for one in seen} == {("up", "bend")}
    assert len(builder.server.world._inspected) == 1
