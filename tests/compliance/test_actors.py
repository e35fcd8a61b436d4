"""Actors over the wire: imported, spawned, moved, copied, destroyed."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HALF = math.sqrt(0.5)


def test_an_import_can_be_spawned_and_simulated(builder: Any) -> None:
    path = builder.own(builder.robot_file)
    imported = builder.wire.ok("import_xml", path=path)
    assert imported == {
        "op": "import_xml_ok",
        "blueprint_class_path": "/Game/MuJoCoImports/own_hopper.own_hopper_C",
        "blueprint_short_name": "own_hopper",
        "imported_now": True,
    }
    assert builder.wire.ok("import_xml", path=path)["imported_now"] is False
    spawned = builder.wire.ok(
        "spawn_actor", blueprint=imported["blueprint_class_path"], actor_id="one", location=[1, 2, 3],
        rotation_quat=[0, 0, HALF, HALF],
    )  # fmt: skip
    assert spawned == {
        "op": "spawn_actor_ok",
        "actor_id": "one",
        "actor_name": "hopper",
        "actor_path": "/Game/Levels/lab.lab:PersistentLevel.hopper",
        "blueprint_class_path": "/Game/MuJoCoImports/own_hopper.own_hopper_C",
        "location": [1, 2, 3],
        "rotation_quat": pytest.approx([0, 0, HALF, HALF]),
        "was_existing": False,
        "requires_pie_restart": False,
    }
    robots = builder.play()["articulations"]
    assert [(one["prefix"], one["actor_id"]) for one in robots] == [("hopper", "one")]
    seen = builder.wire.ok("step", observations="full")["per_articulation"]["hopper"]
    assert seen["bodies"]["foot"]["xpos"] == pytest.approx([1, 2, 3.5], abs=1e-3)
    assert seen["bodies"]["toe"]["xpos"] == pytest.approx([1, 2.2, 3.5], abs=1e-3)


def test_a_broken_model_is_refused_in_mujocos_own_words(builder: Any) -> None:
    path = builder.write("bad.xml", "<mujoco>\n<worldbody>\n<body><geom type='bax'/></body></worldbody></mujoco>")
    reply = builder.wire.ask("import_xml", path=path)
    assert reply["code"] == "import_failed"
    assert path in reply["message"]
    assert "invalid keyword: 'bax'" in reply["message"]
    assert "line 3" in reply["message"]
    assert builder.wire.refused("import_xml", path=builder.write("worse.xml", "<mujoco")) == "import_failed"
    assert builder.wire.refused("import_xml", path=str(builder.folder / "gone.xml")) == "import_failed"
    assert builder.wire.refused("import_xml", path="hopper.xml") == "import_failed"
    assert builder.wire.refused("import_xml", path="/etc/passwd") == "import_failed"
    assert builder.wire.refused("import_xml") == "missing_field"


def test_spawning_the_same_id_again_moves_the_actor(builder: Any) -> None:
    first = builder.spawn("one", location=[1, 0, 0])
    again = builder.spawn("one", location=[2, 0, 0], scale=[2, 2, 2])
    assert again["was_existing"] is True
    assert again["actor_name"] == first["actor_name"]
    assert builder.actors()["one"]["location"] == [2, 0, 0]
    assert len(builder.actors()) == 1


def test_an_id_belongs_to_one_class(builder: Any) -> None:
    builder.spawn("one")
    box = builder.import_file(builder.box_file)
    assert builder.wire.refused("spawn_actor", blueprint=box, actor_id="one") == "spawn_failed"
    builder.wire.ok("spawn_light", actor_id="lamp")
    assert builder.wire.refused("spawn_actor", blueprint=box, actor_id="lamp") == "spawn_failed"
    assert builder.wire.refused("spawn_light", actor_id="one") == "spawn_failed"
    assert sorted(builder.actors()) == ["lamp", "one"]


def test_without_an_id_every_spawn_is_another_actor(builder: Any) -> None:
    names = [builder.spawn("")["actor_name"] for _ in range(3)]
    assert names == ["hopper", "hopper-2", "hopper-3"]


@pytest.mark.parametrize("blueprint", ["box", "/Game/URLab/box", "/Game/URLab/box.box_C"])
def test_shipped_models_need_no_import(builder: Any, blueprint: str) -> None:
    assert builder.wire.ok("spawn_actor", blueprint=blueprint)["blueprint_class_path"] == "/Game/URLab/box.box_C"


def test_a_file_can_be_spawned_at_once(builder: Any) -> None:
    reply = builder.wire.ok("spawn_actor", blueprint=builder.box_file, actor_id="box")
    assert reply["blueprint_class_path"] == "/Game/MuJoCoImports/crate.crate_C"


@pytest.mark.parametrize("blueprint", ["nothing", "/Game/MuJoCoImports/nothing.nothing_C", "", "/Game/Levels/lab"])
def test_what_does_not_exist_cannot_be_spawned(builder: Any, blueprint: str) -> None:
    assert builder.wire.refused("spawn_actor", blueprint=blueprint) in ("spawn_failed", "missing_field")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"location": [1, 2]}, "dim_mismatch"),
        ({"location": [1, 2, float("nan")]}, "bad_value"),
        ({"rotation_quat": [0, 0, 0, 0]}, "bad_value"),
        ({"rotation_quat": [0, 0, 1]}, "dim_mismatch"),
        ({"rotation_euler": [0, float("inf"), 0]}, "bad_value"),
        ({"scale": [1, 0, 1]}, "bad_value"),
        ({"scale": [1, 2, 1]}, "spawn_failed"),
        ({"keyframe": "lowered"}, "spawn_failed"),
        ({"config": {"twisted": True}}, "spawn_failed"),
        ({"location": "here"}, "bad_value"),
    ],
)
def test_a_spawn_that_cannot_be_leaves_the_level_alone(builder: Any, fields: dict[str, Any], code: str) -> None:
    robot = builder.import_file(builder.robot_file)
    assert builder.wire.refused("spawn_actor", blueprint=robot, actor_id="one", **fields) == code
    assert builder.actors() == {}


def test_what_an_actor_has_of_its_own_is_simulated_and_saved(builder: Any) -> None:
    builder.spawn("one", keyframe="raised", config={"controller": {"kind": "pd"}, "twist": False})
    builder.wire.ok("save_level")
    builder.wire.ok("load_level", level_path="lab")
    robot = builder.play()["articulations"][0]
    assert robot["controller"]["kind"] == "pd"
    assert builder.wire.refused("set_twist", articulation="hopper") == "no_twist_controller"
    assert builder.wire.ok("forward")["per_articulation"]["hopper"]["qpos"] == [1, 0]


def test_a_robot_is_scaled_uniformly(builder: Any) -> None:
    builder.spawn("one", scale=[2, 2, 2])
    builder.play()
    bodies = builder.wire.ok("step", observations="full")["per_articulation"]["hopper"]["bodies"]
    assert bodies["toe"]["xpos"] == pytest.approx([0.4, 0, 1], abs=1e-3)


def test_a_grid_has_its_cells_where_they_belong(builder: Any) -> None:
    reply = builder.wire.ok(
        "spawn_grid", blueprint=builder.import_file(builder.box_file), base_actor_id="g", count_x=3, count_y=2,
        spacing=[2, 5, 9], origin=[10, 20, 30],
    )  # fmt: skip
    assert (reply["count"], reply["requires_pie_restart"]) == (6, False)
    cells = {one["actor_id"]: one["location"] for one in reply["actors"]}
    assert cells == {f"g_{i}_{j}": [10 + 2 * i, 20 + 5 * j, 30] for j in range(2) for i in range(3)}
    assert list(cells)[:2] == ["g_0_0", "g_1_0"]
    again = builder.wire.ok(
        "spawn_grid", blueprint=reply["blueprint_class_path"], base_actor_id="g", count_x=3, count_y=2
    )  # fmt: skip
    assert all(one["was_existing"] for one in again["actors"])
    assert len(builder.actors()) == 6
    assert len(builder.play()["entities"]) == 6


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ((0, 1), "invalid_count"),
        ((3, -1), "invalid_count"),
        ((33, 32), "too_many_cells"),
        ((10**9, 10**9), "too_many_cells"),
    ],
)
def test_grids_have_limits(builder: Any, counts: tuple[int, int], code: str) -> None:
    fields = {"blueprint": "box", "base_actor_id": "g", "count_x": counts[0], "count_y": counts[1]}
    assert builder.wire.refused("spawn_grid", **fields) == code
    assert builder.wire.refused("spawn_grid", blueprint="box", base_actor_id="g", count_x=2) == "missing_field"
    assert builder.actors() == {}


def test_a_grid_that_fails_says_where_and_keeps_what_came_before(builder: Any) -> None:
    builder.wire.ok("spawn_light", actor_id="g_1_0")
    reply = builder.wire.ask("spawn_grid", blueprint="box", base_actor_id="g", count_x=2, count_y=2)
    assert reply["code"] == "spawn_failed"
    assert "cell (1,0)" in reply["message"]
    assert sorted(builder.actors()) == ["g_0_0", "g_1_0"]


@pytest.mark.parametrize(
    ("kind", "number", "cutoff"), [("directional", 1, 45), ("point", 0, 180), ("spot", 0, 45), ("SPOT", 0, 45)]
)
def test_lights_are_real_lights(builder: Any, plain: Any, kind: str, number: int, cutoff: float) -> None:
    reply = builder.wire.ok(
        "spawn_light", kind=kind, actor_id="lamp", location=[1, 2, 3], rotation_euler=[0, 90, 0], intensity=2500,
        color=[1, 0.5, 0],
    )  # fmt: skip
    assert reply["kind"] == kind.lower()
    assert reply["intensity"] == 2500
    assert reply["color"] == [1, 0.5, 0]
    assert reply["location"] == [1, 2, 3]
    assert reply["rotation_euler"] == [0, 90, 0]
    model = plain(builder.play()["mjb"]).model
    assert model.nlight == 1
    assert model.light_type[0] == number
    assert model.light_cutoff[0] == cutoff
    assert model.light_pos[0] == pytest.approx([1, 2, 3])
    assert model.light_dir[0] == pytest.approx([0, 0, -1], abs=1e-6), "a quarter turn about y points +x down"
    assert model.light_diffuse[0] == pytest.approx([0.35, 0.175, 0])


def test_a_light_without_words_is_a_white_sun(builder: Any) -> None:
    reply = builder.wire.ok("spawn_light")
    assert (reply["kind"], reply["intensity"], reply["color"]) == ("directional", 5000, [1, 1, 1])
    assert builder.wire.refused("spawn_light", kind="laser") == "bad_value"
    assert builder.wire.refused("spawn_light", color=[2, 0, 0]) == "bad_value"
    assert builder.wire.refused("spawn_light", intensity=-1.0) == "bad_value"


def test_actors_are_destroyed_by_id_or_by_name(builder: Any) -> None:
    builder.spawn("one")
    builder.spawn("two")
    builder.wire.ok("spawn_light", actor_id="lamp")
    assert builder.wire.ok("destroy_actor", target="one") == {"op": "destroy_actor_ok", "requires_pie_restart": False}
    assert builder.wire.refused("destroy_actor", target="two", target_by="actor_name") == "destroy_failed"
    builder.wire.ok("destroy_actor", target="hopper-2", target_by="actor_name")
    builder.wire.ok("destroy_actor", target="lamp")
    assert builder.actors() == {}
    assert builder.wire.refused("destroy_actor", target="one") == "destroy_failed"
    assert builder.wire.refused("destroy_actor", target="one", target_by="smell") == "bad_value"


def test_actors_are_moved_a_part_of_the_pose_at_a_time(builder: Any) -> None:
    builder.spawn("one", location=[1, 1, 1], rotation_euler=[0, 0, 90])
    reply = builder.wire.ok("set_actor_transform", target="one", location=[4, 5, 6])
    assert (reply["target"], reply["actor_name"]) == ("one", "hopper")
    assert builder.actors()["one"]["location"] == [4, 5, 6]
    assert builder.actors()["one"]["rotation_quat"] == pytest.approx([0, 0, HALF, HALF])
    builder.wire.ok("set_actor_transform", target="one", rotation_quat=[0, 0, 0, 2])
    assert builder.actors()["one"]["rotation_quat"] == [0, 0, 0, 1]
    assert builder.wire.refused("set_actor_transform", target="two", location=[0, 0, 0]) == "set_actor_transform_failed"
    assert builder.wire.refused("set_actor_transform", target="one", location=[0]) == "dim_mismatch"


def test_a_copy_is_all_that_its_original_is(builder: Any) -> None:
    builder.spawn("one", location=[1, 0, 0], rotation_euler=[0, 0, 90], scale=[2, 2, 2], tags=["big"])
    reply = builder.wire.ok("duplicate_actor", target="one", new_actor_id="two")
    assert (reply["actor_id"], reply["actor_name"]) == ("two", "hopper-2")
    assert reply["location"] == [2, 0, 0], "one metre along +x of the world"
    assert reply["blueprint_class_path"] == "/Game/MuJoCoImports/hopper.hopper_C"
    builder.wire.ok("duplicate_actor", target="one", new_actor_id="three", location=[7, 8, 9])
    sizes = {id_: builder.wire.ok("get_actor_bounds", target=id_)["extents"] for id_ in ("one", "two", "three")}
    assert sizes["two"] == pytest.approx(sizes["one"])
    assert sizes["three"] == pytest.approx(sizes["one"])
    assert builder.wire.refused("duplicate_actor", target="one", new_actor_id="two") == "duplicate_failed"
    assert builder.wire.refused("duplicate_actor", target="gone", new_actor_id="four") == "duplicate_failed"
    assert len(builder.wire.ok("find_actors", tag="big")["actors"]) == 3


def test_edits_while_playing_are_for_the_next_play(builder: Any) -> None:
    builder.spawn("one")
    builder.play()
    reply = builder.spawn("two", location=[3, 0, 0])
    assert reply["requires_pie_restart"] is True
    for op, fields in (
        ("set_actor_transform", {"target": "one", "location": [9, 0, 0]}),
        ("spawn_light", {}),
        ("destroy_actor", {"target": "one"}),
    ):
        assert builder.wire.ok(op, **fields)["requires_pie_restart"] is True
    assert list(builder.wire.ok("step")["per_articulation"]) == ["hopper"]
    assert builder.wire.ok("begin_pie")["state"] == "ready", "a running play is left alone"
    assert [one["actor_id"] for one in builder.play()["articulations"]] == ["two"]


def test_the_bodies_of_an_actor_are_a_tree(builder: Any) -> None:
    builder.spawn("one", location=[1, 0, 0])
    root = builder.wire.ok("actor_hierarchy", target="one")["root"]
    assert (root["name"], root["class"], root["location"]) == ("hopper", "hopper_C", [1, 0, 0])
    foot = root["children"][0]
    assert (foot["name"], foot["class"], foot["location"]) == ("foot", "MjBody", pytest.approx([1, 0, 0.5]))
    toe = foot["children"][0]
    assert (toe["name"], toe["class"], toe["location"]) == ("toe", "MjBody", pytest.approx([1.2, 0, 0.5]))
    assert builder.wire.refused("actor_hierarchy", target="two") == "actor_hierarchy_failed"


EVERYTHING = """
<mujoco model="all"><worldbody><geom name="floor" type="plane" size="1 1 1"/><site name="mark" pos="0 0 2"/>
  <body name="base" pos="0 0 1" euler="0 0 90"><freejoint name="root"/><geom name="hull" size=".1" pos="1 0 0"/>
    <body name="head" pos="0 0 1"><joint name="nod" pos="0 1 0"/><geom name="skull" size=".1"/>
      <site name="nose" pos="2 0 0"/><camera name="eye" pos="0 0 3"/></body></body></worldbody>
  <actuator><motor name="neck" joint="nod"/></actuator><sensor><gyro name="ear" site="nose"/></sensor></mujoco>"""


@pytest.mark.parametrize("playing", [False, True])
def test_a_tree_holds_every_element_of_the_model(builder: Any, playing: bool) -> None:
    def listed(node: Any) -> list[Any]:
        place = [round(number, 6) + 0.0 for number in node["location"]]
        return [(node["name"], node["class"], place), *(row for child in node["children"] for row in listed(child))]

    builder.spawn("one", builder.write("all.xml", EVERYTHING), location=[10, 0, 0])
    if playing:
        builder.play()
    assert listed(builder.wire.ok("actor_hierarchy", target="one")["root"]) == [
        ("all", "all_C", [10, 0, 0]),
        ("base", "MjBody", [10, 0, 1]),
        ("head", "MjBody", [10, 0, 2]),
        ("nod", "MjJoint", [9, 0, 2]),
        ("skull", "MjGeom", [10, 0, 2]),
        ("nose", "MjSite", [10, 2, 2]),
        ("eye", "MjCamera", [10, 0, 5]),
        ("root", "MjFreeJoint", [10, 0, 1]),
        ("hull", "MjGeom", [10, 1, 1]),
        ("floor", "MjGeom", [10, 0, 0]),
        ("mark", "MjSite", [10, 0, 2]),
        ("neck", "MjActuator", [10, 0, 0]),
        ("ear", "MjSensor", [10, 0, 0]),
    ]


def test_the_tree_follows_the_running_simulation(builder: Any) -> None:
    builder.spawn("one")
    builder.spawn("box", builder.box_file, location=[5, 0, 10])
    builder.play()
    fallen = builder.wire.ok("step", n_steps=100, observations="full")
    foot = builder.wire.ok("actor_hierarchy", target="one")["root"]["children"][0]
    assert foot["location"] == pytest.approx(fallen["per_articulation"]["hopper"]["bodies"]["foot"]["xpos"], abs=1e-3)
    box = builder.wire.ok("actor_hierarchy", target="box")["root"]
    drop = fallen["entities"]["crate"]["xpos"]
    assert box["children"][0]["location"] == pytest.approx(drop, abs=1e-3)
    assert box["location"] == pytest.approx(np.subtract(drop, [0, 0, 0.1]), abs=1e-3), "the actor moves with its body"


def test_a_snapshot_shows_what_robots_have(builder: Any) -> None:
    builder.spawn("one", tags=["lab"])
    builder.spawn("box", builder.box_file)
    seen = builder.wire.ok("snapshot")
    assert (seen["in_pie"], seen["level_path"]) == (False, "/Game/Levels/lab")
    robot, box = seen["actors"]
    assert robot["tags"] == ["URLab.ActorId=one", "lab"]
    assert robot["urlab"] == {
        "mj_class": "articulation", "joints": ["up", "bend"], "actuators": ["push"], "sensors": ["height"],
        "cameras": ["eye"],
    }  # fmt: skip
    assert "urlab" not in box
    builder.play()
    builder.wire.ok("step", n_steps=50)
    running = builder.wire.ok("snapshot")
    assert (running["in_pie"], running["level_path"]) == (True, "/Game/Levels/UEDPIE_0_lab")
    assert running["actors"][-1]["location"][2] < box["location"][2]


def test_a_model_is_read_again_when_it_changes_or_by_force(builder: Any) -> None:
    path = builder.own(builder.box_file)
    assert builder.wire.ok("import_xml", path=path)["imported_now"] is True
    assert builder.wire.ok("import_xml", path=path)["imported_now"] is False
    assert builder.wire.ok("import_xml", path=path, force_reimport=True)["imported_now"] is True
    builder.spawn("box", path)
    before = builder.wire.ok("get_actor_bounds", target="box")["extents"]
    builder.write("own_crate.xml", Path(path).read_text().replace(".1 .1 .1", ".2 .2 .2"))
    assert builder.wire.ok("import_xml", path=path)["imported_now"] is True
    assert builder.wire.ok("get_actor_bounds", target="box")["extents"] == pytest.approx([2 * one for one in before])


def test_more_lights_than_can_be_drawn_are_told(builder: Any) -> None:
    for number in range(7):
        builder.wire.ok("spawn_light", actor_id=str(number))
    assert "warnings" not in builder.play()
    builder.wire.ok("spawn_light", actor_id="one more")
    assert any("8 lights" in warning for warning in builder.play()["warnings"])
