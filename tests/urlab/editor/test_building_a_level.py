"""A level from nothing, built and played on the page, in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from urlab_client import URLabClient
from urlab_client.enums import PIEState

pytestmark = pytest.mark.page


def actors(client: URLabClient) -> list[str]:
    return [one.name for one in client.outliner.list_actors() if one.name != "MjManager"]


def selected(client: URLabClient) -> list[str]:
    return [one.name for one in client.outliner.list_actors() if one.selected]


def test_a_level_is_built_undone_saved_and_played(client: URLabClient, page: Any):
    page.press("Stop")
    page.until(lambda: page.state == "editing")
    page.open_folder("Open or create")
    page.write("Name", "from_nothing")
    page.press("New level")
    page.until(lambda: client.scene.current_level() == "/Game/Levels/from_nothing")
    page.until(lambda: actors(client) == [])

    page.choose("Model", "box")
    page.press("Add")
    page.until(lambda: actors(client) == ["box"])
    page.press("Add")
    page.until(lambda: actors(client) == ["box", "box-2"])
    assert client.scene.level_status().unsaved_changes
    page.press("Undo")
    page.until(lambda: actors(client) == ["box"])
    assert client.scene.level_status().can_redo
    page.press("Redo")
    page.until(lambda: actors(client) == ["box", "box-2"])

    page.open_tab("Scene")
    page.press("box")
    page.until(lambda: selected(client) == ["box"])
    page.open_tab("Inspect")
    page.write("Position m", "0.4")
    page.until(lambda: client.outliner.find_actors(name_prefix="box")[0].location[0] == 0.4)
    assert client.scene.level_status().can_undo == "move box", "one step, however many keys were pressed"
    page.open_tab("Scene")
    page.press("Delete")
    page.until(lambda: actors(client) == ["box-2"])

    page.open_tab("Level")
    page.press("Save")
    page.until(lambda: not client.scene.level_status().unsaved_changes)
    assert "from_nothing" in [one.name for one in client.scene.list_levels()]
    page.press("Play")
    page.until(lambda: page.state == "playing")
    assert client.sim.status().state is PIEState.READY
    page.press("Stop", row="Level")
    page.until(lambda: page.state == "editing")
    assert client.sim.status().state is PIEState.OFF


def test_a_level_that_does_not_compile_says_why_until_another_is_open(client: URLabClient, project: Path, page: Any):
    client.sim.stop()
    (project / "limp.xml").write_text(
        '<mujoco model="limp"><worldbody><body name="limp"><freejoint/></body></worldbody></mujoco>'
    )
    (project / "Levels/limp.toml").write_text(
        'version = 1\nname = "limp"\n[[actors]]\nname = "limp"\nactor_id = "limp"\nlocation = [0.0, 0.0, 0.0]\n'
        f'blueprint = "{project}/limp.xml"\n'
    )
    client.scene.load_level("limp")
    page.until(lambda: page.says("mass and inertia of moving bodies"))
    page.press("Play")
    page.until(lambda: page.state == "compile_failed")
    page.until(lambda: page.says("Begin to play did not work"))
    assert page.says("This level does not compile.")
    client.scene.load_level("demo")
    page.until(lambda: page.state == "editing")
    assert not page.says("This level does not compile.")
    page.press("Play")
    page.until(lambda: page.state == "playing")
