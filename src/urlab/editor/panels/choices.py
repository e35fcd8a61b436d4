"""Choices that a program offers in the views, as a run that is watched does: which of its workers is shown."""

from typing import Any

from urlab.editor.feed import ShownWorld
from urlab.editor.panels.base import Panel


class ChoicesPanel(Panel):
    """A dropdown for each of them, above the tabs, while it is offered."""

    order = 2

    def build(self) -> None:
        """Room for them; they come and go."""
        self._folder = self.gui.add_folder(None)
        self._shown: dict[str, Any] = {}

    def show_status(self, world: ShownWorld) -> None:
        """Those that are offered, with what is chosen."""
        choices = world.view.choices
        for name in [name for name in self._shown if name not in choices]:
            self.page.forget(self._shown.pop(name))
        for name, choice in choices.items():
            options = tuple(choice.options)
            if name not in self._shown:
                self._add(name, options, choice.chosen)
            elif tuple(self._shown[name].options) != options:
                self._shown[name].options = options
            self.page.follow(self._shown[name], choice.chosen)

    def _add(self, name: str, options: tuple[str, ...], chosen: str) -> None:
        with self._folder:
            dropdown = self.page.acting(self.gui.add_dropdown(name, options, initial_value=chosen))
        dropdown.on_update(lambda event: self._choose(event, name))
        self._shown[name] = dropdown

    def _choose(self, event: Any, name: str) -> None:
        if event.client is not None:
            chosen = event.target.value
            self.page.change(f"{name}: {chosen}", lambda client: client.debug.set_overlay_choice(name, chosen=chosen))
