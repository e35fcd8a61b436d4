"""A push: a force on a body of the selected actor, for as long as a button is held."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from urlab.editor.server_link import FAILURES

if TYPE_CHECKING:
    from urlab.editor.page import Page

_TELL_HZ = 5.0
_SILENT_S = 0.6
"""So long after the last word of a button that is held the body is let go, whatever became of the page."""


class BodyPush:
    """The widgets, in the container that is open, and the force that they hold. A key pushes for a moment."""

    def __init__(self, page: "Page", bodies: Sequence[str]) -> None:
        gui = page.gui
        self._page = page
        self._body = page.acting(gui.add_dropdown("Body", tuple(bodies)))
        self._force = page.acting(gui.add_vector3("Force N", (0.0, 0.0, 20.0), step=1.0))
        self._button = page.acting(gui.add_button("Push", hint="While it is held; x, y and z of the world."))
        self._lock = threading.Lock()
        self._held: str | None = None
        self._timer: threading.Timer | None = None
        self._button.on_hold(self._push, callback_hz=_TELL_HZ)
        self._button.on_click(self._click)
        self.inputs = (self._body, self._force, self._button)

    def _push(self, _event: Any) -> None:
        body, force = self._body.value, self._force.value
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._held is None and self._page.change(f"push {body}", lambda client: _perturb(client, body, force)):
                self._held = body
            if self._held is not None:
                self._timer = threading.Timer(_SILENT_S, self.release)
                self._timer.daemon = True
                self._timer.start()

    def _click(self, event: Any) -> None:
        """A pointer that held the button has let go of it, or a key has pressed it, whose release is not told."""
        if self._held is None:
            self._push(event)
        else:
            self.release()

    def release(self) -> None:
        """Let go of what is pushed, if anything is."""
        with self._lock:
            body, self._held = self._held, None
            if body is None:
                return
            try:
                self._page.editor.link.change(lambda client: client.runtime.release(body))
            except FAILURES as failed:
                self._page.editor.note(f"push: {failed}", is_error=True)


def _perturb(client: Any, body: str, force: Any) -> bool:
    client.runtime.perturb(body, force=force)
    return True
