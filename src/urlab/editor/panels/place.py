"""The place of an actor in the level, as numbers to edit."""

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from urlab_client.types import ActorInfo

if TYPE_CHECKING:
    from urlab.editor.page import Page

_TYPING_S = 0.4
"""So long after the last change of a number the level is edited."""


class ActorPlace:
    """Where an actor stands in the level, to be edited.

    Every edit makes another model, but these fields stay while their user writes in them; the level changes once, when
    the user has stopped for a moment.
    """

    def __init__(self, page: "Page") -> None:
        self._page = page
        self._parent = page.gui.add_folder(None)
        self._actor: str | None = None
        self._folder: Any = None
        self._position: Any = None
        self._rotation: Any = None
        self._waiting: threading.Timer | None = None

    def show(self, actor: str | None) -> None:
        """Offer that actor's place, or none."""
        info = None if actor is None else self._read(actor)
        if info is None or actor != self._actor:
            self._finish()
            self.close()
        if info is None:
            return
        if self._folder is None:
            self._add(info)
        else:
            self._page.follow(self._position, info.location)
            self._page.follow(self._rotation, euler_deg(info.rotation_quat))
        self._actor = actor

    def _read(self, actor: str) -> ActorInfo | None:
        found = self._page.read(lambda client: client.outliner.find_actors(name_prefix=actor)) or []
        return next((one for one in found if one.name == actor), None)

    def _finish(self) -> None:
        """Make the edit that waits, if one does: its numbers are about to go."""
        if self._waiting is not None and self._waiting.is_alive() and self._actor is not None:
            self._waiting.cancel()
            self._move(self._actor)

    def close(self) -> None:
        """Take the fields away; an edit that waits is not made any more."""
        if self._waiting is not None:
            self._waiting.cancel()
        if self._folder is not None:
            self._page.forget(self._folder, self._position, self._rotation)
        self._folder = self._actor = None

    def _add(self, info: ActorInfo) -> None:
        page, gui = self._page, self._page.gui
        with self._parent:
            self._folder = gui.add_folder("Place in the level")
        with self._folder:
            self._position = page.acting(gui.add_vector3("Position m", info.location, step=0.01))
            self._rotation = page.acting(gui.add_vector3("Rotation °", euler_deg(info.rotation_quat), step=1.0))
        self._position.on_update(self._move_soon)
        self._rotation.on_update(self._move_soon)

    def _move_soon(self, event: Any) -> None:
        if event.client is None or self._actor is None:
            return
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = threading.Timer(_TYPING_S, self._move, (self._actor,))
        self._waiting.daemon = True
        self._waiting.start()

    def _move(self, actor: str) -> None:
        position, rotation = self._position.value, self._rotation.value
        self._page.change(
            f"move {actor}",
            lambda client: client.scene.set_actor_transform(
                actor, by_name=True, location=position, rotation_euler=rotation
            ),
        )


def euler_deg(quat_xyzw: Any) -> tuple[float, float, float]:
    """Roll, pitch and yaw in degrees, about the fixed axes."""
    x, y, z, w = (float(one) for one in quat_xyzw)
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return float(np.degrees(roll)), float(np.degrees(pitch)), float(np.degrees(yaw))
