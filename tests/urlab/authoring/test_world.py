"""The edited world, where the wire is not the point."""

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from urlab.app import Server
from urlab.authoring import Placement, SpawnSpec, World
from urlab.authoring.outliner_rows import rows
from urlab.compile.blueprint import load_blueprint, parse_model
from urlab.compile.library import Library
from urlab.config import ServerConfig
from urlab.errors import EditError, ImportFailed, ShuttingDown, UnknownActor, UrlabError
from urlab.manager import ViewportSource
from urlab.scene.level import Actor, Level, QuickConvert
from urlab_wire.enums import PIEState

IN_CLOSE_NOWRITE, IN_OPEN = 0x10, 0x20
"""What inotify calls them."""

ARM = """<mujoco model="arm"><worldbody><body><joint name="j"/><geom size="0.1"/></body></worldbody>
<actuator><motor joint="j"/></actuator><keyframe><key name="up" qpos="1"/></keyframe></mujoco>"""


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
    world.spawn(SpawnSpec(str(tmp_path / "tray.obj"), "tray"))
    world.quick_convert("tray", QuickConvert(static=True, complex_mesh=True, coacd_threshold=0.3))
    world.spawn(SpawnSpec("box", "box", Placement((0.0, 0.0, 0.3))))
    assert server.play.begin().compile_error == ""
    with server.play.manager.engine.locked():
        server.play.manager.engine.advance(1000, float("inf"))
        rest = server.play.manager.engine.data.body("box").xpos[2]
    assert rest == pytest.approx(0.075, abs=0.02), "the box lies in the tray, not on its lid"


def test_threads_that_spawn_at_once_get_names_of_their_own(world: World) -> None:
    def spawn(number: int) -> None:
        for i in range(20):
            world.spawn(SpawnSpec("box", f"{number}_{i}"))

    threads = [threading.Thread(target=spawn, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [actor.name for actor in world.level.actors]
    assert len(set(names)) == len(names) == 80


def test_a_level_that_was_read_does_not_change(world: World) -> None:
    world.spawn(SpawnSpec("box", "one"))
    before = world.level
    world.spawn(SpawnSpec("box", "two"))
    assert [actor.actor_id for actor in before.actors] == ["one"]
    assert world.level is world.level, "and is made anew only after an edit"


def test_a_name_that_was_set_free_can_be_had_again(world: World) -> None:
    world.spawn(SpawnSpec("box", "one"))
    world.destroy("one")
    assert world.spawn(SpawnSpec("box", "two")).actor.name == "box"
    with pytest.raises(UnknownActor, match="no actor has the actor_id or name 'one'; there are: two"):
        world.find("one")


def test_an_actor_id_may_look_like_the_name_of_another(world: World) -> None:
    """The id wins, unless names alone are asked for."""
    world.spawn(SpawnSpec("box", "x"))
    world.spawn(SpawnSpec("table", "box"))
    found, named = world.find("box"), world.find("box", by_name=True)
    assert isinstance(found, Actor)
    assert isinstance(named, Actor)
    assert (found.blueprint, named.blueprint) == ("table", "box")


def opens(path: Path, work: Callable[[], object]) -> int:
    """How often ``work`` opens a file, in Python or in MuJoCo: the kernel counts."""
    libc = ctypes.CDLL(None)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    # Opens alone would be reported as one; with the closes between them each is an event of its own.
    assert libc.inotify_add_watch(watch, os.fsencode(path), IN_OPEN | IN_CLOSE_NOWRITE) >= 0
    try:
        work()
        events = os.read(watch, 1 << 16)
    except BlockingIOError:
        events = b""
    finally:
        os.close(watch)
    return sum(mask == IN_OPEN for _, mask, _, _ in struct.iter_unpack("iIII", events))


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux")
@pytest.mark.parametrize("scale", [(1.0, 1.0, 1.0), (2.0, 2.0, 2.0)])
def test_spawning_reads_the_model_once_however_many_are_spawned(
    world: World, tmp_path: Path, scale: tuple[float, float, float]
) -> None:
    (tmp_path / "arm.xml").write_text(ARM)
    record, _ = world.importer.import_file(str(tmp_path / "arm.xml"))
    once = opens(record.file, lambda: parse_model(record.file))
    assert once > 0
    placement = Placement(scale=scale)
    wanted = [SpawnSpec(record.class_path, f"arm{i}", placement, keyframe="up") for i in range(64)]
    assert opens(record.file, lambda: world.spawn(wanted[0])) == once
    cells = [(wanted.actor_id, wanted) for wanted in wanted]
    assert opens(record.file, lambda: world.spawn_grid(record.class_path, cells)) == 0
    assert len(world.level.actors) == 64


def test_spawning_looks_a_blueprint_up_once(world: World, tmp_path: Path) -> None:
    """The library is handed the record that the world has found, and looks for none itself."""
    looked_up: list[str] = []
    library = Library(lambda word: looked_up.append(word) or world.project.record(word))  # type: ignore[func-returns-value]
    other = World(world.project, Level("other"), library, world.importer)
    other.spawn(SpawnSpec("box", "one"))
    other.spawn_grid("panda", [(str(i), SpawnSpec("panda", f"{i}", keyframe="home")) for i in range(3)])
    assert (looked_up, len(other.level.actors)) == ([], 4)


def test_what_cannot_be_converted_is_refused(world: World) -> None:
    world.spawn(SpawnSpec("box", "one"))
    with pytest.raises(EditError, match="'box' is not a static mesh"):
        world.quick_convert("one", QuickConvert())


BOMB = """<mujoco><worldbody><replicate count="100000"><body><freejoint/><geom size="1"/></body></replicate></worldbody>
</mujoco>"""


@pytest.mark.usefixtures("cold_start")  # the thread that waits for it is its parent
def test_a_server_that_closes_does_not_wait_for_an_import(server: Server, tmp_path: Path) -> None:
    (tmp_path / "bomb.xml").write_text(BOMB)
    failures: list[UrlabError] = []

    def attempt() -> None:
        with pytest.raises(UrlabError) as failed:
            server.world.importer.import_file(str(tmp_path / "bomb.xml"))
        failures.append(failed.value)

    thread = threading.Thread(target=attempt)
    thread.start()
    children = Path(f"/proc/self/task/{thread.native_id}/children")
    while not children.read_text():
        assert thread.is_alive()
    server.close()
    thread.join(10)
    assert not thread.is_alive()
    assert isinstance(failures[0], ImportFailed)
    with pytest.raises(ShuttingDown):
        server.world.importer.import_file(str(tmp_path / "bomb.xml"))


def test_a_view_does_not_wait_for_a_mesh_that_is_being_cut_and_stopping_gives_it_up(
    server: Server, tmp_path: Path
) -> None:
    pytest.importorskip("coacd")
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.torus(1.0, 0.3, major_sections=200, minor_sections=100).export(tmp_path / "ring.stl")
    world = server.world
    world.spawn(SpawnSpec(str(tmp_path / "ring.stl"), "ring"))
    world.quick_convert("ring", QuickConvert(complex_mesh=True, coacd_threshold=0.01))
    shown = ViewportSource(server.play)()
    assert set(shown.actors) == {"ring"}
    assert shown.model.ngeom == 1
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
    spawned = world.spawn(SpawnSpec(str(tmp_path / "post.glb"), "post", Placement((0.0, 0.0, 3.0)))).actor
    box = world.inspect(spawned).aabb(spawned.pose)
    assert box is not None
    assert box.half_size == pytest.approx((0.1, 0.2, 0.5), abs=1e-6), "its y axis is up"
    world.quick_convert("post", QuickConvert())
    assert server.play.begin().compile_error == ""
    with server.play.manager.engine.locked():
        server.play.manager.engine.advance(100, float("inf"))
        assert server.play.manager.engine.data.body("post").xpos[2] < 3.0


@pytest.mark.parametrize("edit", ["spawn", "spawn_grid", "duplicate"])
def test_who_looks_at_the_level_does_not_wait_for_a_model_that_is_being_loaded(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: str
) -> None:
    (tmp_path / "arm.xml").write_text(ARM)
    (tmp_path / "other.xml").write_text(ARM.replace("arm", "other"))
    world.spawn(SpawnSpec(str(tmp_path / "arm.xml"), "first"))
    begun, gate = threading.Event(), threading.Event()

    def load_slowly(*args: object) -> object:
        begun.set()
        assert gate.wait(20)
        return load_blueprint(*args)

    level = world.level
    world.library._loaded.clear()
    monkeypatch.setattr("urlab.compile.library.load_blueprint", load_slowly)
    other = SpawnSpec(str(tmp_path / "other.xml"), "second")
    edits = {
        "spawn": lambda: world.spawn(other),
        "spawn_grid": lambda: world.spawn_grid(other.blueprint, [("(0, 0)", other)]),
        "duplicate": lambda: world.duplicate("first", "second", None),
    }
    editor = threading.Thread(target=edits[edit])
    editor.start()
    assert begun.wait(20)
    looked = threading.Thread(target=lambda: (world.level, world.find("first")))
    looked.start()
    looked.join(10)
    assert not looked.is_alive()
    gate.set()
    editor.join(20)
    assert len(world.level.actors) == len(level.actors) + 1


def test_a_loaded_model_is_had_while_another_one_is_being_loaded(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "arm.xml").write_text(ARM)
    (tmp_path / "other.xml").write_text(ARM.replace("arm", "other"))
    arm = world.spawn(SpawnSpec(str(tmp_path / "arm.xml"), "first")).actor
    begun, gate = threading.Event(), threading.Event()

    def load_slowly(*args: object) -> object:
        begun.set()
        assert gate.wait(20)
        return load_blueprint(*args)

    monkeypatch.setattr("urlab.compile.library.load_blueprint", load_slowly)
    editor = threading.Thread(target=lambda: world.spawn(SpawnSpec(str(tmp_path / "other.xml"), "second")))
    editor.start()
    assert begun.wait(20)
    found: list[object] = []
    reader = threading.Thread(target=lambda: found.append(world.library.blueprint(arm)))
    reader.start()
    reader.join(10)
    gate.set()
    editor.join(20)
    assert found


def test_shapes_that_no_actor_has_any_more_do_not_stay_in_memory(world: World, tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(ARM)
    world.spawn(SpawnSpec(str(tmp_path / "arm.xml"), "arm"))
    for number in range(1, 260):
        world.spawn(SpawnSpec(str(tmp_path / "arm.xml"), "arm", Placement(scale=(1 + number / 100,) * 3)))
        world.inspect(world.find("arm"))
    assert 100 < len(world.library._loaded) < 210
    assert 100 < len(world._inspected) < 210


def test_the_shapes_of_a_level_stay_loaded_however_many_they_are(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "arm.xml").write_text(ARM)
    for number in range(230):
        scale = (1 + number / 100,) * 3
        world.spawn(SpawnSpec(str(tmp_path / "arm.xml"), f"arm{number}", Placement(scale=scale)))
    monkeypatch.setattr("urlab.compile.library.load_blueprint", None)
    assert len(list(rows(world, world.level))) == 230
