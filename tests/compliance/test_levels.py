"""Levels over the wire: created, saved, loaded, deleted."""

import hashlib
from pathlib import Path
from typing import Any

import pytest


def test_a_new_level_is_open_empty_and_on_disk(builder: Any) -> None:
    reply = builder.wire.ok("create_level", name="hall")
    assert reply["level_path"] == "/Game/Levels/hall"
    assert builder.wire.ok("current_level")["level_path"] == "/Game/Levels/hall"
    assert builder.wire.ok("list_actors") == {"op": "list_actors_ok", "actors": [], "in_pie": False}
    assert (builder.project / "Levels" / "hall.toml").is_file()


def test_an_existing_level_is_replaced_only_by_force(builder: Any) -> None:
    builder.spawn("one")
    builder.wire.ok("save_level")
    assert builder.wire.refused("create_level", name="lab") == "create_level_failed"
    assert list(builder.actors()) == ["one"]
    builder.wire.ok("create_level", name="lab", force_overwrite=True)
    assert builder.actors() == {}


def test_a_shipped_level_cannot_be_created_by_accident(builder: Any) -> None:
    assert builder.wire.refused("create_level", name="demo") == "create_level_failed"


@pytest.mark.parametrize("path", ["lab", "/Game/Levels/lab", "/Game/Levels/lab.lab"])
def test_loading_restores_what_was_saved_and_discards_the_rest(builder: Any, path: str) -> None:
    builder.spawn(
        "one", location=[1, 2, 3], rotation_euler=[10, 20, 30], scale=[2, 2, 2], tags=["a"], keyframe="raised"
    )
    builder.spawn("two")
    builder.wire.ok("spawn_light", kind="spot", actor_id="lamp", location=[0, 0, 3], rotation_euler=[0, 90, 0])
    before = builder.wire.ok("snapshot")["actors"]
    assert builder.wire.ok("save_level")["level_path"] == "/Game/Levels/lab"
    builder.spawn("three")
    builder.wire.ok("destroy_actor", target="one")
    assert builder.wire.ok("load_level", level_path=path)["level_path"] == "/Game/Levels/lab"
    assert builder.wire.ok("snapshot")["actors"] == before


def test_a_saved_level_gives_the_same_model_on_another_server(builder: Any, make_server: Any, connect: Any) -> None:
    robot, box = builder.own(builder.robot_file), builder.own(builder.box_file)
    builder.spawn("one", robot, location=[1, 0, 0])
    builder.spawn("two", robot, location=[2, 0, 0], scale=[1.5, 1.5, 1.5])
    builder.spawn("box", box, location=[3, 0, 0], rotation_euler=[0, 0, 45])
    builder.wire.ok("spawn_light", actor_id="sun")
    mjb = builder.play()["mjb"]
    builder.wire.ok("save_level")
    Path(robot).unlink()
    Path(box).unlink()
    other = connect(make_server("lab", project=builder.project))
    again = other.hello()["mjb"]
    assert hashlib.sha256(again).hexdigest() == hashlib.sha256(mjb).hexdigest()


def test_saving_keeps_a_copy_of_model_files_that_were_used_where_they_stand(
    builder: Any, make_server: Any, connect: Any
) -> None:
    box = builder.own(builder.box_file)
    served = connect(make_server(box, project=builder.project))
    served.hello()
    assert served.ok("save_level")["level_path"] == "/Game/Levels/Untitled"
    Path(box).unlink()
    assert served.ok("load_level", level_path="Untitled")
    assert served.ok("begin_pie", level_path="Untitled")["state"] == "ready"


def test_a_level_that_is_not_there_is_not_loaded_and_the_open_one_stays(builder: Any) -> None:
    builder.spawn("one")
    assert builder.wire.refused("load_level", level_path="nowhere") == "load_level_failed"
    assert list(builder.actors()) == ["one"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../evil",
        "/Game/Levels/../../evil",
        "/tmp/evil",
        "a/b",
        "a\\b",
        "evil\0",
        ".hidden",
        "nul",
        "x" * 300,
        "a\nb",
    ],
)
@pytest.mark.parametrize("op", ["create_level", "load_level"])
def test_a_name_that_is_no_plain_name_is_refused_and_nothing_is_touched(builder: Any, op: str, name: str) -> None:
    before = sorted(builder.project.rglob("*"))
    field = "name" if op == "create_level" else "level_path"
    assert builder.wire.refused(op, **{field: name}) in (f"{op}_failed", "missing_field")
    assert sorted(builder.project.rglob("*")) == before
    assert list(builder.project.parent.iterdir()) == [builder.project]


def test_a_level_that_cannot_be_saved_is_an_error_and_loses_nothing(builder: Any) -> None:
    builder.spawn("one")
    levels = builder.project / "Levels"
    levels.rename(builder.project / "Elsewhere")
    levels.write_text("in the way")
    assert builder.wire.refused("save_level") == "save_level_failed"
    assert builder.wire.refused("create_level", name="other") == "create_level_failed"
    assert list(builder.actors()) == ["one"]
    levels.unlink()
    (builder.project / "Elsewhere").rename(levels)
    builder.wire.ok("save_level")


def test_levels_are_destroyed_but_not_a_shipped_one(builder: Any) -> None:
    builder.wire.ok("create_level", name="hall")
    assert builder.wire.ok("destroy_asset", asset_path="/Game/Levels/lab.lab")["was_found"] is True
    assert builder.wire.ok("destroy_asset", asset_path="/Game/Levels/lab")["was_found"] is False
    assert builder.wire.refused("destroy_asset", asset_path="/Game/Levels/demo") == "destroy_asset_failed"
    assert builder.wire.refused("load_level", level_path="lab") == "load_level_failed"


def test_the_open_level_is_left_for_an_empty_one_when_it_is_destroyed(builder: Any) -> None:
    builder.spawn("one")
    builder.wire.ok("save_level")
    assert builder.wire.ok("destroy_asset", asset_path="/Game/Levels/lab.lab")["was_found"] is True
    assert builder.actors() == {}
    assert builder.wire.ok("current_level")["level_path"] == "/Game/Levels/Untitled"
    assert not (builder.project / "Levels" / "lab.toml").exists()


@pytest.mark.parametrize("path", ["/etc/passwd", "lab", "/Game/Levels/../x", "/Game/MuJoCoImports/../Levels", ""])
def test_nothing_else_is_destroyed(builder: Any, path: str) -> None:
    before = sorted(builder.project.rglob("*"))
    assert builder.wire.ok("destroy_asset", asset_path=path)["was_found"] is False
    assert sorted(builder.project.rglob("*")) == before


def test_an_import_takes_its_actors_with_it(builder: Any) -> None:
    builder.spawn("one")
    builder.spawn("other", builder.box_file)
    builder.wire.ok("select_actor", target="one")
    path = "/Game/MuJoCoImports/hopper.hopper"
    assert builder.wire.ok("destroy_asset", asset_path=path) == {
        "op": "destroy_asset_ok", "asset_path": path, "was_found": True, "destroyed_actors": ["hopper"]
    }  # fmt: skip
    assert list(builder.actors()) == ["other"]
    assert builder.wire.ok("destroy_asset", asset_path=path)["was_found"] is False
    assert builder.wire.refused("spawn_actor", blueprint="/Game/MuJoCoImports/hopper.hopper_C") == "spawn_failed"


def test_a_manager_is_put_in_once(builder: Any) -> None:
    first = builder.wire.ok("ensure_manager")
    assert first["was_existing"] is False
    assert first["actor_path"] == f"/Game/Levels/lab.lab:PersistentLevel.{first['actor_name']}"
    assert builder.wire.ok("ensure_manager")["was_existing"] is True
    assert builder.actors()[first["actor_name"]]["class"] == "AMjManager"
    builder.wire.ok("save_level")
    builder.wire.ok("load_level", level_path="lab")
    assert builder.wire.ok("ensure_manager")["was_existing"] is True


def test_playing_puts_the_manager_in(builder: Any) -> None:
    builder.spawn("one")
    builder.play()
    assert builder.wire.ok("ensure_manager")["was_existing"] is True


def test_beginning_to_play_a_level_opens_it(builder: Any) -> None:
    builder.spawn("one")
    builder.wire.ok("save_level")
    builder.wire.ok("create_level", name="hall")
    assert builder.wire.ok("begin_pie", level_path="lab")["state"] == "ready"
    assert builder.wire.ok("current_level")["level_path"] == "/Game/Levels/lab"
    assert "one" in builder.actors()


def test_a_level_is_saved_under_the_name_of_its_file_whatever_it_calls_itself(builder: Any) -> None:
    builder.spawn("one")
    builder.wire.ok("save_level")
    levels = builder.project / "Levels"
    (levels / "mine.toml").write_text((levels / "lab.toml").read_text())
    before = (levels / "lab.toml").read_bytes()
    assert builder.wire.ok("begin_pie", level_path="mine")["state"] == "ready"
    builder.spawn("two")
    assert builder.wire.ok("save_level")["level_path"] == "/Game/Levels/mine"
    assert (levels / "lab.toml").read_bytes() == before
    assert "two" in (levels / "mine.toml").read_text()


def test_a_level_from_elsewhere_replaces_none_of_the_project(builder: Any, make_server: Any, connect: Any) -> None:
    builder.spawn("one")
    builder.wire.ok("save_level")
    before = (builder.project / "Levels" / "lab.toml").read_bytes()
    path = builder.write("lab.toml", 'version = 1\nname = "lab"\n')
    served = connect(make_server(path, project=builder.project))
    served.hello()
    assert served.ok("save_level")["level_path"] == "/Game/Levels/lab-2"
    assert served.ok("save_level")["level_path"] == "/Game/Levels/lab-2", "and from then on it is that level"
    assert (builder.project / "Levels" / "lab.toml").read_bytes() == before


def test_a_saved_level_whose_import_is_destroyed_is_named_and_can_still_be_opened(builder: Any) -> None:
    builder.spawn("one")
    builder.wire.ok("save_level")
    builder.wire.ok("create_level", name="hall")
    reply = builder.wire.ok("destroy_asset", asset_path="Imports/hopper")
    assert (reply["was_found"], reply["affected_levels"]) == (True, ["lab"])
    builder.wire.ok("load_level", level_path="lab")
    assert "hopper" in builder.actors()["one"]["problem"]


@pytest.mark.parametrize("named_by", ["lab", "Levels/lab.toml"])
def test_a_level_that_a_server_was_started_with_is_saved_as_that_level(
    builder: Any, make_server: Any, connect: Any, named_by: str
) -> None:
    builder.spawn("one")
    builder.wire.ok("save_level")
    target = named_by if named_by == "lab" else str(builder.project / named_by)
    served = connect(make_server(target, project=builder.project))
    served.hello()
    served.ok("spawn_actor", blueprint="Imports/crate", actor_id="more")
    assert served.ok("save_level")["level_path"] == "/Game/Levels/lab"
    assert [path.name for path in (builder.project / "Levels").iterdir()] == ["lab.toml"]
    assert "more" in (builder.project / "Levels" / "lab.toml").read_text()


def test_an_actor_whose_model_is_missing_is_listed_with_its_problem(builder: Any) -> None:
    builder.spawn("one")
    text = 'version = 1\nname = "odd"\n[[actors]]\nblueprint = "Imports/ghost"\nname = "ghost"\nactor_id = "g"\n'
    (builder.project / "Levels" / "odd.toml").write_text(text)
    builder.wire.ok("load_level", level_path="odd")
    row = builder.actors()["g"]
    assert (row["class"], row["name"]) == ("MissingActor", "ghost")
    assert "there is no model 'Imports/ghost'" in row["problem"]
    assert [one["actor_id"] for one in builder.wire.ok("snapshot")["actors"]] == ["g"]
    builder.wire.ok("save_level")
    builder.wire.ok("destroy_actor", target="g")
    assert builder.actors() == {}
