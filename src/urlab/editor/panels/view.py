"""How the world is shown: modes and overlays of the viewport, the camera, tracking."""

from typing import Any

from viser import Icon

from urlab.editor.feed import ShownWorld
from urlab.editor.panels.base import Panel
from urlab_client.namespaces.viewport import MODES

_OVERLAYS = (
    "contacts", "contact_forces", "joints", "com", "frames", "inertia", "tendons", "names", "transparent",
    "perturbation", "actuators", "cameras", "lights", "constraints", "rangefinders", "islands",
)  # fmt: skip


class ViewPanel(Panel):
    """The viewport as Python knows it: what is switched here shows in pictures, and the other way round."""

    title = "View"
    icon = Icon.EYE
    place = 60

    def build(self) -> None:
        """Mode, camera, overlays."""
        page, gui = self.page, self.gui
        self._mode = page.acting(gui.add_dropdown("Mode", MODES))
        self._mode.on_update(self._change_mode)
        page.button("Frame the selected actor", "frame an actor", self._frame, icon=Icon.FOCUS_2)
        self._track = page.acting(gui.add_checkbox("Track the selected actor", False))
        self._track.on_update(self._change_tracking)
        self._shares = gui.add_checkbox("Camera as in client.viewport", True, hint="Both ways: this page and Python.")
        dark = gui.add_checkbox("Dark", False, hint="For this page alone.")
        dark.on_update(lambda _: page.set_dark(bool(dark.value)))
        with gui.add_folder("Overlays"):
            self._overlays = {word: page.acting(gui.add_checkbox(word.replace("_", " "), False)) for word in _OVERLAYS}
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

    def _change_tracking(self, event: Any) -> None:
        if event.client is None:
            return
        world = self.page.world
        selected = None if world is None else world.view.selected
        if self._track.value and selected is not None:
            self.page.change(f"track {selected}", lambda client: client.viewport.track_actor(selected, by_name=True))
        else:
            self.page.change("stop tracking", lambda client: client.viewport.untrack())

    def _change_overlay(self, event: Any, word: str) -> None:
        if event.client is not None:
            wanted: Any = {word: bool(self._overlays[word].value)}
            self.page.change(f"overlay {word}", lambda client: client.viewport.set_overlays(**wanted))

    def show_status(self, world: ShownWorld) -> None:
        """What is in force, also if Python switched it."""
        self.page.follow(self._mode, world.view.mode)
        self.page.follow(self._track, world.view.tracking)
        for word, box in self._overlays.items():
            self.page.follow(box, bool(world.view.overlays.get(word, False)))
