"""The view that every page depends on, against a real server: it goes on, whatever fails."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab.editor.feed import ShownWorld, WorldFeed, loaded, read_world
from urlab.editor.server_link import ServerLink
from urlab_client import InProcessTransport
from urlab_client.enums import PIEState
from urlab_client.namespaces.viewport import WorldView

WAIT_S = 30.0
LIMP = '<mujoco model="limp"><worldbody><body name="limp"><freejoint/></body></worldbody></mujoco>'


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """It plays the demo level."""
    (tmp_path / "limp.xml").write_text(LIMP)
    (tmp_path / "Levels").mkdir()
    (tmp_path / "Levels/limp.toml").write_text(
        f'version = 1\nname = "limp"\n[[actors]]\nname = "limp"\nactor_id = "limp"\nblueprint = "{tmp_path}/limp.xml"\n'
        "location = [0.0, 0.0, 0.0]\n"
    )
    opened = Server(ServerConfig(project=tmp_path, ports=Ports.any()), ["demo"])
    opened.begin()
    opened.open_sockets()
    yield opened
    opened.close()


@pytest.fixture
def link(server: Server) -> Iterator[ServerLink]:
    """To that server."""
    opened = ServerLink(lambda: InProcessTransport(server.dispatcher.handle))
    yield opened
    opened.close()


def test_a_link_to_a_live_server_does_not_subscribe_to_its_states(server: Server):
    before = threading.enumerate()  # a client that another test left may have such a thread
    link = ServerLink.at(server.endpoints()["step"])
    for ask in (link.read, link.change, link.draw):
        assert "panda" in ask(lambda client: client.articulations)
    assert "urlab-states" not in [thread.name for thread in threading.enumerate() if thread not in before]
    link.close()


def test_a_view_goes_on_after_those_who_draw_have_failed(link: ServerLink, caplog: pytest.LogCaptureFixture):
    calls, models, went_on = [], [], threading.Event()

    def show_status(world: ShownWorld) -> None:
        calls.append(world.problem)
        if len(calls) == 1:
            raise RuntimeError("no simulation is running")  # while the problem of the model is told
        if len(calls) == 2:
            raise TypeError("a defect")
        if world.problem is None:
            went_on.set()

    def show_model(world: ShownWorld) -> None:
        models.append(len(world.actors))
        if len(models) == 1:
            raise OSError("the page has gone")

    feed = WorldFeed(link, is_watched=lambda: True, on_model=show_model, on_state=lambda _: None, on_status=show_status)
    feed.start()
    assert went_on.wait(WAIT_S)
    feed.close()
    assert models == [10, 10], "a model that was not drawn to the end is drawn again, and only then"
    assert "TypeError: a defect" in caplog.text


def test_what_was_read_before_the_view_began_is_shown_and_then_what_is_new(link: ServerLink):
    first: Future[tuple[WorldView, Any]] = Future()
    first.set_result(read_world(link))
    link.change(lambda client: client.sim.stop())
    link.change(lambda client: client.scene.create_level("empty"))
    models, has_changed = [], threading.Event()

    def show_model(world: ShownWorld) -> None:
        models.append(len(world.actors))
        if len(models) == 2:
            has_changed.set()

    feed = WorldFeed(link, first=first, is_watched=lambda: True, on_model=show_model, on_state=lambda _: None,
                     on_status=lambda _: None)  # fmt: skip
    feed.start()
    assert has_changed.wait(WAIT_S)
    feed.close()
    assert models == [10, 0]


def test_a_world_that_could_not_be_read_before_is_read_again(link: ServerLink):
    first: Future[tuple[WorldView, Any]] = Future()
    first.set_exception(RuntimeError("the server was away"))
    problems, is_shown = [], threading.Event()

    def show_status(world: ShownWorld) -> None:
        problems.append(world.problem)
        if world.problem is None:
            is_shown.set()

    feed = WorldFeed(link, first=first, is_watched=lambda: True, on_model=lambda _: None, on_state=lambda _: None,
                     on_status=show_status)  # fmt: skip
    feed.start()
    assert is_shown.wait(WAIT_S)
    feed.close()
    assert problems[0] == "the server was away"


def test_a_level_that_does_not_compile_is_empty_and_has_its_reason(link: ServerLink):
    told, shown = threading.Event(), []

    def show_status(world: ShownWorld) -> None:
        shown[:] = [world.problem, world.model.nbody, world.view.playing, world.status and world.status.state]
        if world.problem is not None:
            told.set()

    link.change(lambda client: client.sim.stop())
    link.change(lambda client: client.scene.load_level("limp"))
    feed = WorldFeed(link, is_watched=lambda: True, on_model=lambda _: None, on_state=lambda _: None,
                     on_status=show_status)  # fmt: skip
    feed.start()
    assert told.wait(WAIT_S)
    feed.close()
    assert shown[0].startswith("actor 'limp'")
    assert shown[1:] == [1, False, PIEState.OFF]


def test_a_model_whose_file_is_gone_is_read_as_the_server_has_it_now(server: Server):
    link = ServerLink.at(server.endpoints()["step"])
    outdated = link.read(lambda client: client.viewport.read(as_file=True))
    link.change(lambda client: client.sim.stop())
    link.change(lambda client: client.scene.create_level("empty"))
    assert link.read(lambda client: client.viewport.read(as_file=True)).load_model().nbody == 1
    with pytest.raises(ValueError, match="failed to load"):
        outdated.load_model()
    view, model = loaded(link, outdated)
    assert view.actors == {}
    assert model.nbody == 1
    link.close()
