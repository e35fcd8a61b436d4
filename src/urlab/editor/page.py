"""One open page: its panels, its notices, and whether it holds the controls."""

import contextlib
import functools
import logging
import secrets
import threading
import time
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import viser
from viser import _gui_api, _gui_handles, _icons

from urlab.editor.feed import ShownWorld
from urlab.editor.gizmo import Gizmo
from urlab.editor.panels import PANELS, Panel
from urlab.editor.server_link import FAILURES, reason
from urlab_client import URLabClient

if TYPE_CHECKING:
    from urlab.editor.editor import Editor

log = logging.getLogger("urlab.editor")
Result = TypeVar("Result")

_NOTICE_S, _ERROR_S = 8.0, 20.0
_OWN_S = 1.0
"""So long a widget stays as its user has set it, whatever the server still says."""


def _open_icons_once() -> None:
    """viser reads the list of its 5,000 icons again for each icon of a page, which is most of what panels cost."""
    archive = zipfile.ZipFile(_icons.ICONS_DIR / "tabler-icons.zip")

    @functools.cache
    def svg_from_icon(name: str) -> str:
        return archive.read(f"{name}.svg").decode()

    _gui_api.svg_from_icon = _gui_handles.svg_from_icon = svg_from_icon  # type: ignore[attr-defined]


_open_icons_once()


class Page:
    """A browser tab. Its widgets are its own; those that change the world work while it holds the controls."""

    def __init__(self, editor: "Editor", client: viser.ClientHandle) -> None:
        self.editor = editor
        self.client = client
        self.gui = client.gui
        self.number: int = client.client_id
        self.key = f"{self.number}-{secrets.token_urlsafe(9)}"
        """What its keyboard names it by."""
        self._inputs: list[Any] = []
        self._inputs_lock = threading.Lock()
        self._used_s: dict[int, float] = {}
        """When its user last set a widget, by the widget's `id`."""
        self.gizmo = Gizmo(self)
        self.is_dark = False
        self.chosen_colour = ""
        """``dark`` or ``light`` once the page's user has said so; the browser remembers it."""
        self.set_dark(False)
        self.gui.set_panel_label("URLab")
        self._controls_note = self.gui.add_markdown("")
        self._controls_button = self.gui.add_button("Ask for the controls", visible=False)
        self._controls_button.on_click(lambda _: self._press_controls())
        self.on_leave: dict[str, Callable[[URLabClient], Any]] = {}
        """What to do when the page is closed, by what it holds, so that nothing stays as only a page would hold it."""
        self.panels: list[Panel] = []
        tabs = None
        for kind in PANELS:
            if kind.title is None:
                panel = kind(self)
                panel.build()
            else:
                tabs = self.gui.add_tab_group() if tabs is None else tabs
                with tabs.add_tab(kind.title, kind.icon):
                    panel = kind(self)
                    panel.build()
            self.panels.append(panel)

    # -- what panels use --------------------------------------------------------------------------------------------

    @property
    def world(self) -> ShownWorld | None:
        """What is shown now."""
        return self.editor.feed.world

    def read(self, work: Callable[[URLabClient], Result]) -> Result | None:
        """What ``work`` reads from the server; None, and a line in the log, if that fails: it may just have stopped."""
        try:
            return self.editor.link.read(work)
        except FAILURES as failed:
            self.editor.note(str(failed), is_error=True)
            return None

    def change(self, what: str, work: Callable[[URLabClient], Result]) -> Result | None:
        """Change the world, if this page holds the controls: what ``work`` returns; None, and a notice, if it fails."""
        if self.editor.controls.holder != self.number:
            self.tell("Another page holds the controls", "Ask for them at the top of the panel.", is_error=True)
            return None
        try:
            result = self.editor.link.change(work)
        except FAILURES as failed:
            if not hasattr(failed, "code"):  # else it is in the server's log
                self.editor.note(f"{what}: {failed}", is_error=True)
            self.tell(what[:1].upper() + what[1:] + " did not work", reason(failed), is_error=True)
            return None
        self.editor.feed.wake()
        return result

    def tell(self, title: str, text: str, *, is_error: bool = False) -> None:
        """Show a notice on this page."""
        self.client.add_notification(
            title, text[:600], with_close_button=True, auto_close_seconds=_ERROR_S if is_error else _NOTICE_S,
            color=(200, 40, 40) if is_error else (40, 120, 60),
        )  # fmt: skip

    def show_html(self, title: str, html: str) -> None:
        """Show something over the page, until it is closed."""
        modal = self.gui.add_modal(title)
        with modal:
            self.gui.add_html(html)
            self.gui.add_button("Close").on_click(lambda _: modal.close())

    def acting(self, widget: Any) -> Any:
        """A widget that changes the world: it works only while the page holds the controls.

        A row of buttons cannot be switched off; `change` then says why nothing happens.
        """
        if not isinstance(widget, viser.GuiButtonGroupHandle):
            with self._inputs_lock:
                self._inputs.append(widget)
                widget.disabled = self.editor.controls.holder != self.number
            self.followed(widget)
        return widget

    def followed(self, widget: Any) -> Any:
        """A widget that `follow` lets show what is in force."""
        if isinstance(widget, viser.GuiInputHandle):
            widget.on_update(self._note_use)
        return widget

    def follow(self, widget: Any, value: Any) -> None:
        """Let a widget show what is in force, unless its user has set it just now: that is on its way."""
        if time.monotonic() - self._used_s.get(id(widget), -_OWN_S) >= _OWN_S:
            widget.value = value

    def button(
        self, label: str, what: str, work: Callable[[URLabClient], Any], *, icon: Any = None, hint: str | None = None
    ) -> Any:
        """A button that changes the world."""
        button = self.acting(self.gui.add_button(label, icon=icon, hint=hint))
        button.on_click(lambda _: self.change(what, work))
        return button

    def forget(self, widget: Any, *inside: Any) -> None:
        """Remove a widget, and with it those that it contains."""
        gone = {id(widget), *map(id, inside)}
        with self._inputs_lock:
            self._inputs = [one for one in self._inputs if id(one) not in gone]
            widget.remove()
        for one in gone:
            self._used_s.pop(one, None)

    def set_dark(self, dark: bool) -> None:
        """Light or dark, for this page alone."""
        self.is_dark = dark
        self.gui.configure_theme(
            control_width="large", dark_mode=dark, show_logo=False, show_share_button=False, brand_color=(28, 100, 180)
        )

    # -- what the editor tells --------------------------------------------------------------------------------------

    @property
    def shares_camera(self) -> bool:
        """Whether its camera and that of the viewport are one."""
        return any(panel.shares_camera for panel in self.panels)

    def show_controls(self) -> None:
        """Say who holds the controls, and switch what changes the world on or off."""
        controls = self.editor.controls
        holds = controls.holder == self.number
        with self._inputs_lock:
            for widget in self._inputs:
                widget.disabled = not holds
        others = [one for one in controls.asking if one != self.number]
        self._controls_button.visible = not holds or bool(others)
        if holds:
            asking = ", ".join(f"page {one + 1}" for one in others)
            self._controls_note.content = f"{asking} asks for the controls." if others else ""
            self._controls_note.visible = bool(others)
            self._controls_button.label = "Give the controls away"
        else:
            asked = self.number in controls.asking
            self._controls_note.visible = True
            holder = "No page" if controls.holder is None else f"Page {controls.holder + 1}"
            self._controls_note.content = f"**{holder} holds the controls.** This is page {self.number + 1}." + (
                " You have asked for them; press again to take them." if asked else ""
            )
            self._controls_button.label = "Take the controls" if asked else "Ask for the controls"

    def show_model(self, world: ShownWorld) -> None:
        """Another model is shown."""
        for panel in self.panels:
            panel.show_model(world)

    def show_status(self, world: ShownWorld) -> None:
        """A few times a second."""
        self.gizmo.show(world)
        for panel in self.panels:
            panel.show_status(world)

    def close(self) -> None:
        """The tab is gone."""
        with self._inputs_lock:
            self._inputs.clear()
        for panel in self.panels:
            panel.close()
        by_others = {key for page in self.editor.pages for key in page.on_leave}
        for key, leave in self.on_leave.items():
            if key not in by_others:
                with contextlib.suppress(*FAILURES):
                    self.editor.link.change(leave)

    async def _note_use(self, event: Any) -> None:
        """On viser's event loop, as soon as the news comes: before the thread of what it leads to begins."""
        if event.client is not None:
            self._used_s[id(event.target)] = time.monotonic()

    def _press_controls(self) -> None:
        controls = self.editor.controls
        if controls.holder == self.number:
            controls.give(self.number)
        elif self.number in controls.asking:
            controls.take(self.number)
        else:
            controls.ask(self.number)
