"""How the world is shown: modes and overlays of the viewport, the camera, tracking."""

from typing import Any

from viser import Icon

from urlab.editor.decorations import DRAWN, not_drawn
from urlab.editor.feed import ShownWorld
from urlab.editor.panels.base import Panel
from urlab.overlay import OVERLAY_WORDS
from urlab_client.namespaces.viewport import MODES

_FIRST = ("contacts", "contact_forces", "joints", "com", "frames", "inertia", "tendons", "names", "transparent")
"""Overlays that are asked for most; the others that this page draws follow them."""


class ViewPanel(Panel):
    """The viewport as Python knows it: what is switched here shows in pictures, and the other way round."""

    title = "View"
    icon = Icon.EYE
    order = 60

    def build(self) -> None:
        """Mode, camera, overlays."""
        page, gui = self.page, self.gui
        self._mode = page.acting(gui.add_dropdown("Mode", MODES))
        self._mode.on_update(self._change_mode)
        page.button("Frame the selected actor", "frame an actor", self._frame, icon=Icon.FOCUS_2)
        self._track = page.acting(gui.add_checkbox("Track the selected actor", False))
        self._track.on_update(self._change_tracking)
        self._shares = gui.add_checkbox("Camera as in client.viewport", True, hint="Both ways: this page and Python.")
        self._dark = page.followed(gui.add_checkbox("Dark", False, hint="For this page alone; at first as the system."))
        self._dark.on_update(self._change_colour)
        words = (*_FIRST, *(word for word in OVERLAY_WORDS if word in DRAWN and word not in _FIRST))
        with gui.add_folder("Overlays"):
            self._missing = gui.add_markdown("", visible=False)
            self._overlays = {word: page.acting(gui.add_checkbox(word.replace("_", " "), False)) for word in words}
        for word, box in self._overlays.items():
            box.on_update(lambda event, word=word: self._change_overlay(event, word))

    @property
    def shares_camera(self) -> bool:
        """Whether this page's camera and that of the viewport are one."""
        return bool(self._shares.value)

    def _frame(self, client: Any) -> None:
        world = self.page.world
        if world is None or world.view.selected is None:
            raise ValueError("no actor is selected: click one, or choose it in the list")
        client.viewport.frame_actor(world.view.selected, by_name=True)

    def _change_mode(self, event: Any) -> None:
        if event.client is not None:
            mode = self._mode.value
            self.page.change(f"view {mode}", lambda client: client.viewport.set_mode(mode))

    def _change_colour(self, event: Any) -> None:
        if event.client is not None:
            self.page.chosen_colour = "dark" if self._dark.value else "light"
            self.page.set_dark(bool(self._dark.value))

    def _change_tracking(self, event: Any) -> None:
        if event.client is None:
            return
        world = self.page.world
        selected = None if world is None else world.view.selected
        if not self._track.value:
            self.page.change("stop tracking", lambda client: client.viewport.untrack())
        elif selected is None:
            self.page.tell("No actor is selected", "Click one in the view, or choose it in the list.", is_error=True)
        else:
            self.page.change(f"track {selected}", lambda client: client.viewport.track_actor(selected, by_name=True))

    def _change_overlay(self, event: Any, word: str) -> None:
        if event.client is not None:
            wanted: Any = {word: bool(self._overlays[word].value)}
            self.page.change(f"overlay {word}", lambda client: client.viewport.set_overlays(**wanted))

    def show_status(self, world: ShownWorld) -> None:
        """What is in force, also if Python switched it."""
        self.page.follow(self._mode, world.view.mode)
        self.page.follow(self._track, world.view.tracking)
        self.page.follow(self._dark, self.page.is_dark)
        missing = not_drawn(world.view.mode, world.view.overlays)
        self._missing.visible = bool(missing)
        self._missing.content = f"Shown in pictures, not on this page: {', '.join(missing)}." if missing else ""
        for word, box in self._overlays.items():
            self.page.follow(box, bool(world.view.overlays.get(word, False)))
