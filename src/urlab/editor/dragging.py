"""Dragging bodies with the pointer: a spring from the point that was grabbed to where the pointer is."""

import threading
import time
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from urlab.editor.server_link import FAILURES

if TYPE_CHECKING:
    from urlab.editor.editor import Editor

Drag = tuple[str, tuple[float, ...], tuple[float, ...]]
"""A body, the point of it that was grabbed (its own frame) and where that is dragged to (the world's)."""
_SILENT_S, _LOOK_S = 2.0, 0.3
"""After how long without a word a page drags no more, and how often that is looked at."""


class BodyDrag:
    """One body at a time, for the page that holds the controls.

    Pointer events come on viser's event loop and only say where to; a thread of its own tells the server, the newest
    target alone, so that a slow server gets fewer and not older ones. A page that is not heard any more, whatever the
    reason, has let go.
    """

    def __init__(self, editor: "Editor") -> None:
        self._editor = editor
        self._wanted: Drag | None = None
        self._done: Drag | None = None
        """What the server was told last."""
        self._point: tuple[float, ...] = (0.0, 0.0, 0.0)
        self._page: int | None = None
        """The page whose pointer drags."""
        self._heard_s = 0.0
        """When that page was last heard of."""
        self._held: str | None = None
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="urlab-editor-drag", daemon=True)
        self._thread.start()

    async def handle(self, event: Any, body: int) -> None:
        """A pointer event on a body."""
        world = self._editor.feed.world
        if world is None or event.client_id != self._editor.controls.holder:
            return
        self._heard_s = time.monotonic()
        if event.phase == "end":
            self.release()
            return
        if event.phase == "start":
            self._page = event.client_id
            self._point = _in_body(world.data, body, event.start_position)
        if not world.view.playing or not _can_be_dragged(world.model, body):
            return
        name = world.model.body(body).name
        with self._changed:
            self._wanted = (name, self._point, tuple(float(one) for one in event.end_position))
            self._changed.notify()

    def hear(self, page: int) -> None:
        """A page whose pointer is down says that it is there."""
        if page == self._page:
            self._heard_s = time.monotonic()

    def keep_for(self, page: int | None) -> None:
        """Let go of what any other page drags."""
        if self._page != page:
            self.release()

    def release(self) -> None:
        """Let go."""
        with self._changed:
            self._wanted = None
            self._changed.notify()

    def close(self) -> None:
        """Let go, and end the thread."""
        with self._changed:
            self._is_closed, self._wanted = True, None
            self._changed.notify()
        self._thread.join(2.0)

    def _run(self) -> None:
        while True:
            with self._changed:
                is_news = self._changed.wait_for(
                    lambda: self._is_closed or self._wanted != self._done, None if self._held is None else _LOOK_S
                )
                if not is_news and time.monotonic() - self._heard_s > _SILENT_S:
                    self._wanted = None
                wanted, is_closed = self._wanted, self._is_closed
            if wanted != self._done:
                self._tell(wanted)
                self._done = wanted
            if is_closed:
                return

    def _tell(self, wanted: Drag | None) -> None:
        try:
            if self._held is not None and (wanted is None or wanted[0] != self._held):
                held, self._held = self._held, None
                self._editor.link.change(lambda client: client.runtime.release(held))
            if wanted is not None:
                body, point, target = wanted
                self._editor.link.change(lambda client: client.runtime.perturb(body, point=point, target=target))
                self._held = body
        except FAILURES as failed:
            self._editor.note(f"drag: {failed}", is_error=True)


def _can_be_dragged(model: Any, body: int) -> bool:
    """Not if it is fixed to the world; a mocap body is moved by whom it belongs to."""
    return bool(model.body_weldid[body] != 0)


def _in_body(data: Any, body: int, position: Any) -> tuple[float, ...]:
    """A point of the world in a body's own frame."""
    local, turn = np.empty(3), np.empty(4)
    mujoco.mju_negQuat(turn, data.xquat[body])
    mujoco.mju_rotVecQuat(local, np.asarray(position, float) - data.xpos[body], turn)
    return tuple(local.tolist())
