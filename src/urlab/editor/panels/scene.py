"""The outliner: every actor and its parts, searched and selected."""

from functools import partial
from typing import Any

from viser import Icon

from urlab.editor.feed import ShownWorld
from urlab.editor.panels.base import Panel

_MOST_ROWS = 40


class OutlinerPanel(Panel):
    """A list of what the level has; the selected actor unfolds into its parts."""

    title = "Scene"
    icon = Icon.LIST_TREE
    order = 10

    def build(self) -> None:
        """A field for the search, the rows, and what can be done with the selected actor."""
        page, gui = self.page, self.gui
        self._search = gui.add_text("Search", "", hint="Part of a name; also finds joints, bodies, sensors ...")
        self._search.on_update(lambda _: self._list())
        self._rows_folder = gui.add_folder(None)
        self._rows: list[Any] = []
        self._shown: tuple[Any, ...] = ()
        self._actions = page.acting(gui.add_button_group("Selected", ("Duplicate", "Delete", "Frame")))
        self._actions.on_click(lambda _: self._act(self._actions.value))

        with gui.add_folder("Gizmo", expand_by_default=False):
            place = gui.add_number("Snap m", 0.0, min=0.0, step=0.01, hint="0: anywhere")
            turn = gui.add_number("Snap °", 0.0, min=0.0, step=1.0, hint="0: any angle about the vertical")
        place.on_update(lambda _: setattr(page.gizmo, "snap_m", float(place.value)))
        turn.on_update(lambda _: setattr(page.gizmo, "snap_deg", float(turn.value)))

    def _act(self, word: str) -> None:
        world = self.page.world
        name = None if world is None else world.view.selected
        if name is None:
            self.page.tell("No actor is selected", "Click one in the view, or choose it in the list.", is_error=True)
            return
        if word == "Duplicate":
            self.page.change(f"duplicate {name}", lambda client: client.scene.duplicate_actor(name, "", by_name=True))
        elif word == "Delete":
            self.page.change(f"delete {name}", lambda client: client.scene.destroy_actor(name, by_name=True))
        else:
            self.page.change(f"frame {name}", lambda client: client.viewport.frame_actor(name, by_name=True))

    def _select(self, actor: str | None, _event: Any) -> None:
        if actor is not None:
            self.page.editor.select(self.page, actor)

    def show_model(self, world: ShownWorld) -> None:  # noqa: ARG002 - for every panel
        """Another level, or the same one edited."""
        self._list()

    def show_status(self, world: ShownWorld) -> None:
        """The selection may have changed elsewhere."""
        if self._shown and self._shown[0] != world.view.selected:
            self._list()

    def _list(self) -> None:
        """Write the rows anew, if they are others than before."""
        world = self.page.world
        if world is None:
            return
        rows = self._wanted_rows(world)
        wanted = (world.view.selected, tuple(rows))
        if wanted == self._shown:
            return
        self._shown = wanted
        for row in self._rows:
            self.page.forget(row)
        self._rows = []
        with self._rows_folder:
            for label, actor, icon in rows:
                color: Any = "blue" if label.startswith("●") else "gray"
                button = self.gui.add_button(label, icon=icon, color=color, disabled=actor is None)
                button.on_click(partial(self._select, actor))
                self._rows.append(button)

    def _wanted_rows(self, world: ShownWorld) -> list[tuple[str, str | None, Any]]:
        """Label, actor and icon of each row; the last one may say how many there is no room for."""
        wanted, selected = self._search.value.strip().lower(), world.view.selected
        rows: list[tuple[str, str | None, Any]] = []
        for actor in world.actors:
            parts = part_names(world.model, actor) if wanted or actor == selected else []
            found = [part for part in parts if wanted and wanted in part.lower()]
            if wanted and wanted not in actor.lower() and not found:
                continue
            rows.append((f"● {actor}" if actor == selected else actor, actor, Icon.CUBE))
            shown_parts = found if wanted else (parts if actor == selected else [])
            rows += [(f"    {part}", actor, Icon.CORNER_DOWN_RIGHT) for part in shown_parts]
        if len(rows) > _MOST_ROWS:
            more = len(rows) - _MOST_ROWS
            rows = [*rows[:_MOST_ROWS], (f"... {more} more: search", None, Icon.DOTS)]
        return rows


def part_names(model: Any, actor: str) -> list[str]:
    """``kind short_name`` of an actor's bodies, joints, actuators, sensors, cameras and sites."""
    prefix, found = f"{actor}_", []
    kinds = (
        ("body", model.nbody, model.body), ("joint", model.njnt, model.joint), ("actuator", model.nu, model.actuator),
        ("sensor", model.nsensor, model.sensor), ("camera", model.ncam, model.camera),
        ("site", model.nsite, model.site),
    )  # fmt: skip
    for word, count, by_id in kinds:
        names = (by_id(index).name for index in range(count))
        found += [f"{word} {name.removeprefix(prefix)}" for name in names if name.startswith(prefix)]
    return found
