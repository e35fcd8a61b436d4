"""What happened, newest first."""

from html import escape

from viser import Icon

from urlab.editor.feed import ShownWorld
from urlab.editor.panels.base import Panel

_LINES = 40


class LogPanel(Panel):
    """Ops of any client that changed the world, warnings and errors."""

    title = "Log"
    icon = Icon.LIST_DETAILS
    order = 90

    def build(self) -> None:
        """One block of text."""
        self._text = self.gui.add_html("")
        self._shown = -1

    def show_status(self, world: ShownWorld) -> None:  # noqa: ARG002 - for every panel
        """New lines, if there are any."""
        notes = self.page.editor.notes
        if notes.count == self._shown:
            return
        self._shown = notes.count
        rows = [
            f'<div style="color:{"#c22" if is_error else "inherit"}">{when} {escape(text)}</div>'
            for when, text, is_error in notes.newest(_LINES)
        ]
        self._text.content = f'<div id="urlab-log" style="font:12px monospace;padding:0.5em">{"".join(rows)}</div>'
