"""A level from nothing, built and played on the page, in a real browser."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab_client import URLabClient
from urlab_client.enums import PIEState

pytestmark = pytest.mark.page

KEEP_LINES = """(() => {
    window.seen = [];
    new MutationObserver(() => seen.push(document.body.innerText.match(/.*ring.obj.*/)?.[0])).observe(
        document.body, {childList: true, subtree: true, characterData: true});
})()"""
"""Keep every line about that file that was ever shown, in `seen`."""


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


def test_grids_lights_and_copies_are_added(client: URLabClient, page: Any):
    client.sim.stop()
    client.scene.create_level("furnished")
    page.until(lambda: client.scene.current_level() == "/Game/Levels/furnished" and actors(client) == [])
    page.choose("Model", "box")
    page.open_folder("Add a grid")
    page.write("Columns, rows", "2")
    page.press("Add a grid")
    page.until(lambda: len(actors(client)) == 6)
    places = {tuple(round(one, 3) for one in each.location[:2]) for each in client.outliner.find_actors()}
    assert len(places) == 6, "two columns and three rows, beside each other"
    page.open_folder("Add a light")
    page.choose("Kind", "spot")
    page.press("Add a light")
    page.until(lambda: [one for one in client.outliner.list_actors() if one.is_light])
    client.outliner.select_actor("box", by_name=True)
    page.open_tab("Scene")
    page.until(lambda: page.says("● box"))
    page.press("Duplicate")
    page.until(lambda: len(actors(client)) == 8)


def is_arrow(red: Any, green: Any, blue: Any) -> Any:
    """The blue of the gizmo's arrow along z."""
    return (blue > 190) & (red < 120) & (green > 100) & (green < 180)


def test_the_gizmo_moves_the_selected_actor_which_is_one_step_to_undo(client: URLabClient, page: Any):
    client.scene.load_level("demo")
    client.sim.stop()
    client.scene.create_level("moved")
    client.scene.spawn_actor("box", "box", location=(0, 0.8, 0.2))
    client.viewport.set_camera((-2.5, 0.0, 1.2), rotation_euler=(0, 20, 0), fov=70)
    client.outliner.select_actor("box", by_name=True)
    page.close_notices()
    arrow = page.until(lambda: page.top_of(is_arrow))
    x, y = arrow
    page.tab.drag((x, y + 4), (x, y - 10), (x, y - 40), (x, y - 60))
    page.until(lambda: client.outliner.find_actors(name_prefix="box")[0].location[2] > 0.3)
    moved = client.outliner.find_actors(name_prefix="box")[0].location
    assert moved[:2] == pytest.approx((0, 0.8), abs=1e-6), "along the arrow alone"
    assert client.scene.level_status().can_undo == "move box"
    page.press("Undo")
    page.until(lambda: client.outliner.find_actors(name_prefix="box")[0].location[2] == pytest.approx(0.2))


def test_a_mesh_is_converted_while_the_page_tells_how_far_it_is(client: URLabClient, project: Path, page: Any):
    (project / "ring.obj").write_text(ring_obj())
    client.sim.stop()
    client.scene.create_level("converted")
    client.scene.spawn_actor(client.scene.import_xml(project / "ring.obj"), "ring")
    client.outliner.select_actor("ring", by_name=True)
    page.until(lambda: page.says("/Game/Levels/converted"))
    page.open_folder("Quick convert")
    page.tab.evaluate(KEEP_LINES)
    page.tick("Follow the shape closely")
    page.press("Convert the selected mesh")
    page.until(lambda: page.says(" hulls"))
    assert any(line.startswith("cutting up ring.obj, ") for line in page.tab.evaluate("seen") if line)
    assert conversion_of(client, "ring") == "ready"
    page.until(lambda: client.viewport.read().load_model().ngeom > 3)
    page.press("Play")
    page.until(lambda: page.state == "playing")
    assert client.viewport.read().load_model().ngeom > 3, "it is cut into several convex parts"


def conversion_of(client: URLabClient, actor: str) -> str | None:
    found = next(one for one in client.outliner.list_actors() if one.name == actor)
    return None if found.conversion is None else found.conversion.state


def ring_obj(sides: int = 24) -> str:
    """A ring of square section, as a mesh file."""
    turns = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    section = ((0.3, 0.0), (0.4, 0.0), (0.4, 0.1), (0.3, 0.1))
    lines = [f"v {radius * np.cos(turn)} {radius * np.sin(turn)} {z}" for turn in turns for radius, z in section]
    for side in range(sides):
        for corner in range(4):
            here, there = 4 * side, 4 * ((side + 1) % sides)
            following = (corner + 1) % 4
            lines.append(f"f {here + corner + 1} {there + corner + 1} {there + following + 1} {here + following + 1}")
    return "\n".join(lines)
