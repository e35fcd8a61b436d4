"""The level bar: new, load, save, undo, redo; import and spawn models, lights and grids; quick convert."""

import secrets
from typing import Any

from viser import Icon

from urlab.editor.feed import ShownWorld
from urlab.editor.panels.base import Panel
from urlab.editor.server_link import FAILURES
from urlab_client import URLabClient
from urlab_client.types import LevelStatus
from urlab_wire.ops.outliner import ConversionBlock

_PICTURE = (224, 168)
_LIGHTS = ("directional", "point", "spot")
_LIGHT_HEIGHT_M = 3.0


class LevelPanel(Panel):
    """What belongs to the level that is edited; play shows it after the next begin."""

    title = "Level"
    icon = Icon.STACK_2
    order = 5

    def build(self) -> None:
        """The open level, then what can be put into it."""
        page, gui = self.page, self.gui
        self._open = gui.add_markdown("")
        self._bar = page.acting(gui.add_button_group("Level", ("Save", "Undo", "Redo")))
        self._bar.on_click(lambda _: self._press(self._bar.value))
        with gui.add_folder("Open or create", expand_by_default=False):
            self._levels = page.acting(gui.add_dropdown("Saved level", ("demo",)))
            page.button("Load", "load a level", self._load, icon=Icon.FOLDER_OPEN)
            self._name = page.acting(gui.add_text("Name", "my_level"))
            page.button("New level", "create a level", self._create, icon=Icon.FILE_PLUS)
            page.button("Save as", "save the level as", self._save_as, icon=Icon.DEVICE_FLOPPY)
        with gui.add_folder("Add a model"):
            self._blueprint = page.acting(gui.add_dropdown("Model", ("(none)",)))
            self._blueprint.on_update(lambda _: self._show_picture())
            self._picture = gui.add_html("")
            self._place = page.acting(gui.add_vector3("Position m", (0.0, 0.0, 0.0), step=0.1))
            page.button("Add", "add a model", self._spawn, icon=Icon.PLUS)
            upload = page.acting(
                gui.add_upload_button(
                    "Import a file", icon=Icon.UPLOAD,
                    hint="MJCF, URDF or a mesh; with its files as .zip or .mjz",
                )
            )  # fmt: skip
            upload.on_upload(lambda event: self._import(event.target.value))
        with gui.add_folder("Add a grid", expand_by_default=False):
            self._counts = page.acting(gui.add_vector2("Columns, rows", (3, 3), min=(1, 1), max=(32, 32), step=1))
            self._spacing = page.acting(gui.add_vector2("Spacing m", (1.0, 1.0), step=0.1))
            page.button("Add a grid", "add a grid", self._spawn_grid, icon=Icon.GRID_DOTS)
        with gui.add_folder("Add a light", expand_by_default=False):
            self._light = page.acting(gui.add_dropdown("Kind", _LIGHTS))
            page.button("Add a light", "add a light", self._spawn_light, icon=Icon.BULB)
        with gui.add_folder("Quick convert", expand_by_default=False):
            self._complex = page.acting(gui.add_checkbox("Follow the shape closely", False))
            self._static = page.acting(gui.add_checkbox("Stands still", False))
            page.button("Convert the selected mesh", "convert a mesh", self._convert, icon=Icon.TRANSFORM)
            self._conversions = gui.add_markdown("", visible=False)
        self._paths: dict[str, str] = {}
        self._is_converting = True
        """Whether a mesh is being cut up, as far as is known."""

    # -- levels -----------------------------------------------------------------------------------------------------

    def _press(self, word: str) -> None:
        actions: dict[str, Any] = {
            "Save": lambda client: client.scene.save_level(),
            "Undo": lambda client: client.scene.undo(),
            "Redo": lambda client: client.scene.redo(),
        }
        if self.page.change(word.lower(), actions[word]) is not None or word == "Save":
            self._list()

    def _load(self, client: URLabClient) -> None:
        client.scene.load_level(self._levels.value)

    def _create(self, client: URLabClient) -> None:
        client.scene.create_level(self._name.value)
        self._list()

    def _save_as(self, client: URLabClient) -> None:
        client.scene.save_level(self._name.value)
        self._list()

    # -- models -----------------------------------------------------------------------------------------------------

    def _spawn(self, client: URLabClient) -> None:
        client.scene.spawn_actor(self._chosen(), self._free_id(), location=self._place.value)

    def _spawn_grid(self, client: URLabClient) -> None:
        columns, rows = (int(one) for one in self._counts.value)
        across, along = self._spacing.value
        client.scene.spawn_grid(
            self._chosen(), self._free_id(), columns, rows, spacing=(across, along, 0.0), origin=self._place.value
        )

    def _chosen(self) -> str:
        if self._blueprint.value not in self._paths:
            raise ValueError("there is no model to add: import one")
        return self._paths[self._blueprint.value]

    def _free_id(self) -> str:
        """An id that no actor has, also none of a level that was saved: spawning one that is there adds nothing."""
        return f"page-{secrets.token_hex(6)}"

    def _spawn_light(self, client: URLabClient) -> None:
        x, y, z = self._place.value
        client.scene.spawn_light(
            self._light.value, self._free_id(), location=(x, y, z + _LIGHT_HEIGHT_M), rotation_euler=(0, 90, 0)
        )

    def _convert(self, client: URLabClient) -> None:
        world = self.page.world
        selected = None if world is None else world.view.selected
        if selected is None:
            raise ValueError("no actor is selected: click a mesh, or choose it in the list")
        client.outliner.add_quick_convert(
            selected, by_name=True, complex_mesh=bool(self._complex.value), static=bool(self._static.value)
        )
        self._is_converting = True

    def _import(self, file: Any) -> None:
        def work(client: URLabClient) -> Any:
            uploaded = client.scene.upload(file.name, file.content)
            return client.scene.import_xml(uploaded.path)

        blueprint = self.page.change(f"import {file.name}", work)
        if blueprint is not None:
            self.page.editor.pictures.forget()
            self._list()
            if blueprint.short_name in self._paths:
                self._blueprint.value = blueprint.short_name
            self.page.tell(f"{blueprint.short_name} is imported", "Press Add to put it into the level.")

    def show_status(self, world: ShownWorld) -> None:  # noqa: ARG002 - for every panel
        """Whether the level has changes, and how far meshes are that are being cut up, asked for until all are done."""
        if self.page.editor.level is not None:
            self._open.content = level_lines(self.page.editor.level)
        if not self._is_converting:
            return
        actors = self.page.read(lambda client: client.outliner.list_actors())
        going = [one.conversion for one in actors or () if one.conversion is not None]
        self._is_converting = any(one.state in ("waiting", "running") for one in going)
        self._conversions.visible = bool(going)
        self._conversions.content = "  \n".join(conversion_line(one) for one in going)

    # -- what is there ----------------------------------------------------------------------------------------------

    def show_model(self, world: ShownWorld) -> None:  # noqa: ARG002 - for every panel
        """An edit, or another level."""
        self._is_converting = True
        self._list()

    def _list(self) -> None:
        try:
            levels, blueprints, level = self.page.editor.link.read(_lists)
        except FAILURES:
            return
        self._paths = {one.short_name: one.class_path for one in blueprints}
        self._levels.options = tuple(levels) or ("(none)",)
        chosen = self._blueprint.value
        self._blueprint.options = tuple(self._paths) or ("(none)",)
        if chosen not in self._paths or chosen == "(none)":
            self._show_picture()
        self.page.editor.level = level
        self._open.content = level_lines(level)

    def _show_picture(self) -> None:
        path = self._paths.get(self._blueprint.value)
        picture = None if path is None else self.page.editor.pictures.get(path, *_PICTURE)
        self._picture.content = picture or ""


def level_lines(level: LevelStatus) -> str:
    """The level, whether it has changes, and what can be taken back or made again, as Markdown."""
    changed = " · **not saved**" if level.unsaved_changes else ""
    last = f"  \nundo: *{level.can_undo}*" if level.can_undo else ""
    again = f"  \nredo: *{level.can_redo}*" if level.can_redo else ""
    return f"{level.level_path}{changed}{last}{again}"


def conversion_line(one: ConversionBlock) -> str:
    """How far a mesh is, in a line."""
    seconds = f", {one.elapsed_s:.0f} s" if one.state in ("waiting", "running") else ""
    return f"{'**failed** ' if one.state == 'failed' else ''}{one.message}{seconds}"


def _lists(client: URLabClient) -> tuple[list[str], Any, LevelStatus]:
    return (
        [one.name for one in client.scene.list_levels()],
        client.outliner.list_blueprints(),
        client.scene.level_status(),
    )
