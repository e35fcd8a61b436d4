"""The edited world, where the wire is not the point."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from urlab.app import Server
from urlab.authoring import Order, Placement, World
from urlab.authoring.rows import rows
from urlab.compile.importing import run_limited
from urlab.config import ServerConfig
from urlab.errors import EditError, ImportFailed, ShuttingDown, UnknownActor, UrlabError
from urlab.scene.actor import Actor
from urlab.scene.quick_convert import QuickConvert
from urlab_wire.enums import PIEState


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(ServerConfig(project=tmp_path / "project", play=False))
    server.world.create_level("lab")
    yield server
    server.close()


@pytest.fixture
def world(server: Server) -> World:
    return server.world


def tray() -> str:
    """A closed OBJ mesh, one metre wide and deep: a floor 0.1 m thick around z = 0, and two walls up to 0.5 m."""
    outline = [(-.5, -.05), (.5, -.05), (.5, .5), (.4, .5), (.4, .05), (-.4, .05), (-.4, .5), (-.5, .5)]  # fmt: skip
    front = [(1, 2, 5), (1, 5, 6), (2, 3, 5), (3, 4, 5), (1, 6, 8), (6, 7, 8)]
    back = [(c + 8, b + 8, a + 8) for a, b, c in front]
    sides = [
        side for a, b in zip(range(1, 9), (*range(2, 9), 1), strict=True) for side in ((b, a, a + 8), (b, a + 8, b + 8))
    ]
    corners = [f"v {x} {y} {z}" for y in (-0.5, 0.5) for x, z in outline]
    return "\n".join([*corners, *(f"f {a} {b} {c}" for a, b, c in (*front, *back, *sides))])


def test_a_hollow_mesh_is_cut_into_convex_parts(server: Server, tmp_path: Path) -> None:
    pytest.importorskip("coacd")
    (tmp_path / "tray.obj").write_text(tray())
    world = server.world
    world.spawn(Order(str(tmp_path / "tray.obj"), "tray"))
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


BOMB = """<mujoco><worldbody><replicate count="100000"><body><freejoint/><geom size="1"/></body></replicate></worldbody>
</mujoco>"""


def test_a_server_that_closes_does_not_wait_for_an_import(server: Server, tmp_path: Path) -> None:
    (tmp_path / "bomb.xml").write_text(BOMB)
    failures: list[UrlabError] = []

    def attempt() -> None:
        with pytest.raises(UrlabError) as failed:
            server.world.importer.import_file(str(tmp_path / "bomb.xml"))
        failures.append(failed.value)

    thread = threading.Thread(target=attempt)
    thread.start()
    while thread.ident not in run_limited._running:
        assert thread.is_alive()
    server.close()
    thread.join(10)
    assert not thread.is_alive()
    assert isinstance(failures[0], ImportFailed)
    with pytest.raises(ShuttingDown):
        server.world.importer.import_file(str(tmp_path / "bomb.xml"))


def test_stopping_gives_up_a_mesh_that_is_being_cut(server: Server, tmp_path: Path) -> None:
    pytest.importorskip("coacd")
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.torus(1.0, 0.3, major_sections=200, minor_sections=100).export(tmp_path / "ring.stl")
    world = server.world
    world.spawn(Order(str(tmp_path / "ring.stl"), "ring"))
    world.quick_convert("ring", QuickConvert(complex_mesh=True, coacd_threshold=0.01))
    (row,) = rows(world, world.level)
    assert row.conversion is not None
    assert row.conversion.state in ("waiting", "running")
    assert server.play.begin(timeout_s=0.2).state is PIEState.TIMEOUT
    server.play.stop(timeout_s=5)
    assert server.play.status().state is PIEState.OFF
    world.quick_convert("ring", None)
    assert server.play.begin().state is PIEState.READY


def test_a_glb_stands_upright_and_falls_once_it_is_converted(server: Server, tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    trimesh.Scene(trimesh.creation.box((0.2, 1.0, 0.4))).export(tmp_path / "post.glb")
    world = server.world
    spawned = world.spawn(Order(str(tmp_path / "post.glb"), "post", Placement((0.0, 0.0, 3.0)))).actor
    box = world.inspect(spawned).aabb(spawned.pose)
    assert box is not None
    assert box.half_size == pytest.approx((0.1, 0.2, 0.5), abs=1e-6), "its y axis is up"
    world.quick_convert("post", QuickConvert())
    assert server.play.begin().compile_error == ""
    with server.play.manager.engine.locked():
        server.play.manager.engine.advance(100, float("inf"))
        assert server.play.manager.engine.data.body("post").xpos[2] < 3.0
