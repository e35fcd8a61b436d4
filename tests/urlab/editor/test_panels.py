"""What the panels ask of the server, without a page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab.editor.panels.commands import offered_ops
from urlab.editor.panels.level import level_lines
from urlab.editor.pictures import BlueprintPictures
from urlab.editor.server_link import ServerLink
from urlab_client import URLabRPCError
from urlab_client.transports import InProcessTransport
from urlab_client.types import LevelStatus


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerLink]:
    """To a server that plays the demo level."""
    project: Path = tmp_path_factory.mktemp("project")
    server = Server(ServerConfig(project=project, ports=Ports.any()), ["demo"])
    server.begin()
    opened = ServerLink(lambda: InProcessTransport(server.dispatcher.handle))
    yield opened
    opened.close()
    server.close()


def test_every_command_of_the_palette_means_something_by_itself(link: ServerLink):
    refusals = {}
    for op in offered_ops():
        try:
            link.change(lambda client, op=op: client.runtime.call(op))  # type: ignore[misc]
        except URLabRPCError as refused:
            refusals[op] = refused.code
    assert not {"missing_field", "bad_value"} & set(refusals.values()), refusals
    assert {"reset", "undo", "recording_start", "begin_pie", "clear_markers"} <= set(offered_ops())


def test_a_picture_that_cannot_be_drawn_says_why_and_is_tried_again(link: ServerLink):
    pictures = BlueprintPictures(link)
    assert pictures.get("<b>none</b>", 32, 24).startswith("<small>no picture: ")
    assert "<b>" not in pictures.get("<b>none</b>", 32, 24)
    assert pictures._kept == {}
    drawn = pictures.get("box", 32, 24)
    assert drawn.startswith('<img src="data:image/png')
    assert pictures.get("box", 32, 24) is drawn
    pictures.forget()
    assert pictures.get("box", 32, 24) is not drawn


def test_a_level_says_whether_it_is_saved_and_what_can_be_undone():
    assert level_lines(LevelStatus("/Game/Levels/demo")) == "/Game/Levels/demo"
    edited = LevelStatus("/Game/Levels/demo", unsaved_changes=True, can_undo="move box", can_redo="delete box")
    assert level_lines(edited) == "/Game/Levels/demo · **not saved**  \nundo: *move box*  \nredo: *delete box*"
