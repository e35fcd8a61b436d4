"""The edited world, where the wire is not the point."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from urlab.app import Server
from urlab.authoring import Order, Placement, World
from urlab.config import ServerConfig
from urlab.errors import EditError, UnknownActor
from urlab.scene.actor import Actor
from urlab.scene.quick_convert import QuickConvert


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(ServerConfig(project=tmp_path / "project", play=False))
    server.world.create_level("lab")
    yield server
    server.close()


@pytest.fixture
def world(server: Server) -> World:
    return server.world


def test_a_hollow_mesh_is_cut_into_convex_parts(server: Server, tmp_path: Path) -> None:
    pytest.importorskip("coacd")
    trimesh = pytest.importorskip("trimesh")
    places = [trimesh.transformations.translation_matrix((x, 0, 0.25)) for x in (-0.45, 0.45)]
    walls = [trimesh.creation.box((0.1, 1, 0.5), place) for place in places]
    tray = trimesh.util.concatenate([trimesh.creation.box((1, 1, 0.1)), *walls])
    tray.export(tmp_path / "tray.stl")
    world = server.world
    world.spawn(Order(str(tmp_path / "tray.stl"), "tray"))
    world.quick_convert("tray", QuickConvert(static=True, complex_mesh=True, coacd_threshold=0.3))
    world.spawn(Order("box", "box", Placement((0.0, 0.0, 0.3))))
    assert server.play.begin().compile_error == ""
    with server.play.manager.engine.locked():
        server.play.manager.engine.advance(1000, float("inf"))
        rest = server.play.manager.engine.data.body("box").xpos[2]
    assert rest == pytest.approx(0.075, abs=0.02), "the box lies in the tray, not on its lid"


def test_threads_that_spawn_at_once_get_names_of_their_own(world: World) -> None:
    def spawn(number: int) -> None:
        for i in range(20):
            world.spawn(Order("box", f"{number}_{i}"))

    threads = [threading.Thread(target=spawn, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [actor.name for actor in world.level.actors]
    assert len(set(names)) == len(names) == 80


def test_a_level_that_somebody_holds_does_not_change(world: World) -> None:
    world.spawn(Order("box", "one"))
    before = world.level
    world.spawn(Order("box", "two"))
    assert [actor.actor_id for actor in before.actors] == ["one"]
    assert world.level is world.level, "and is made anew only after an edit"


def test_a_name_that_was_set_free_can_be_had_again(world: World) -> None:
    world.spawn(Order("box", "one"))
    world.destroy("one")
    assert world.spawn(Order("box", "two")).actor.name == "box"
    with pytest.raises(UnknownActor, match="no actor has the actor_id or name 'one'; there are: two"):
        world.find("one")


def test_an_actor_id_may_look_like_the_name_of_another(world: World) -> None:
    """The id wins, unless names alone are asked for."""
    world.spawn(Order("box", "x"))
    world.spawn(Order("table", "box"))
    found, named = world.find("box"), world.find("box", by_name=True)
    assert isinstance(found, Actor)
    assert isinstance(named, Actor)
    assert (found.blueprint, named.blueprint) == ("table", "box")


def test_a_grid_of_1024_takes_no_longer_per_cell_than_one_of_64(world: World) -> None:
    """Counted in looks at the project, not in seconds: one import record per grid, whatever its size."""
    looks: list[str] = []
    find = world.library._find

    def counted(word: str) -> object:
        looks.append(word)
        return find(word)

    world.library._find = counted  # type: ignore[assignment]
    counts = []
    for size in (64, 1024):
        looks.clear()
        world.spawn_grid("box", [(str(i), Order("box", f"{size}_{i}")) for i in range(size)])
        counts.append(len(looks) / size)
    assert counts[0] == counts[1]
    assert len(world.level.actors) == 64 + 1024


def test_what_cannot_be_converted_is_refused(world: World) -> None:
    world.spawn(Order("box", "one"))
    with pytest.raises(EditError, match="'box' is not a static mesh"):
        world.quick_convert("one", QuickConvert())
