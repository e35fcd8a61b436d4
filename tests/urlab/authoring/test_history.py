"""What has been done to a level, taken back and made again."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from urlab.app import Server
from urlab.authoring import Placement, SpawnSpec, World, history
from urlab.authoring.history import EditHistory
from urlab.config import ServerConfig
from urlab.errors import EditError, UrlabError
from urlab.scene.level import Actor, Level, Light, QuickConvert
from urlab_wire.enums import LightKind

BALL = '<mujoco model="ball"><worldbody><body name="ball"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
CUBE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(ServerConfig(project=tmp_path / "project", play=False))
    server.world.create_level("lab")
    yield server
    server.close()


@pytest.fixture
def world(server: Server) -> World:
    return server.world


def level(*names: str) -> Level:
    return Level("lab", tuple(Actor(name, "box") for name in names))


def grid(count: int, blueprint: str = "box") -> list[tuple[str, SpawnSpec]]:
    return [(f"({i},0)", SpawnSpec(blueprint, f"g_{i}", Placement((float(i), 0.0, 0.0)))) for i in range(count)]


EDITS: dict[str, Callable[[World], Any]] = {
    "spawn table": lambda world: world.spawn(SpawnSpec("table", "new")),
    "change box": lambda world: world.spawn(SpawnSpec("box", "one", Placement((7.0, 0.0, 0.0)))),
    "spawn 12 actors": lambda world: world.spawn_grid("pallet", grid(12, "pallet")),
    "spawn table-2": lambda world: (world.spawn(SpawnSpec("table")), world.spawn_grid("table", grid(1, "table"))),
    "spawn SpotLight": lambda world: world.spawn_light(Light("", LightKind.SPOT)),
    "change PointLight": lambda world: world.spawn_light(Light("", LightKind.POINT, "lamp", intensity=1.0)),
    "delete box-2": lambda world: world.destroy("two"),
    "delete PointLight": lambda world: world.destroy("lamp"),
    "move box": lambda world: world.move("one", Placement((1.0, 2.0, 3.0))),
    "move PointLight": lambda world: world.move("lamp", Placement((1.0, 2.0, 3.0))),
    "duplicate box-2": lambda world: world.duplicate("two", "copy", None),
    "convert cube": lambda world: world.quick_convert("mesh", QuickConvert(static=True)),
    "stop converting cube-2": lambda world: world.quick_convert("converted", None),
}


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a level of two boxes, a light and two meshes, one of them converted: importing takes a process."""
    folder = tmp_path_factory.mktemp("history")
    (folder / "cube.obj").write_text(CUBE)
    server = Server(ServerConfig(project=folder / "project", play=False))
    world = server.world
    world.create_level("lab")
    for actor_id in ("one", "two"):
        world.spawn(SpawnSpec("box", actor_id))
    world.spawn_light(Light("", LightKind.POINT, "lamp"))
    for actor_id in ("mesh", "converted"):
        world.spawn(SpawnSpec(str(folder / "cube.obj"), actor_id))
    world.quick_convert("converted", QuickConvert())
    world.save_level()
    server.close()
    return folder / "project"


@pytest.fixture
def furnished(project: Path, tmp_path: Path) -> Iterator[World]:
    """A copy of that project, with its level open."""
    server = Server(ServerConfig(project=Path(shutil.copytree(project, tmp_path / "copy")), play=False), ["lab"])
    yield server.world
    server.close()


@pytest.mark.parametrize("label", EDITS)
def test_every_edit_is_taken_back_and_made_again(furnished: World, label: str) -> None:
    before = furnished.level
    EDITS[label](furnished)
    after = furnished.level
    assert after != before
    status = furnished.edit_status()
    assert (status.can_undo, status.can_redo, status.unsaved_changes) == (label, None, True)
    undone = furnished.undo()
    assert (undone.label, undone.can_redo) == (label, label)
    redone = furnished.redo()
    assert (redone.label, redone.can_undo, redone.can_redo, redone.unsaved_changes) == (label, label, None, True)
    assert furnished.level == after
    while furnished.edit_status().can_undo is not None:
        furnished.undo()
    assert furnished.level == before
    assert furnished.edit_status().unsaved_changes is False


@pytest.mark.parametrize(
    "edit",
    [
        lambda world: world.move("one", Placement()),
        lambda world: world.move("one", Placement((0.0, 0.0, 0.0))),
        lambda world: world.spawn(SpawnSpec("box", "one")),
        lambda world: world.spawn_light(Light("", LightKind.POINT, "lamp")),
        lambda world: world.quick_convert("converted", QuickConvert()),
        lambda world: world.select("one"),
        lambda world: world.ensure_manager(),
        lambda world: world.save_level(),
    ],
)
def test_what_changes_no_actor_and_no_light_is_no_edit(furnished: World, edit: Callable[[World], Any]) -> None:
    edit(furnished)
    status = furnished.edit_status()
    assert (status.can_undo, status.unsaved_changes) == (None, False)


def test_a_refused_edit_is_none(furnished: World) -> None:
    for edit in (
        lambda: furnished.destroy("nothing"),
        lambda: furnished.spawn(SpawnSpec("nothing")),
        lambda: furnished.spawn(SpawnSpec("table", "one")),
        lambda: furnished.duplicate("one", "two", None),
        lambda: furnished.quick_convert("one", QuickConvert()),
    ):
        with pytest.raises(UrlabError):
            edit()
    assert furnished.edit_status().can_undo is None


def test_the_cells_of_a_grid_that_failed_are_taken_back_together(world: World) -> None:
    world.spawn(SpawnSpec("table", "g_2"))
    before = world.level
    with pytest.raises(EditError, match=r"cell \(2,0\): actor_id 'g_2' belongs to 'table', which is not a box"):
        world.spawn_grid("box", grid(4))
    assert [actor.name for actor in world.level.actors] == ["table", "box", "box-2"]
    assert world.undo().label == "spawn 2 actors"
    assert world.level == before


def test_a_new_edit_ends_what_could_be_made_again(world: World) -> None:
    world.spawn(SpawnSpec("box", "one"))
    world.undo()
    world.spawn(SpawnSpec("table", "two"))
    with pytest.raises(EditError, match="there is nothing to redo in level 'lab'"):
        world.redo()
    assert world.undo().label == "spawn table"
    with pytest.raises(EditError, match="there is nothing to undo in level 'lab'"):
        world.undo()


def test_the_selection_stays_where_the_actor_does(world: World) -> None:
    world.spawn(SpawnSpec("box", "one"))
    world.spawn(SpawnSpec("table", "two"))
    world.select("one")
    world.undo()
    assert world.selected == "box"
    world.undo()
    assert world.selected is None
    world.redo()
    assert world.selected is None


def test_names_that_were_taken_back_are_free_again(world: World) -> None:
    world.spawn(SpawnSpec("box", "one"))
    world.undo()
    assert world.spawn(SpawnSpec("box", "one")).actor.name == "box"


@pytest.mark.parametrize(
    "opening",
    [
        lambda world: world.load_level("lab"),
        lambda world: world.load_level("demo"),
        lambda world: world.create_level("hall"),
        lambda world: world.destroy_asset("/Game/Levels/lab"),
        lambda world: world.open(Level("other")),
    ],
)
def test_opening_a_level_forgets_what_was_done(furnished: World, opening: Callable[[World], Any]) -> None:
    for edit in (EDITS["move box"], EDITS["delete box-2"]):
        edit(furnished)
    furnished.undo()
    opening(furnished)
    status = furnished.edit_status()
    assert (status.can_undo, status.can_redo, status.unsaved_changes) == (None, None, False)


def test_saving_forgets_nothing(furnished: World) -> None:
    EDITS["move box"](furnished)
    EDITS["delete box-2"](furnished)
    furnished.undo()
    furnished.save_level()
    assert furnished.edit_status().unsaved_changes is False
    assert furnished.redo().unsaved_changes is True
    assert furnished.undo().unsaved_changes is False
    furnished.undo()
    assert furnished.edit_status().unsaved_changes is True


def test_the_manager_and_the_name_are_not_taken_back(tmp_path: Path) -> None:
    server = Server(ServerConfig(project=tmp_path / "project", play=False), ["box"])
    world = server.world
    assert world.level.name == "Untitled"
    world.spawn(SpawnSpec("table", "t"))
    world.project.save_level(Level("Untitled"))
    world.ensure_manager()
    assert world.save_level().name == "Untitled-2"
    world.undo()
    assert (world.level.name, world.level.has_manager) == ("Untitled-2", True)
    world.save_level()
    assert set(world.project.own_level_names()) == {"Untitled", "Untitled-2"}
    server.close()


def test_what_leads_to_files_that_are_gone_leads_to_their_imports_once_the_level_is_saved(tmp_path: Path) -> None:
    file = tmp_path / "ball.xml"
    file.write_text(BALL)
    server = Server(ServerConfig(project=tmp_path / "project", play=False), [file])
    world = server.world
    world.move("ball", Placement((0.0, 0.0, 3.0)))
    world.destroy("ball")
    world.undo()
    world.save_level()
    file.unlink()
    for step in (world.undo, world.redo, world.redo, world.undo):
        step()
        assert [actor.blueprint for actor in world.level.actors] in (["Imports/ball"], [])
    world.forget_files()
    assert server.play.begin().compile_error == ""
    server.close()


def test_actors_of_a_deleted_import_never_come_back_and_all_else_does(world: World, tmp_path: Path) -> None:
    """Its files are gone for good, so neither is its own deletion an edit that can be taken back."""
    (tmp_path / "ball.xml").write_text(BALL)
    ball = str(tmp_path / "ball.xml")
    world.spawn(SpawnSpec("box", "one"))
    world.spawn(SpawnSpec(ball, "ball"))
    world.move("one", Placement((1.0, 0.0, 0.0)))
    world.move("ball", Placement((2.0, 0.0, 0.0)))
    world.destroy("ball")
    world.spawn(SpawnSpec(ball, "again"))
    world.spawn(SpawnSpec("table", "two"))
    world.undo()
    gone = world.destroy_asset("/Game/MuJoCoImports/ball")
    assert gone.actors == ("ball",)
    assert world.edit_status().can_redo == "spawn table"
    labels = []
    while world.edit_status().can_undo is not None:
        labels.append(world.undo().label)
        assert "Imports/ball" not in {actor.blueprint for actor in world.level.actors}
    assert labels == ["move box", "spawn box"]
    labels = []
    while world.edit_status().can_redo is not None:
        labels.append(world.redo().label)
        assert "Imports/ball" not in {actor.blueprint for actor in world.level.actors}
    assert labels == ["spawn box", "move box", "spawn table"]


def test_the_newest_edits_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_EDITS", 3)
    kept, now = EditHistory(), level()
    for number in range(5):
        after = level(*(str(one) for one in range(number + 1)))
        kept.record(now, after, f"spawn {number}")
        now = after
    for number in (4, 3, 2):
        now, label = kept.undo(now)
        assert label == f"spawn {number}"
    assert kept.can_undo is None
    assert len(now.actors) == 2


def test_of_very_large_levels_fewer_edits_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_ACTORS", 10)
    kept = EditHistory()
    for number in range(4):
        kept.record(level(*"abcde"), level(*"abcd", str(number)), f"move {number}")
    labels = []
    while kept.can_undo is not None:
        labels.append(kept.undo(level())[1])
    assert labels == ["move 3", "move 2"]
